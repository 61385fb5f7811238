//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	orphanPoll = 20 * time.Millisecond
	orphanWait = 60 * time.Second // time for an orphan to shut down
)

// errLingers is returned when processes of the cluster do not end.
var errLingers = errors.New("processes of an earlier server do not end")

// postmaster reads the process id and the status, such as "ready", from postmaster.pid; pid is 0 if
// the file is missing.
// https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/utils/pidfile.h
func (c *cluster) postmaster() (pid int, status string) {
	text, err := os.ReadFile(filepath.Join(c.dir, "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return 0, ""
	}
	if len(lines) > 7 {
		status = strings.TrimSpace(lines[7])
	}
	return pid, status
}

// isReady reports whether the postmaster with this id accepts connections, possibly as a standby.
func (c *cluster) isReady(pid int) bool {
	p, status := c.postmaster()
	return p == pid && (status == "ready" || status == "standby")
}

// clear prepares for a new postmaster: it stops the processes of an earlier one and removes its pid
// file, whose number may now belong to another program. The caller holds the lock of the data
// directory.
func (c *cluster) clear(log *slog.Logger) error {
	if err := c.stopOrphans(log); err != nil {
		return fmt.Errorf("clear cluster %s: %w", c.dir, err)
	}
	err := os.Remove(filepath.Join(c.dir, "postmaster.pid"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clear cluster: %w", err)
	}
	return nil
}

// stopOrphans requests a fast shutdown from a living postmaster. Processes whose postmaster is dead
// have nothing to save and are ordered to quit immediately.
func (c *cluster) stopOrphans(log *slog.Logger) error {
	pids := c.processes()
	if len(pids) == 0 {
		return nil
	}
	if pid, _ := c.postmaster(); slices.Contains(pids, pid) {
		log.Info("stopping the postgres of an earlier run", "pid", pid)
		_ = syscall.Kill(pid, syscall.SIGINT)
		if c.waitGone(orphanWait) {
			return nil
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		for _, pid := range c.processes() {
			_ = syscall.Kill(pid, sig)
		}
		if c.waitGone(abortWait) {
			return nil
		}
	}
	return fmt.Errorf("%w: %v", errLingers, c.processes())
}

// waitGone waits until all processes of the cluster have ended.
func (c *cluster) waitGone(limit time.Duration) bool {
	return c.waitUntil(limit, func(pids []int) bool { return len(pids) == 0 })
}

// waitUntil waits until ok returns true for the processes of the cluster.
func (c *cluster) waitUntil(limit time.Duration, ok func(pids []int) bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(orphanPoll) {
		if ok(c.processes()) {
			return true
		}
	}
	return false
}

// kill kills the processes of the cluster and waits until they are gone. It stops the postmaster
// first, so that it cannot start another process.
func (c *cluster) kill() error {
	if pid, _ := c.postmaster(); slices.Contains(c.processes(), pid) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	victims := c.processes()
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	gone := func(pids []int) bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(victims, pid) })
	}
	if !c.waitUntil(abortWait, gone) {
		return fmt.Errorf("%w: %v", errLingers, victims)
	}
	return nil
}

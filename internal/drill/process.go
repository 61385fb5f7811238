package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that the drill has started. Its output goes to a file of the directory logs.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the program has ended
}

// start starts a program, as another user unless as is nil, in a process group of its own, so that
// Ctrl-C reaches the drill alone.
func (s *stage) start(name string, as *syscall.Credential, program string, args ...string) (*process, error) {
	p := &process{exited: make(chan struct{})}
	file, err := os.OpenFile(filepath.Join(s.dir, "logs", name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // no secrets
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p.cmd = exec.Command(program, args...) //nolint:gosec,noctx // ended by close, in the right order
	p.cmd.Dir = s.dir
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // logs say why it ended
		close(p.exited)
	}()
	return p, nil
}

// signal sends a signal to the program and its children.
func (p *process) signal(sig syscall.Signal) {
	if p.runs() {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

func (p *process) runs() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop ends the program with SIGTERM, and with SIGKILL after a while. It reports whether SIGTERM was enough.
func (p *process) stop(patience time.Duration) bool {
	p.signal(syscall.SIGCONT)
	if p.runs() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.exited:
		return true
	case <-time.After(patience):
		p.kill()
		return false
	}
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// output returns what a program has printed so far.
func output(dir, name string) string {
	log, _ := os.ReadFile(filepath.Join(dir, "logs", name)) // empty if it has printed nothing
	return string(log)
}

// databaseUser returns the user that runs PostgreSQL: postgres under root; nil: this user.
func databaseUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // documented
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// mkdir makes a directory that only its user may enter.
func mkdir(path string, as *syscall.Credential) error {
	if err := os.MkdirAll(path, 0o700); err != nil || as == nil {
		return err
	}
	return os.Chown(path, int(as.Uid), int(as.Gid))
}

// postmaster returns the process of the PostgreSQL in a data directory; 0: none.
func postmaster(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if state, _ := procStat(pid); err != nil || state == "" || state == "Z" {
		return 0
	}
	return pid
}

// procStat returns the state and the parent of a process, as proc_pid_stat(5) has them; empty: there is none.
func procStat(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // a name may have spaces
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// family returns a process and its children.
func family(parent int) []int {
	list := []int{parent}
	files, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(file))
		if _, p := procStat(pid); p == parent {
			list = append(list, pid)
		}
	}
	return list
}

// command runs a program to its end, and returns its output.
func (s *stage) command(as *syscall.Credential, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, program, args...) //nolint:gosec // our own, and pgBackRest
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// until waits for a condition.
func (s *stage) until(what string, limit time.Duration, is func() bool) error {
	for end := time.Now().Add(limit); !is(); {
		if time.Now().After(end) {
			return fmt.Errorf("after %s it is still not so: %s", limit, what)
		}
		if err := s.wait(50 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// wait waits, unless the drill is interrupted.
func (s *stage) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

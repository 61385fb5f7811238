//go:build unix && !linux

package localpg

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processes returns the postmaster of the cluster, found by its arguments, and its children.
// Children without a postmaster are not found.
func (c *cluster) processes() []int {
	postmaster, _ := c.postmaster()
	out, err := exec.CommandContext(context.Background(), "ps", "-axo", "pid=,ppid=,stat=,command=").Output()
	if err != nil || postmaster == 0 {
		return nil
	}
	var pids []int
	alive := false
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || strings.HasPrefix(fields[2], "Z") {
			continue
		}
		pid, _ := strconv.Atoi(fields[0])
		parent, _ := strconv.Atoi(fields[1])
		ours := pid == postmaster && strings.Contains(line, "postgres") && strings.Contains(line, "-D "+c.dir)
		alive = alive || ours
		if ours || parent == postmaster {
			pids = append(pids, pid)
		}
	}
	if !alive {
		return nil
	}
	return pids
}

// dieWithParent does nothing, because this system cannot signal a child when its parent is killed.
// The next Start stops the orphan.
func dieWithParent(*syscall.SysProcAttr) {}

package localpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processes returns the living processes of the cluster: those with the data directory as their
// working directory, namely postgres and its children.
func (c *cluster) processes() []int {
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	var pids []int
	for _, name := range names {
		if cwd, err := os.Readlink(name + "/cwd"); err != nil || cwd != c.dir {
			continue
		}
		comm, err := os.ReadFile(name + "/comm")
		if err != nil || strings.TrimSpace(string(comm)) != "postgres" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// dieWithParent makes the kernel send postgres a fast shutdown signal when the thread that starts
// it ends, and thus also when Proofline is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

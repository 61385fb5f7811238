//go:build unix

package conns

import "syscall"

// mostFiles is as many as counts where a process may open any number.
const mostFiles = 1 << 20

// files returns how many files the process may open.
func files() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return mostFiles
	}
	return int(min(uint64(limit.Cur), mostFiles)) //nolint:gosec // not more than that
}

//go:build unix

package conns

import "syscall"

// mostFiles is the result of files if the number of open files is unlimited.
const mostFiles = 1 << 20

// files returns the maximum number of open files of the process.
func files() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return mostFiles
	}
	return int(min(uint64(limit.Cur), mostFiles)) //nolint:gosec,unconvert // at most mostFiles; an int64 on FreeBSD
}

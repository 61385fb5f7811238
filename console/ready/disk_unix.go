//go:build unix

package ready

import "syscall"

// freeBytes returns the space on a directory's disk that is free for programs.
func freeBytes(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

//go:build linux || darwin

package localpg

import "syscall"

// freeSpace returns the bytes that are free on the disk of a directory.
func freeSpace(dir string) (uint64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), nil //nolint:gosec,unconvert // positive; its type depends on the platform
}

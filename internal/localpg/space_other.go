//go:build unix && !linux && !darwin

package localpg

import "errors"

// freeSpace returns the bytes that are free on the disk of a directory.
func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }

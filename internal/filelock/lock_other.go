//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package filelock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Lock always fails: without locks, two processes could use one store.
func Lock(string) (*os.File, error) {
	return nil, fmt.Errorf("file locks are not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

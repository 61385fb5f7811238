//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package witness

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockFile always fails: without locks, two processes with one store could cosign two histories.
func lockFile(string) (*os.File, error) {
	return nil, fmt.Errorf("a witness needs file locks, which are not supported on %s: %w", runtime.GOOS,
		errors.ErrUnsupported)
}

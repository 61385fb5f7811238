//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package issuer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockFile always fails: without locks, two processes with one store could use a code twice.
func lockFile(string) (*os.File, error) {
	return nil, fmt.Errorf("an issuer needs file locks, which are not supported on %s: %w", runtime.GOOS,
		errors.ErrUnsupported)
}

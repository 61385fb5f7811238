//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package issuer

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes a lock that the operating system releases when the process ends, even if it
// crashes.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	return f, nil
}

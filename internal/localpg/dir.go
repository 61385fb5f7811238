//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// openDir makes the data directory if needed, and returns its real path and the owner of the
// cluster in it. If root made the directory, other users can traverse it, because the user postgres
// must.
func openDir(dir string) (string, owner, error) {
	o, err := findOwner()
	if err != nil {
		return "", o, err
	}
	if err := makeDir(dir, o); err != nil {
		return "", o, fmt.Errorf("make data directory: %w", err)
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // the path as the kernel reports it
	}
	if err != nil {
		return "", o, fmt.Errorf("find data directory: %w", err)
	}
	return dir, o, nil
}

// makeDir makes the data directory if there is none.
func makeDir(dir string, o owner) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	mode := fs.FileMode(0o700)
	if o.credential != nil {
		mode = 0o711
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode) // unlike Mkdir, Chmod ignores the umask
}

// lockWait is how long a lock that was released may still be held: a child process that is being started has a copy of
// every open file until it runs its program.
const lockWait = 2 * time.Second

// lockDir takes the lock of the data directory. The lock ends with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for end := time.Now().Add(lockWait); errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another proofline is running in %s: stop it, or choose another directory with --data", ErrInUse, dir)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return f, nil
}

// syncDir makes the directory entries in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

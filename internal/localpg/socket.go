//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	socketPort = "5432" // names the socket file only; nothing listens on the network
	socketFile = ".s.PGSQL." + socketPort
	// maxSocketPath is the maximum length of a Unix socket's path on all systems, in bytes: 107 on
	// Linux, 103 on macOS.
	maxSocketPath = 103
)

// socket is the directory of the Unix socket.
type socket struct {
	dir  string
	temp bool
}

// makeSocket makes DIR/run, or a temporary directory if that path does not fit.
func makeSocket(dir string, o owner) (socket, error) {
	s := socket{dir: filepath.Join(dir, "run")}
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil && !s.fits() {
		s.temp = true
		s.dir, err = os.MkdirTemp("/tmp", "proofline-") // not TMPDIR, whose path may be too long
	}
	if err == nil {
		err = o.give(s.dir)
	}
	if err != nil {
		s.remove()
		return socket{}, fmt.Errorf("make socket directory: %w", err)
	}
	return s, nil
}

// fits reports whether the path of the socket is short enough and has no commas, which separate
// hosts in a connection string.
func (s socket) fits() bool {
	return len(s.dir)+len("/"+socketFile) <= maxSocketPath && !strings.Contains(s.dir, ",")
}

// clear removes the lock file of a killed postmaster. Its process id may now belong to another
// program.
func (s socket) clear() error {
	for _, name := range []string{socketFile, socketFile + ".lock"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("clear socket directory: %w", err)
		}
	}
	return nil
}

// remove removes a temporary directory.
func (s socket) remove() {
	if s.temp {
		_ = os.RemoveAll(s.dir)
	}
}

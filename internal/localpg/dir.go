//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// owner is the user that owns the cluster and runs postgres.
type owner struct {
	credential *syscall.Credential // nil: the current user
}

// findOwner returns the current user, or the user postgres under root.
func findOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return owner{}, fmt.Errorf("%w, which refuses to run as root: run as another user or make one with useradd --system postgres", ErrNoUser)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("%w: %w", ErrNoUser, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("%w: %w", ErrNoUser, err)
	}
	return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// give makes the owner the only user of a directory.
func (o owner) give(dir string) error {
	if o.credential != nil {
		if err := os.Lchown(dir, int(o.credential.Uid), int(o.credential.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// giveFile makes the owner the only user of an open file.
func (o owner) giveFile(f *os.File) error {
	if o.credential == nil {
		return nil
	}
	return f.Chown(int(o.credential.Uid), int(o.credential.Gid))
}

// checkReach tries whether the owner can enter dir and run the binaries. Only
// when it cannot, the mode bits are read to name the directory in the way:
// access control lists may allow what they deny.
func (o owner) checkReach(dir string, bin installation) error {
	if o.credential == nil {
		return nil
	}
	cmd := exec.Command(filepath.Join(bin.dir, "postgres"), "--version")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if closed := o.closedOn(dir); closed != "" {
		return fmt.Errorf("%w: PostgreSQL does not run as root, and its user cannot get through %s: "+
			"choose a directory elsewhere with --data, or chmod o+x %s", ErrUnreachable, closed, closed)
	}
	if closed := o.closedOn(bin.dir); closed != "" {
		return fmt.Errorf("%w: %s cannot be run through %s", ErrUnreachable, bin, closed)
	}
	return fmt.Errorf("run postgres as another user: %w", err)
}

// closedOn returns the first directory on the way to path that the owner
// cannot traverse, or "".
func (o owner) closedOn(path string) string {
	at := "/"
	for _, name := range append([]string{""}, strings.Split(path, "/")...) {
		at = filepath.Join(at, name)
		info, err := os.Stat(at)
		if err != nil {
			return at
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return ""
		}
		bit := fs.FileMode(0o001)
		switch {
		case stat.Uid == o.credential.Uid:
			bit = 0o100
		case stat.Gid == o.credential.Gid:
			bit = 0o010
		}
		if info.Mode()&bit == 0 {
			return at
		}
	}
	return ""
}

// openDir makes the data directory if needed and returns its real path. Under
// root others may pass through it, as postgres must.
func openDir(dir string) (string, owner, error) {
	o, err := findOwner()
	if err != nil {
		return "", o, err
	}
	mode := fs.FileMode(0o700)
	if o.credential != nil {
		mode = 0o711
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return "", o, fmt.Errorf("make data directory: %w", err)
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the kernel will name it
	}
	if err != nil {
		return "", o, fmt.Errorf("find data directory: %w", err)
	}
	return dir, o, nil
}

// lockDir takes the lock of the data directory, which ends with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another proofline runs in %s: stop it, or choose another directory with --data", ErrInUse, dir)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return f, nil
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

const (
	socketPort = "5432" // names the socket file only, nothing listens on the network
	socketFile = ".s.PGSQL." + socketPort
	// maxSocketPath is the longest path of a Unix socket that every system takes,
	// in bytes: 107 on Linux, 103 on macOS.
	maxSocketPath = 103
)

// socket is the directory of the Unix socket.
type socket struct {
	dir  string
	temp bool
}

// makeSocket makes DIR/run, or a temporary directory if that name is too long.
func makeSocket(dir string, o owner) (socket, error) {
	s := socket{dir: filepath.Join(dir, "run")}
	err := error(nil)
	if s.fits() {
		err = os.MkdirAll(s.dir, 0o700)
	} else {
		s.temp = true
		if s.dir, err = os.MkdirTemp("", "proofline-"); err == nil && !s.fits() {
			s.remove()
			s.dir, err = os.MkdirTemp("/tmp", "proofline-")
		}
	}
	if err == nil {
		err = o.give(s.dir)
	}
	if err != nil {
		return s, fmt.Errorf("make socket directory: %w", err)
	}
	return s, nil
}

func (s socket) fits() bool { return len(s.dir)+len("/"+socketFile) <= maxSocketPath }

// clear removes what a killed postmaster left: its lock file names a process
// id that may belong to another program by now.
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

//go:build unix

package localpg

import (
	"context"
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
		return owner{}, fmt.Errorf("%w, which refuses to run as root: run as another user or create one with useradd --system postgres", ErrNoUser)
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

// give makes the owner the only user with access to a directory.
func (o owner) give(dir string) error {
	if o.credential != nil {
		if err := os.Lchown(dir, int(o.credential.Uid), int(o.credential.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// giveFile makes the owner the only user with access to an open file.
func (o owner) giveFile(f *os.File) error {
	if o.credential == nil {
		return nil
	}
	return f.Chown(int(o.credential.Uid), int(o.credential.Gid))
}

// checkReach tests whether the owner can enter dir and run the binaries. It reads mode bits only
// after a failure, to name the directory in the way, because access control lists may grant what
// mode bits deny.
func (o owner) checkReach(ctx context.Context, dir string, bin installation) error {
	if o.credential == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin.dir, "postgres"), "--version")
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

// closedOn returns the first directory on the path that the owner cannot traverse, or "".
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

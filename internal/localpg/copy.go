//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Copy makes a base backup of the running cluster in another data directory, from which Start can
// run another server. The directory must not contain a cluster.
func (s *Server) Copy(ctx context.Context, to string) error {
	dir, owner, err := openDir(to)
	if err == nil {
		err = owner.give(dir)
	}
	if err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	postgres, err := filepath.EvalSymlinks(filepath.Join(s.cluster.bin.dir, "postgres"))
	if err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	cmd := s.cluster.command(ctx, "pg_basebackup", "--pgdata="+filepath.Join(dir, "postgres"), "--checkpoint=fast",
		"--wal-method=stream",
		"--no-sync", "--host="+s.socket.dir, "--port="+socketPort, "--username="+superuser)
	// all packages put both into the same directory
	cmd.Path, cmd.Err = filepath.Join(filepath.Dir(postgres), "pg_basebackup"), nil
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy cluster: %w: %s", err, out)
	}
	return nil
}

// copyPrototype makes dir a copy of the prototype of this version. If there is none, it makes a
// cluster there, and copies it as the prototype.
func (c *cluster) copyPrototype(ctx context.Context, prototypes, dir string) error {
	prototype := filepath.Join(prototypes, fmt.Sprintf("postgres-%d-of-%d", c.bin.major, os.Geteuid()))
	if _, err := os.Stat(prototype); err == nil {
		return errors.Join(copyDir(ctx, prototype, dir), c.owner.give(dir))
	}
	if err := c.initdb(ctx, dir); err != nil {
		return err
	}
	if err := os.MkdirAll(prototypes, 0o700); err != nil {
		return err
	}
	half, err := os.MkdirTemp(prototypes, "half-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	if err := copyDir(ctx, dir, half); err != nil {
		return err
	}
	if err := os.Rename(half, prototype); err != nil && !errors.Is(err, os.ErrExist) { // another process was faster
		return err
	}
	return nil
}

// copyDir copies a directory's content, with owners and modes, into an existing one.
func copyDir(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from+"/.", to).CombinedOutput(); err != nil { //nolint:gosec // own paths
		return fmt.Errorf("copy cluster: %w: %s", err, out)
	}
	return nil
}

// Signal sends a signal to the postmaster and all its processes: SIGSTOP and
// SIGCONT pause and resume a whole PostgreSQL. It is for tests.
func (s *Server) Signal(sig syscall.Signal) error {
	for _, pid := range s.cluster.processes() {
		if err := syscall.Kill(pid, sig); err != nil {
			return fmt.Errorf("signal local PostgreSQL: %w", err)
		}
	}
	return nil
}

// Socket returns the directory and port to connect to.
func (s *Server) Socket() (dir, port string) { return s.socket.dir, socketPort }

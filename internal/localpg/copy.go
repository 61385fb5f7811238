//go:build unix

package localpg

import (
	"context"
	"fmt"
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

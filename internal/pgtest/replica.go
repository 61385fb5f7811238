//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/proofline/proofline/internal/localpg"
)

// Exec runs a statement as the superuser, in its own transaction.
func (s *Server) Exec(sql string, args ...any) {
	s.t.Helper()
	if err := s.query(sql, args, nil); err != nil {
		s.t.Fatalf("pgtest: %s: %v", sql, err)
	}
}

// Get runs a query as the superuser and scans its one row.
func (s *Server) Get(sql string, into ...any) {
	s.t.Helper()
	if err := s.query(sql, nil, into); err != nil {
		s.t.Fatalf("pgtest: %s: %v", sql, err)
	}
}

func (s *Server) query(sql string, args, into []any) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if into == nil {
		_, err = conn.Exec(ctx, sql, args...)
		return err
	}
	return conn.QueryRow(ctx, sql, args...).Scan(into...)
}

// waitFor waits until a query by the superuser returns true.
func (s *Server) waitFor(sql string) {
	s.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		ok := false
		if err := s.query(sql, nil, []any{&ok}); err == nil && ok {
			return
		}
	}
	s.t.Fatalf("pgtest: not within %s: %s", limit, sql)
}

// Replica starts a streaming standby and waits until it has caught up. name is its name in the
// primary's synchronous_standby_names.
func (s *Server) Replica(name string) *Server {
	s.t.Helper()
	dir := s.Backup()
	socket, port := s.server.Socket()
	primary := fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=postgres application_name=%s'", socket, port, name)
	if err := os.WriteFile(filepath.Join(dir, "postgres", "standby.signal"), nil, 0o644); err != nil { //nolint:gosec // another user reads it
		s.t.Fatalf("pgtest: %v", err)
	}
	settings := append(append([]string{}, s.config.Settings...), primary, "wal_receiver_status_interval = 1s")
	r := &Server{t: s.t, config: localpg.Config{Dir: dir, Settings: settings, NoRestart: true}}
	r.Restart()
	s.t.Cleanup(r.Stop)
	s.waitFor(fmt.Sprintf("select count(*) = 1 from pg_stat_replication where application_name = '%s' and state = 'streaming' and replay_lsn >= pg_current_wal_lsn()", name))
	return r
}

// Synchronous makes commits wait for the named standbys, in the syntax of
// synchronous_standby_names; an empty text turns that off.
func (s *Server) Synchronous(names string) {
	s.t.Helper()
	s.Exec("alter system set synchronous_standby_names = '" + names + "'")
	s.Exec("select pg_reload_conf()")
	s.waitFor("select current_setting('synchronous_standby_names') = '" + names + "'")
}

// Detach stops a standby from receiving changes, so that it falls behind.
func (s *Server) Detach() {
	s.t.Helper()
	s.Exec("alter system set primary_conninfo = ''")
	s.Exec("select pg_reload_conf()")
	s.waitFor("select count(*) = 0 from pg_stat_wal_receiver where status = 'streaming'")
}

// Attach makes a detached standby follow its primary again.
func (s *Server) Attach() {
	s.t.Helper()
	s.Exec("alter system reset primary_conninfo")
	s.Exec("select pg_reload_conf()")
}

// Promote makes a standby the primary of a new timeline, and waits until it accepts writes.
func (s *Server) Promote() {
	s.t.Helper()
	s.Exec("select pg_promote()")
	s.waitFor("select not pg_is_in_recovery()")
}

// Backup returns a data directory with a copy of the cluster.
func (s *Server) Backup() string {
	s.t.Helper()
	dir, err := tempDir()
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.server.Copy(ctx, dir); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	return dir
}

// Restore replaces the cluster with a backup and starts it, so the database returns to its state at
// the time of the backup. Connection strings stay the same. It returns the previous cluster,
// running elsewhere.
func (s *Server) Restore(backup string) (before *Server) {
	s.t.Helper()
	s.Stop()
	aside, err := tempDir()
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(aside) })
	cluster := filepath.Join(s.config.Dir, "postgres")
	err = os.Rename(cluster, filepath.Join(aside, "postgres"))
	if err == nil {
		err = os.Rename(filepath.Join(backup, "postgres"), cluster)
	}
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	s.Restart()
	before = &Server{t: s.t, config: localpg.Config{Dir: aside, Settings: s.config.Settings, NoRestart: true}}
	before.Restart()
	s.t.Cleanup(before.Stop)
	return before
}

// Pause freezes PostgreSQL and all its processes, like a suspended machine; Resume continues them.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.server.Signal(sig); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
}

//go:build unix

package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
)

// Server is a PostgreSQL that belongs to one test, which may kill it. Its methods fail the test
// with Fatal, so only the test's goroutine may call them.
type Server struct {
	t      testing.TB
	config localpg.Config
	server *localpg.Server
}

// Start starts a PostgreSQL with a migrated database. It is durable unless settings, which are
// lines of postgresql.conf, turn that off. After a crash it stays down until Restart. It is stopped
// and removed when the test ends.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	dir, err := tempDir()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	s := &Server{t: t, config: localpg.Config{Dir: dir, Settings: settings, NoRestart: true, Prototypes: prototypes()}}
	s.Restart()
	t.Cleanup(s.Stop)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := migrations.Up(ctx, s.URL()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s
}

// URL returns the connection string. A restart does not change it.
func (s *Server) URL() string { return s.server.URL() }

// Dir returns the data directory, for tests in which Proofline itself starts PostgreSQL there after
// Stop.
func (s *Server) Dir() string { return s.config.Dir }

// KillHard ends PostgreSQL and all its processes with SIGKILL, as a power cut would, and waits
// until they are gone.
func (s *Server) KillHard() {
	s.t.Helper()
	if err := s.server.Kill(); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	<-s.server.Done()
}

// Stop shuts PostgreSQL down cleanly. It does nothing if PostgreSQL is not running.
func (s *Server) Stop() {
	s.t.Helper()
	select {
	case <-s.server.Done():
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.server.Stop(ctx); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
}

// Restart starts PostgreSQL again after KillHard or Stop, and waits until it accepts connections.
func (s *Server) Restart() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	server, err := localpg.Start(ctx, s.config)
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	s.server = server
}

//go:build unix

package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
)

// Server is a PostgreSQL that belongs to one test, which may kill it. Its
// methods end the test when they fail, so only the test's goroutine calls them.
type Server struct {
	t      testing.TB
	config localpg.Config
	server *localpg.Server
}

// Start starts a PostgreSQL with a migrated database. It is durable unless the
// settings, lines of postgresql.conf, say otherwise. When it dies it stays down
// until Restart; it is stopped and removed when the test ends.
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
	s := &Server{t: t, config: localpg.Config{Dir: dir, Settings: settings, NoRestart: true}}
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

// Dir returns the data directory, for a product that is to start PostgreSQL
// there itself after Stop.
func (s *Server) Dir() string { return s.config.Dir }

// KillHard ends PostgreSQL and all its processes with SIGKILL, as a power cut
// would, and returns when they are gone.
func (s *Server) KillHard() {
	s.t.Helper()
	if err := s.server.Kill(); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	<-s.server.Done()
}

// Stop shuts PostgreSQL down in order. It does nothing to one that is down.
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

// Restart starts PostgreSQL again after KillHard or Stop, and returns when it
// has recovered and takes connections.
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

//go:build unix

// Package pgtest gives tests a real PostgreSQL.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// and each test calls URL for a migrated database of its own. One PostgreSQL
// serves the whole test process: it is started by the first call, in a
// temporary directory, and removed at the end. PROOFLINE_TEST_DATABASE_URL
// names another one to use instead, as a role that may create databases.
//
// A database per test, not a schema: notifications and advisory locks stop at
// the border of a database.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
)

// limit bounds each step of starting and stopping PostgreSQL.
const limit = 2 * time.Minute

// shared is the PostgreSQL of this test process.
var shared struct {
	inMain   bool
	settings []string

	start  sync.Once
	err    error
	server *localpg.Server // nil with PROOFLINE_TEST_DATABASE_URL
	dir    string
	admin  string // URL of the database that the others are created from

	template string // name of the migrated database that URL copies
	count    atomic.Int64
}

// Main runs the tests and exits. Settings are lines of postgresql.conf for the
// shared server; "fsync = off" suits packages that do not test durability.
func Main(m *testing.M, settings ...string) {
	shared.inMain = true
	shared.settings = settings
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// URL returns the connection string of a fresh, migrated database that is
// dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	if !shared.inMain {
		t.Fatal("pgtest: the package needs func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	shared.start.Do(func() { shared.err = startShared() })
	if shared.err != nil {
		t.Fatalf("pgtest: %v", shared.err)
	}
	name := fmt.Sprintf("%s_%d", shared.template, shared.count.Add(1))
	if err := exec(shared.admin, "create database "+name+" template "+shared.template); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := exec(shared.admin, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return withDatabase(shared.admin, name)
}

// startShared starts PostgreSQL and makes the migrated template.
func startShared() error {
	shared.admin = os.Getenv("PROOFLINE_TEST_DATABASE_URL")
	if shared.admin == "" {
		dir, err := tempDir()
		if err != nil {
			return err
		}
		shared.dir = dir
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		shared.server, err = localpg.Start(ctx, localpg.Config{Dir: dir, Settings: shared.settings})
		if err != nil {
			return err
		}
		shared.admin = shared.server.URL()
	}
	template := fmt.Sprintf("proofline_test_%d_%d", os.Getpid(), time.Now().UnixMilli())
	if err := exec(shared.admin, "create database "+template); err != nil {
		return err
	}
	shared.template = template
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return migrations.Up(ctx, withDatabase(shared.admin, template))
}

// stopShared undoes startShared.
func stopShared() error {
	if shared.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := shared.server.Stop(ctx); err != nil {
			return err
		}
	} else if shared.template != "" {
		return exec(shared.admin, "drop database "+shared.template)
	}
	if shared.dir != "" {
		return os.RemoveAll(shared.dir)
	}
	return nil
}

// tempDir makes a directory that the user postgres can pass through, which the
// one of testing.T is not.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "proofline-pgtest-")
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}

// withDatabase returns the connection string for another database.
func withDatabase(conn, name string) string {
	u, err := url.Parse(conn)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}

// exec runs one statement on a connection of its own.
func exec(conn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := pgx.Connect(ctx, conn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Server is a PostgreSQL of one test, which may kill it.
type Server struct {
	t      testing.TB
	config localpg.Config
	server *localpg.Server
}

// Start starts a PostgreSQL of the test's own, migrated, durable unless the
// settings say otherwise, and stopped when the test ends. It stays down when
// it dies, until Restart.
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

// URL returns the connection string of the migrated database, the same after a restart.
func (s *Server) URL() string { return s.server.URL() }

// Dir returns the data directory of the product, for a server under test that
// starts PostgreSQL itself after Stop.
func (s *Server) Dir() string { return filepath.Clean(s.config.Dir) }

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
		s.t.Errorf("pgtest: %v", err)
	}
}

// Restart starts PostgreSQL again after KillHard or Stop and returns when it
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

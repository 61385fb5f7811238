//go:build unix

// Package pgtest provides tests with a real PostgreSQL.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// and each test calls URL for a migrated schema of its own. One PostgreSQL serves the whole test
// process: the first call starts it in a temporary directory, which is removed at the end.
// PROOFLINE_TEST_DATABASE_URL names another database to use instead.
//
// Each test gets a schema, because creating one takes a fifth of the time of copying a database
// from a template. The tests of a process therefore share roles, advisory locks and notification
// channels.
package pgtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
)

const (
	limit     = 2 * time.Minute // time limit of each step of starting and stopping PostgreSQL
	dirPrefix = "proofline-pgtest-"
)

// shared is the PostgreSQL of this test process.
var shared struct {
	inMain   bool
	settings []string

	start  sync.Once
	url    string
	err    error           // error from starting the server
	server *localpg.Server // nil with PROOFLINE_TEST_DATABASE_URL
	dir    string          // "" with PROOFLINE_TEST_DATABASE_URL
}

// Main runs the tests and exits. Settings are lines of postgresql.conf for the
// shared server: "fsync = off" suits packages that do not test durability.
func Main(m *testing.M, settings ...string) {
	shared.inMain = true
	shared.settings = append([]string{"max_connections = 300"}, settings...)
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = cmp.Or(code, 1)
	}
	os.Exit(code)
}

// URL returns the connection string of a fresh, migrated schema. The schema is dropped when the
// test ends, and the test must have closed its connections by then.
func URL(t testing.TB) string {
	t.Helper()
	if !shared.inMain {
		t.Fatal("pgtest: the package needs func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	shared.start.Do(func() { shared.err = startShared() })
	if shared.err != nil {
		t.Fatalf("pgtest: %v", shared.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	schema := "test_" + strings.ToLower(rand.Text())
	if err := exec(ctx, shared.url, "create schema "+schema); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { dropSchema(t, schema) })
	conn, err := withSchema(shared.url, schema)
	if err == nil {
		err = migrations.Up(ctx, conn)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return conn
}

// AsServer returns the connection string of the server's role for the result of URL, NewClock or
// Start. This role can append to the log but never change it. If that role cannot log in, because
// the database is a given one or its user is not the superuser, AsServer returns the string
// unchanged.
func AsServer(conn string) string {
	u, err := url.Parse(conn)
	if err != nil || u.Query().Get("user") != "postgres" || !strings.HasPrefix(u.Query().Get("host"), "/") {
		return conn
	}
	q := u.Query()
	q.Set("user", "proofline_server")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq does not decode +
	return u.String()
}

// dropSchema fails the test if one of its connections still holds a lock.
func dropSchema(t testing.TB, schema string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := exec(ctx, shared.url, "set lock_timeout = '10s'; drop schema "+schema+" cascade"); err != nil {
		t.Errorf("pgtest: drop schema, is a transaction of the test still open? %v", err)
	}
}

// startShared starts PostgreSQL, or uses the given database.
func startShared() (err error) {
	if shared.url = os.Getenv("PROOFLINE_TEST_DATABASE_URL"); shared.url != "" {
		return nil
	}
	if shared.dir, err = tempDir(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	config := localpg.Config{Dir: shared.dir, Settings: shared.settings, Prototypes: prototypes()}
	shared.server, err = localpg.Start(ctx, config)
	if err != nil {
		return err
	}
	shared.url = shared.server.URL()
	return nil
}

// prototypes returns the directory with a prototype of clusters, in the user's cache; "" if there is
// no such directory.
func prototypes() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "proofline-pgtest")
}

// stopShared stops what startShared started and removes its directory.
func stopShared() (err error) {
	if shared.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err = shared.server.Stop(ctx)
	}
	if shared.dir != "" {
		err = errors.Join(err, os.RemoveAll(shared.dir))
	}
	return err
}

// tempDir makes a directory that the user postgres can traverse, unlike those of testing.T. Its
// name contains the process id, so that a later process can remove it if this one is killed.
func tempDir() (string, error) {
	removeAbandoned()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// removeAbandoned removes the directories of dead test processes.
func removeAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*-*")) // the pattern is well formed
	for _, dir := range dirs {
		var pid int
		_, err := fmt.Sscanf(filepath.Base(dir), dirPrefix+"%d-", &pid)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}

// withSchema returns the connection string, in either of libpq's forms, with another search_path.
func withSchema(conn, schema string) (string, error) {
	if !strings.Contains(conn, "://") {
		return conn + " search_path=" + schema, nil
	}
	u, err := url.Parse(conn)
	if err != nil {
		return "", fmt.Errorf("parse connection string: %w", err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq does not decode +
	return u.String(), nil
}

// exec runs statements on a separate connection.
func exec(ctx context.Context, conn, statements string) error {
	c, err := pgx.Connect(ctx, conn)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, statements)
	return errors.Join(err, c.Close(ctx))
}

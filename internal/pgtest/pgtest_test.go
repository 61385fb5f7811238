//go:build unix

package pgtest_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/proofline/proofline/internal/pgtest"
)

// abandon is an environment variable that makes the test process die while PostgreSQL is running.
const abandon = "PGTEST_TEST_ABANDON"

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

func query(t *testing.T, url, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var value string
	if err := conn.QueryRow(t.Context(), statement).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// TestURL checks that concurrent tests each get an empty, migrated schema.
func TestURL(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 8)
	t.Run("group", func(t *testing.T) {
		for i := range cap(seen) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				url := pgtest.URL(t)
				seen <- query(t, url, "select current_schema()")
				if got := query(t, url, "select max(version_id)::text from goose_db_version"); got == "0" {
					t.Error("the schema is not migrated")
				}
				if got := query(t, url, "select (to_regclass('mine') is null)::text"); got != "true" {
					t.Error("the schema holds a table of another test")
				}
				conn, err := pgx.Connect(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(t.Context())
				if _, err := conn.Exec(t.Context(), "create table mine ()"); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	close(seen)
	schemas := map[string]bool{}
	for schema := range seen {
		schemas[schema] = true
	}
	if len(schemas) != cap(seen) {
		t.Errorf("%d tests had %d schemas", cap(seen), len(schemas))
	}
	for schema := range schemas {
		if got := query(t, pgtest.URL(t), "select (to_regnamespace('"+schema+"') is null)::text"); got != "true" {
			t.Errorf("schema %s is still there", schema)
		}
	}
}

// TestClock checks that a clock moves forward and back without affecting other schemas.
func TestClock(t *testing.T) {
	t.Parallel()
	c, other := pgtest.NewClock(t), pgtest.NewClock(t)
	for _, by := range []time.Duration{0, 26 * time.Hour, -27 * time.Hour, 1500 * time.Millisecond} {
		c.Pass(by)
		for _, function := range []string{"clock_timestamp()", "now()"} {
			if got := query(t, c.URL, "select (abs(extract(epoch from "+function+" - pg_catalog."+function+") - "+
				fmt.Sprint(c.Ahead().Seconds())+") < 1)::text"); got != "true" {
				t.Errorf("%s is not %v ahead", function, c.Ahead())
			}
		}
	}
	if got := query(t, other.URL, "select (now() = pg_catalog.now())::text"); got != "true" {
		t.Error("another schema's clock is ahead")
	}
}

// child runs one test of this package in another process.
func child(t *testing.T, test string, env ...string) (exitCode int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("run %s: %v", test, err)
	}
	t.Logf("%s in another process: %s", test, out)
	return cmd.ProcessState.ExitCode()
}

func TestGivenDatabase(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "fsync = off", "log_statement = ddl")
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, given := range []string{
		s.URL(),
		fmt.Sprintf("host=%s port=%s user=%s dbname=postgres sslmode=disable", q.Get("host"), q.Get("port"),
			q.Get("user")),
	} {
		if code := child(t, "TestURL", "PROOFLINE_TEST_DATABASE_URL="+given); code != 0 {
			t.Errorf("with %s: exit code %d", given, code)
		}
	}
	if got := query(t, s.URL(), "select count(*)::text from pg_namespace where nspname like 'test%'"); got != "0" {
		t.Errorf("%s schemas are left", got)
	}
	log, err := os.ReadFile(filepath.Join(s.Dir(), "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(log, []byte("create schema test_")); got != 2*(8+8) {
		t.Errorf("the given database served %d schemas", got)
	}
}

func TestKillHard(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	if got := query(t, s.URL(), "show fsync"); got != "on" {
		t.Errorf("fsync = %s", got)
	}
	query(t, s.URL(), "select max(version_id)::text from goose_db_version")
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "create table t (i int)"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := conn.Exec(t.Context(), "insert into t values ($1)", i); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "begin; insert into t values (-1)"); err != nil {
			t.Fatal(err)
		}
		s.KillHard()
		if err := conn.Ping(t.Context()); err == nil {
			t.Fatal("a session outlived KillHard")
		}
		if _, err := pgx.Connect(t.Context(), s.URL()); err == nil {
			t.Fatal("PostgreSQL runs after KillHard")
		}
		s.Restart()
		if conn, err = pgx.Connect(t.Context(), s.URL()); err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
	}
	if got := query(t, s.URL(), "select string_agg(i::text, ' ' order by i) from t"); got != "0 1 2" {
		t.Errorf("after three crashes t holds %s", got)
	}
	s.Stop()
	s.Stop()
	s.Restart()
	query(t, s.URL(), "select 'ok'")
}

// TestAbandoned checks that the directory of a dead test process is removed by the next one.
func TestAbandoned(t *testing.T) {
	if os.Getenv(abandon) != "" {
		pgtest.URL(t)
		os.Exit(3)
	}
	tmp, err := os.MkdirTemp("/tmp", "abandoned-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	if code := child(t, "TestAbandoned", abandon+"=1"); code != 3 {
		t.Fatalf("exit code %d", code)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) != 1 {
		t.Fatalf("the dead process left %v (%v), want its directory", left, err)
	}
	pidFile := filepath.Join(tmp, left[0].Name(), "postgres", "postmaster.pid")
	for range 1000 { // on Linux, the kernel tells the orphan to shut down
		if _, err := os.Stat(pidFile); errors.Is(err, os.ErrNotExist) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s := pgtest.Start(t, "fsync = off")
	if filepath.Dir(s.Dir()) != tmp {
		t.Fatalf("the next PostgreSQL is in %s", s.Dir())
	}
	if _, err := os.Stat(filepath.Join(tmp, left[0].Name())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the dead process is still there (%v)", err)
	}
}

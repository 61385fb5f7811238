package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// files returns one migration per text, numbered from 1.
func files(texts ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i, text := range texts {
		fsys[fmt.Sprintf("%04d_test.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
	}
	return fsys
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func value(t *testing.T, conn *pgx.Conn, expression string) string {
	t.Helper()
	var v string
	if err := conn.QueryRow(t.Context(), "select ("+expression+")::text").Scan(&v); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// emptySchema returns a connection string whose schema has no tables.
func emptySchema(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	schema := q.Get("search_path") + "_empty"
	conn := connect(t, u.String())
	run(t, conn, "create schema "+schema)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop schema "+schema+" cascade"); err != nil {
			t.Error(err)
		}
	})
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestUp(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("migration %s is out of sequence, want %sname.sql", name, want)
		}
	}
	url := emptySchema(t)
	conn := connect(t, url)
	for range 2 {
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		const applied = "select string_agg(version_id::text, ' ' order by id) from goose_db_version where version_id > 0"
		var want []string
		for i := range names {
			want = append(want, fmt.Sprint(i+1))
		}
		if got := value(t, conn, applied); got != strings.Join(want, " ") {
			t.Errorf("applied %s, want %v", got, want)
		}
	}
	if got := value(t, conn, "select count(*) from pg_tables where schemaname = 'public'"); got != "0" {
		t.Errorf("%s tables went to the schema public", got)
	}
}

func TestUpContinues(t *testing.T) {
	t.Parallel()
	url := emptySchema(t)
	first, broken, fixed := "create table a (); ", "create table b (); create table a ();", "create table b ();"
	err := migrations.UpFS(t.Context(), url, files(first, broken))
	if err == nil || !strings.Contains(err.Error(), "0002_test.sql") {
		t.Fatalf("a broken migration: %v, want an error with its name", err)
	}
	conn := connect(t, url)
	if a, b := value(t, conn, "to_regclass('a') is not null"), value(t, conn,
		"to_regclass('b') is null"); a+b != "truetrue" {
		t.Error("the broken migration was not undone, or the one before was")
	}
	if err := migrations.UpFS(t.Context(), url, files(first, fixed)); err != nil {
		t.Fatal(err)
	}
	if got := value(t, conn, "to_regclass('b') is not null"); got != "true" {
		t.Error("the repaired migration was not applied")
	}
}

func TestUpTogether(t *testing.T) {
	t.Parallel()
	url := emptySchema(t)
	fsys := files("create table a as select 1 as n; select pg_sleep(0.1);", "update a set n = n + 1;")
	errs := make(chan error)
	for range 8 {
		go func() { errs <- migrations.UpFS(t.Context(), url, fsys) }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := value(t, connect(t, url), "select n from a"); got != "2" {
		t.Errorf("n = %s, want each migration applied once", got)
	}
}

// TestLock checks that a migration waits for others of its schema only.
func TestLock(t *testing.T) {
	t.Parallel()
	url, other := emptySchema(t), emptySchema(t)
	fsys := files("create table a ();")
	holder := connect(t, url)
	run(t, holder, "select pg_advisory_lock("+migrations.LockID+")")

	impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := migrations.UpFS(impatient, url, fsys); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Up with a deadline while the lock is held: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- migrations.UpFS(t.Context(), url, fsys) }()
	if err := migrations.UpFS(t.Context(), other, fsys); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	select {
	case err := <-waiting:
		t.Fatalf("Up did not wait for the lock: %v", err)
	default:
	}
	run(t, holder, "select pg_advisory_unlock("+migrations.LockID+")")
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	if got := value(t, holder, "to_regclass('a') is not null"); got != "true" {
		t.Error("nothing was applied after waiting")
	}
	if got := value(t, holder, "pg_try_advisory_lock("+migrations.LockID+")"); got != "true" {
		t.Error("Up left the lock behind")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	url := emptySchema(t)
	const one, two, three = "create table schema_floor as select 1 as floor;", "create table b ();", "update schema_floor set floor = 3;"
	if err := migrations.UpFS(t.Context(), url, files(one, two)); err != nil {
		t.Fatal(err)
	}
	if err := migrations.UpFS(t.Context(), url, files(one)); err != nil {
		t.Errorf("the version before, on a schema that only has more: %v", err)
	}
	if err := migrations.UpFS(t.Context(), url, files(one, two, three)); err != nil {
		t.Fatal(err)
	}
	err := migrations.UpFS(t.Context(), url, files(one, two))
	if !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "migration 3") {
		t.Errorf("below the floor: %v, want ErrNewer", err)
	}
	err = migrations.Up(t.Context(), strings.Replace(url, "_empty", "_missing", 1))
	if !errors.Is(err, migrations.ErrNoSchema) {
		t.Errorf("a missing schema: %v, want ErrNoSchema", err)
	}
	if err := migrations.Up(t.Context(), "not a connection string"); err == nil {
		t.Error("a broken connection string was accepted")
	}
}

// TestServerRole checks that the server's role gets ErrOwner only if there is something to migrate.
func TestServerRole(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	server := pgtest.AsServer(url)
	if server == url {
		t.Skip("the given database lets the server's role in with a password alone")
	}
	if err := migrations.Up(t.Context(), server); err != nil {
		t.Errorf("a migrated schema: %v", err)
	}
	run(t, connect(t, url), "delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)")
	if err := migrations.Up(t.Context(), server); !errors.Is(err, migrations.ErrOwner) {
		t.Errorf("a migration is missing: %v, want ErrOwner", err)
	}
	run(t, connect(t, url), "insert into goose_db_version (version_id, is_applied) values (9999, true)")
	if err := migrations.Up(t.Context(), server); err != nil {
		t.Errorf("a newer schema that only has more: %v", err)
	}
	run(t, connect(t, url), "update schema_floor set floor = 9999")
	if err := migrations.Up(t.Context(), server); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("a newer schema that has less: %v, want ErrNewer", err)
	}
}

// TestUpIsSilent checks that nothing is printed, because other programs parse the output of
// commands.
func TestUpIsSilent(t *testing.T) {
	url := emptySchema(t)
	stdout, stderr := os.Stdout, os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout, os.Stderr = w, w
	upErr := migrations.UpFS(t.Context(), url, files("create table a ();"))
	os.Stdout, os.Stderr = stdout, stderr
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if upErr != nil || err != nil || len(text) > 0 {
		t.Errorf("Up printed %q (%v, %v)", text, upErr, err)
	}
}

// TestTokenAlerts checks that the migration adds the new kind of alert only where all others were
// enabled.
func TestTokenAlerts(t *testing.T) {
	t.Parallel()
	url := emptySchema(t)
	earlier := fstest.MapFS{}
	names, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name >= "0013" {
			break
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		earlier[name] = &fstest.MapFile{Data: text}
	}
	if err := migrations.UpFS(t.Context(), url, earlier); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	const all = "{fork_seen,beacon_late,database,room_paused,room_ended,outflow_behind,no_shows,line_full,endpoint_disabled}"
	for i, kinds := range []string{all, "{line_full,room_ended}", "{}"} {
		run(t, conn, fmt.Sprintf(`insert into alert_settings (org_id, emails, endpoints, kinds, no_shows, since)
			values ('00000000-0000-8000-8000-00000000000%d', '{}', '{}', '%s', 30, now())`, i, kinds))
	}
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	want := all[:len(all)-1] + ",token_ends} {line_full,room_ended} {}"
	if got := value(t, conn, "select string_agg(kinds::text, ' ' order by org_id) from alert_settings"); got != want {
		t.Errorf("kinds %s, want %s", got, want)
	}
}

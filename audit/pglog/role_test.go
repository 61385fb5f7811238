package pglog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

// waysBack are statements with which a session could try to regain more rights than it logged in with.
var waysBack = []string{
	"reset role", "set role none", "set role postgres", "set role owner_of_schema", "reset session authorization",
	"set session authorization postgres", "grant postgres to proofline_server", "alter role proofline_server superuser",
	"grant update, delete, truncate on log_bundles, log_tile_roots to proofline_server",
	"grant update, delete on log_heads to proofline_server", "discard all",
}

// changes are statements that change the log, which no session of the server may do.
var changes = []string{
	"update log_bundles set entries = '\\x0000'", "update log_bundles set first = 0", "delete from log_bundles", "truncate log_bundles",
	"update log_tile_roots set hash = ''", "delete from log_tile_roots", "truncate log_tile_roots", "drop table log_bundles",
	"alter table log_bundles add column forged text", "create trigger forge before insert on log_bundles execute function suppress_redundant_updates_trigger()",
	"create rule forge as on insert to log_bundles do instead nothing", "alter table log_bundles disable trigger all",
	"update log_heads set archived = ''", "update log_heads set room_id = gen_random_uuid()", "delete from log_heads",
	"insert into log_heads (room_id, root, archived) values (gen_random_uuid(), decode(repeat('00', 32), 'hex'), 'sale')",
	"copy (select 1) to program 'true'", "drop schema if exists public cascade",
}

// TestRoleHasNoWayBack tries every way to another role on a connection of the server's own pool, and then
// every change of the log.
func TestRoleHasNoWayBack(t *testing.T) {
	const insufficientPrivilege = "42501" // https://www.postgresql.org/docs/15/errcodes-appendix.html
	database := pgtest.Start(t, "fsync = off")
	owner, err := pgx.Connect(t.Context(), database.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if _, err := owner.Exec(t.Context(), "create role owner_of_schema; grant all on schema public to owner_of_schema"); err != nil {
		t.Fatal(err)
	}
	pool := servertest.Pool(t, database.URL())
	for _, way := range waysBack {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Exec(t.Context(), way) // refused, or without effect
		for _, change := range changes {
			var refused *pgconn.PgError
			_, err := conn.Exec(t.Context(), change)
			if !errors.As(err, &refused) || refused.Code != insufficientPrivilege {
				t.Errorf("%s; %s: %v, want it refused", way, change, err)
			}
		}
		conn.Release()
	}
}

// TestServerEndsItsOwnSessions: a node must be able to end a session of another node that holds a
// room's lock, but no session of another role.
func TestServerEndsItsOwnSessions(t *testing.T) {
	database := pgtest.Start(t, "fsync = off")
	pool := servertest.Pool(t, database.URL())
	for _, test := range []struct {
		url  string
		ends bool
	}{{pgtest.AsServer(database.URL()), true}, {database.URL(), false}} {
		other, err := pgx.Connect(t.Context(), test.url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pool.Exec(t.Context(), "select pg_terminate_backend($1, 10000)", other.PgConn().PID())
		if (err == nil) != test.ends || (other.Ping(t.Context()) != nil) != test.ends {
			t.Errorf("%s: ended %v, want %v: %v", test.url, !test.ends, test.ends, err)
		}
		_ = other.Close(t.Context())
	}
}

// TestCheckRole checks that excessive rights of a login role are reported.
func TestCheckRole(t *testing.T) {
	database := pgtest.Start(t, "fsync = off")
	owner, err := pgx.Connect(t.Context(), database.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	const member = "create role LOGIN login in role proofline_server"
	for i, test := range []struct{ set, power string }{
		{member, ""},
		{"create role LOGIN superuser login", "LOGIN is a superuser"},
		{"create role LOGIN createrole login in role proofline_server", "LOGIN may create roles"},
		{member + ", postgres", "LOGIN can become postgres, which is a superuser"},
		{member + ", postgres noinherit", "LOGIN can become postgres"},
		{member + ", pg_write_all_data", "LOGIN may change the tables"},
		{member + "; grant update (entries) on log_bundles to LOGIN", "LOGIN may change the tables"},
		{member + "; grant truncate on log_tile_roots to LOGIN", "LOGIN may change the tables"},
		{member + "; grant update (archived) on log_heads to LOGIN", "LOGIN may change the tables"},
		{member + "; grant delete on log_heads to LOGIN", "LOGIN may change the tables"},
		{member + "; create role go; grant delete on log_bundles to go; grant go to LOGIN", "LOGIN may change the tables"},
		{member + " noinherit; create role stay; grant delete on log_bundles to stay; grant stay to LOGIN", "LOGIN can become stay, which may change"},
		{member + "; alter table log_bundles owner to LOGIN", "LOGIN owns the tables"},
		{member + "; alter table log_bundles owner to postgres; alter database postgres owner to LOGIN", "LOGIN owns the database"},
	} {
		login := fmt.Sprintf("login_%d", i)
		set, power := strings.ReplaceAll(test.set, "LOGIN", login), strings.ReplaceAll(test.power, "LOGIN", login)
		if _, err := owner.Exec(t.Context(), set); err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		pool := servertest.Pool(t, strings.Replace(database.URL(), "user=postgres", "user="+login, 1))
		err := pglog.CheckRole(t.Context(), pool)
		var found *pglog.RoleError
		if (err == nil) != (power == "") || err != nil && (!errors.As(err, &found) || !strings.Contains(err.Error(), power)) {
			t.Errorf("%s: %v, want %q", set, err, power)
		}
	}
	if err := pglog.CheckRole(t.Context(), servertest.Pool(t, pgtest.AsServer(database.URL()))); err != nil {
		t.Errorf("the server's own role: %v", err)
	}
}

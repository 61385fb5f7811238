package pglog_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
)

func TestPoolConfig(t *testing.T) {
	c, err := pglog.PoolConfig("postgres://db.example.com/x?pool_max_conns=3")
	if err != nil || c.MaxConns != 3 {
		t.Errorf("the URL's number of connections: %+v, %v", c, err)
	}
	c, err = pglog.PoolConfig("postgres://db.example.com/x")
	if err != nil || c.MaxConns < 16 {
		t.Errorf("the default number of connections: %+v, %v", c, err)
	}
	if _, err := pglog.PoolConfig("postgres://db.example.com:port/x"); err == nil {
		t.Error("a malformed URL is taken")
	}
}

// TestSession checks the session settings of the server's connections, in a database configured to lose
// commits.
func TestSession(t *testing.T) {
	database := pgtest.Start(t, "synchronous_commit = off")
	config, err := pglog.PoolConfig(database.URL())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for query, want := range map[string]string{
		"select current_user":                      pglog.Role,
		"show synchronous_commit":                  "on",
		"show idle_in_transaction_session_timeout": "5s",
		"show application_name":                    "proofline",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
	const insufficientPrivilege = "42501" // https://www.postgresql.org/docs/15/errcodes-appendix.html
	for _, statement := range []string{"delete from log_bundles", "update log_bundles set entries = '\\x0000'", "truncate log_bundles", "drop table log_bundles"} {
		var refused *pgconn.PgError
		if _, err := pool.Exec(t.Context(), statement); !errors.As(err, &refused) || refused.Code != insufficientPrivilege {
			t.Errorf("%s: %v, want it refused", statement, err)
		}
	}
}

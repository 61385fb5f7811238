package server

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestSession checks what every connection of the server is allowed, on a
// database set up to lose commits.
func TestSession(t *testing.T) {
	database := pgtest.Start(t, "synchronous_commit = off")
	config, err := poolConfig(database.URL())
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
		"show idle_in_transaction_session_timeout": "20s",
		"show application_name":                    "proofline",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
	const insufficientPrivilege = "42501" // https://www.postgresql.org/docs/15/errcodes-appendix.html
	for _, statement := range []string{"delete from log_entries", "update log_entries set entry = ''", "truncate log_entries", "drop table log_entries"} {
		var refused *pgconn.PgError
		if _, err := pool.Exec(t.Context(), statement); !errors.As(err, &refused) || refused.Code != insufficientPrivilege {
			t.Errorf("%s: %v, want it refused", statement, err)
		}
	}
}

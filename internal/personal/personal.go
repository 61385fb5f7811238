// Package personal keeps personal data no longer than it is needed. The packages that own tables declare a [Rule]
// for what a table holds about persons, and [Store] deletes the rows whose time is up.
package personal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrBusy is returned while another server deletes personal data.
var ErrBusy = errors.New("another server deletes personal data")

// Rule says what a table holds about persons, and until when.
type Rule struct {
	Table   string
	Columns []string // that hold it
	Holds   string   // what they hold, and what for
	Until   string   // until when, in words
	// Due is the SQL condition of rows whose time is up. In it, @since is the time back to which personal data is kept,
	// and @now the current time. Empty: a change by the organization deletes the rows.
	Due   string
	Blank string // SQL assignments for rows that are due; empty: they are deleted
}

// Someone stands for a name that is kept no longer.
const Someone = "someone"

// Interval returns a duration as SQL.
func Interval(d time.Duration) string {
	return fmt.Sprintf("interval '%d seconds'", int64(d.Seconds()))
}

// Millis returns the SQL of a time as milliseconds since the Unix epoch.
func Millis(time string) string { return "(extract(epoch from " + time + ") * 1000)::bigint" }

// Times are those that rules compare with.
type Times struct {
	Since time.Time // data from before is deleted; zero: none is
	Now   time.Time
}

// where returns a rule's condition.
func (r *Rule) where() string {
	return strings.NewReplacer("@since", "@since::timestamptz", "@now", "@now::timestamptz").Replace("(" + r.Due + ")")
}

func (t Times) args(limit int) pgx.NamedArgs {
	return pgx.NamedArgs{"since": t.Since, "now": t.Now, "limit": limit}
}

// Store deletes personal data in PostgreSQL. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Now returns the database's time.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	if err := s.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's time: %w", err)
	}
	return now, nil
}

// Count returns the number of rows that a rule deletes or blanks.
func (s *Store) Count(ctx context.Context, r *Rule, t Times) (n int64, err error) {
	err = s.pool.QueryRow(ctx, `select count(*) from `+r.Table+` where `+r.where(), t.args(0)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count what is due in %s: %w", r.Table, err)
	}
	return n, nil
}

// Forget deletes or blanks at most limit rows, and returns how many. It returns [ErrBusy].
func (s *Store) Forget(ctx context.Context, r *Rule, t Times, limit int) (int64, error) {
	// A row that a transaction changes meanwhile is compared again.
	where := ` where ` + r.where()
	rows := ` where ctid = any(array(select ctid from ` + r.Table + where + ` limit @limit)) and ` + r.where()
	statement := `delete from ` + r.Table + rows
	if r.Blank != "" {
		statement = `update ` + r.Table + ` set ` + r.Blank + rows
	}
	var tag pgconn.CommandTag
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		var isAlone bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended('proofline personal data in ' ||
			current_schema(), 0))`).Scan(&isAlone); err != nil {
			return err
		}
		if !isAlone {
			return ErrBusy
		}
		tag, err = tx.Exec(ctx, statement, t.args(limit))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("delete what is due in %s: %w", r.Table, err)
	}
	return tag.RowsAffected(), nil
}

// Package pgaccount stores accounts in PostgreSQL: organizations and their hosts, people, members,
// sessions, invitations, tokens and failed attempts. Only this package accesses the tables of
// migrations/0007_accounts.sql and, except for rooms, those of 0006_organizations.sql.
//
// Package account makes the decisions. This package enforces only what must hold within a
// transaction: an organization needs an owner, links and codes work once, and a host is verified
// for one organization. Secrets arrive hashed or sealed.
package pgaccount

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrNotFound is returned when the row does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned when a unique name is taken.
	ErrExists = errors.New("already taken")
	// ErrLastOwner is returned when an organization would lose its last owner.
	ErrLastOwner = errors.New("an organization needs an owner")
	// ErrInUse is returned when removing a host under which a room is published.
	ErrInUse = errors.New("a room uses it")
)

// Store reads and writes accounts. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// exec runs a statement; what describes it in errors.
func exec(ctx context.Context, q querier, what, query string, args ...any) error {
	_, err := changed(ctx, q, what, query, args...)
	return err
}

// must runs a statement that changes a row, or returns [ErrNotFound].
func must(ctx context.Context, q querier, what, query string, args ...any) error {
	n, err := changed(ctx, q, what, query, args...)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// changed runs a statement and returns the number of rows changed.
func changed(ctx context.Context, q querier, what, query string, args ...any) (int64, error) {
	tag, err := q.Exec(ctx, query, args...)
	if err != nil {
		return 0, wrap(what, err)
	}
	return tag.RowsAffected(), nil
}

// one returns the only row, or [ErrNotFound].
func one[T any](ctx context.Context, q querier, what, query string, args ...any) (T, error) {
	rows, _ := q.Query(ctx, query, args...) // rows reports the error, too
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return row, wrap(what, err)
	}
	return row, nil
}

// value returns the only column of the only row, or [ErrNotFound].
func value[T any](ctx context.Context, q querier, what, query string, args ...any) (T, error) {
	rows, _ := q.Query(ctx, query, args...)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		return v, wrap(what, err)
	}
	return v, nil
}

// all returns every row.
func all[T any](ctx context.Context, q querier, what, query string, args ...any) ([]T, error) {
	rows, _ := q.Query(ctx, query, args...)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, wrap(what, err)
	}
	return list, nil
}

// inTx runs f in a transaction.
func (s *Store) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, f)
}

// wrap adds what failed, and maps PostgreSQL's errors to those of this package.
func wrap(what string, err error) error {
	const uniqueViolation = "23505"
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == uniqueViolation {
		return fmt.Errorf("%s: %w", what, ErrExists)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Attempt is the state of the attempts counted under one key.
type Attempt struct {
	Level float64
	At    time.Time // of the latest attempt
	Next  time.Time // earliest time of the next attempt
}

// Attempt locks the state under a key and replaces it by the result of decide. If decide returns an
// error, nothing is stored and Attempt returns that error.
func (s *Store) Attempt(ctx context.Context, key [32]byte, now time.Time, decide func(Attempt) (Attempt, error)) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		const lock = `insert into attempts (key, level, at, next_at) values ($1, 0, $2, $2)
			on conflict (key) do update set key = excluded.key returning level, at, next_at`
		before, err := one[Attempt](ctx, tx, "read attempts", lock, key[:], now)
		if err != nil {
			return err
		}
		after, err := decide(before)
		if err != nil {
			return err
		}
		return exec(ctx, tx, "store attempt", `update attempts set level = $2, at = $3, next_at = $4 where key = $1`,
			key[:], after.Level, after.At, after.Next)
	})
}

// Forget deletes the state under a key.
func (s *Store) Forget(ctx context.Context, key [32]byte) error {
	return exec(ctx, s.pool, "forget attempts", `delete from attempts where key = $1`, key[:])
}

// Tidy deletes sessions that began or were last used before the given times, expired links and
// tokens, and attempts older than a day.
func (s *Store) Tidy(ctx context.Context, now, begun, seen, expired time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(`delete from sessions where created_at <= $1 or seen_at <= $2`, begun, seen)
	batch.Queue(`delete from invitations where expires_at <= $1`, now)
	batch.Queue(`delete from tokens where expires_at < $1`, expired)
	batch.Queue(`delete from attempts where at < $1`, now.Add(-24*time.Hour))
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("tidy accounts: %w", err)
	}
	return nil
}

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
	// ErrFormer is returned when an identity belonged to an account that was removed.
	ErrFormer = errors.New("the account was removed")
	// ErrInUse is returned when removing a host under which a room is published.
	ErrInUse = errors.New("a room uses it")
)

// Store groups the stores of accounts. Each owns the tables that its comment names, and is safe for
// concurrent use.
type Store struct {
	People        *People
	Factors       *Factors
	Sessions      *Sessions
	Organizations *Organizations
	Members       *Members
	Invitations   *Invitations
	Tokens        *Tokens
	Hosts         *Hosts
	Attempts      *Attempts
}

// NewStore returns the stores on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store {
	return &Store{
		People: &People{pool}, Factors: &Factors{pool}, Sessions: &Sessions{pool},
		Organizations: &Organizations{pool}, Members: &Members{pool}, Invitations: &Invitations{pool},
		Tokens: &Tokens{pool}, Hosts: &Hosts{pool}, Attempts: &Attempts{pool},
	}
}

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// exec runs a statement. In errors, what describes it.
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
func inTx(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, f)
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

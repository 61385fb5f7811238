// Package pgwebhook stores webhooks and alerts in PostgreSQL: endpoints, alert settings, cursors into
// transcripts, and the outbox with its log. Only this package accesses the tables of
// migrations/0009_webhooks.sql.
//
// A delivery waits until it is delivered or given up. Nodes share the outbox: [Outbox.Take] leases due
// deliveries, and those of a node that crashed become due again when the lease ends.
package pgwebhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrNotFound is returned when the organization has no such endpoint or delivery.
	ErrNotFound = errors.New("no such endpoint or delivery")
	// ErrTooManyEndpoints is returned when an organization has reached the limit of endpoints.
	ErrTooManyEndpoints = errors.New("too many endpoints")
)

// Store groups the stores of webhooks and alerts. Each is safe for concurrent use.
type Store struct {
	Endpoints     *Endpoints
	AlertSettings *AlertSettings
	Cursors       *Cursors
	Outbox        *Outbox
}

// NewStore returns the stores on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store {
	return &Store{&Endpoints{pool}, &AlertSettings{pool}, &Cursors{pool}, &Outbox{pool}}
}

// write runs a transaction.
func write(ctx context.Context, pool *pgxpool.Pool, what string, do func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, pool, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// found maps pgx.ErrNoRows to [ErrNotFound].
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

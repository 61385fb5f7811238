// Package pgcontrol stores drafts of rooms and answers to requests with an idempotency key in
// PostgreSQL, and locks rooms. Only this package accesses the tables drafts and idempotency_keys of
// migrations/0008_activity.sql.
package pgcontrol

import "github.com/jackc/pgx/v5/pgxpool"

// Store groups the stores for package control and for idempotent requests. Each is safe for concurrent use.
type Store struct {
	Drafts *Drafts
	Keys   *Keys
	Locks  *Locks
}

// NewStore returns the stores on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store {
	return &Store{&Drafts{pool}, &Keys{pool}, &Locks{pool, newTurns(pool.Config().MaxConns)}}
}

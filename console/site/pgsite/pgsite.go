// Package pgsite keeps sites, their rules and their connectors in PostgreSQL. It
// is the only package that knows the tables of migrations/0011_sites.sql.
package pgsite

import (
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrTooMany is returned when an organization has as many of something as it
	// may.
	ErrTooMany = errors.New("too many")
)

// Store reads and writes sites. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

package pgroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Transfers stores sealed secrets until another device takes them. It is safe for concurrent use.
type Transfers struct{ pool *pgxpool.Pool }

// AddTransfer stores a ticket's sealed secret under the hash of a code until it is taken or expires, and
// replaces an earlier one. It also deletes expired ones.
func (s *Transfers) AddTransfer(ctx context.Context, room, ticket uuid.UUID, hash [32]byte, sealed []byte,
	lasts time.Duration) error {
	b := new(pgx.Batch)
	b.Queue("delete from room_transfers where expires_at < now()")
	b.Queue(`insert into room_transfers (room_id, ticket, code_hash, sealed, expires_at) values ($1, $2, $3, $4, now() + $5::interval)
		on conflict (room_id, ticket) do update set code_hash = excluded.code_hash, sealed = excluded.sealed, expires_at = excluded.expires_at`, room, ticket, hash[:], sealed, lasts)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("keep a transfer: %w", err)
	}
	return nil
}

// TakeTransfer returns and deletes the sealed secret stored under the hash of a code; nil: there is none.
func (s *Transfers) TakeTransfer(ctx context.Context, room uuid.UUID, hash [32]byte) (sealed []byte, err error) {
	err = s.pool.QueryRow(ctx,
		"delete from room_transfers where room_id = $1 and code_hash = $2 and expires_at >= now() returning sealed",
		room, hash[:]).Scan(&sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take a transfer: %w", err)
	}
	return sealed, nil
}

package pgroom

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Register is the name of the log of rooms, and its sealed private key.
type Register struct {
	Origin string
	Sealed []byte
}

// Register returns the log of rooms, or [ErrNotFound] before it exists.
func (s *Store) Register(ctx context.Context) (r Register, err error) {
	err = s.pool.QueryRow(ctx, `select origin, sealed from room_log`).Scan(&r.Origin, &r.Sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNotFound
	}
	if err != nil {
		return r, fmt.Errorf("read the log of rooms: %w", err)
	}
	return r, nil
}

// Hosts returns the verified hosts of all organizations, in lower case and without port.
func (s *Store) Hosts(ctx context.Context) ([]string, error) {
	rows, _ := s.pool.Query(ctx, `select host from hosts where verified_at is not null`)
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	return hosts, nil
}

// InsertRegister stores the log of rooms, and calls create with its id in the same transaction. If the log exists, it
// does neither.
func (s *Store) InsertRegister(ctx context.Context, r Register,
	create func(ctx context.Context, tx pgx.Tx, id uuid.UUID) error) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into room_log (origin, sealed) values ($1, $2) on conflict do nothing`,
			r.Origin, r.Sealed)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return create(ctx, tx, RegisterID)
	})
	if err != nil {
		return fmt.Errorf("store the log of rooms: %w", err)
	}
	return nil
}

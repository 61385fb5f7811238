package pgroom

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// AddRound stores the signature of a beacon's round, which was verified.
func (s *Store) AddRound(ctx context.Context, chain [32]byte, round uint64, signature []byte) error {
	_, err := s.pool.Exec(ctx, `insert into beacon_rounds (chain, round, signature) values ($1, $2, $3) on conflict do nothing`,
		chain[:], int64(round), signature) //nolint:gosec // below 2^63 by the grammar
	if err != nil {
		return fmt.Errorf("store round: %w", err)
	}
	return nil
}

// Round returns the signature of a beacon's round, nil when it is not stored.
func (s *Store) Round(ctx context.Context, chain [32]byte, round uint64) (signature []byte, err error) {
	err = s.pool.QueryRow(ctx, `select signature from beacon_rounds where chain = $1 and round = $2`, chain[:], int64(round)).Scan(&signature) //nolint:gosec // below 2^63 by the grammar
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read round: %w", err)
	}
	return signature, nil
}

// AddCosignature stores what a witness said of the checkpoint of a size, which
// was verified. The first one counts.
func (s *Store) AddCosignature(ctx context.Context, room uuid.UUID, size uint64, witness string, cosignature [76]byte) error {
	_, err := s.pool.Exec(ctx, `insert into freeze_cosignatures (room_id, size, witness, cosignature) values ($1, $2, $3, $4) on conflict do nothing`,
		room, int64(size), witness, cosignature[:]) //nolint:gosec // at most 2^60
	if err != nil {
		return fmt.Errorf("store cosignature: %w", err)
	}
	return nil
}

// Cosignatures returns what witnesses said of the checkpoint of a size.
func (s *Store) Cosignatures(ctx context.Context, room uuid.UUID, size uint64) (map[string][76]byte, error) {
	rows, _ := s.pool.Query(ctx, `select witness, cosignature from freeze_cosignatures where room_id = $1 and size = $2`, room, int64(size)) //nolint:gosec // at most 2^60
	by := map[string][76]byte{}
	var witness string
	var cosignature []byte
	_, err := pgx.ForEachRow(rows, []any{&witness, &cosignature}, func() error {
		by[witness] = [76]byte(cosignature)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read cosignatures: %w", err)
	}
	return by, nil
}

package pgroom

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Evidence stores beacon rounds, and witnesses' cosignatures of freezes. It is safe for concurrent use.
type Evidence struct{ pool *pgxpool.Pool }

// AddRound stores the verified signature of a beacon round.
func (s *Evidence) AddRound(ctx context.Context, chain [32]byte, round uint64, signature []byte) error {
	_, err := s.pool.Exec(ctx,
		`insert into beacon_rounds (chain, round, signature) values ($1, $2, $3) on conflict do nothing`,
		chain[:], int64(round), signature) //nolint:gosec // below 2^63 by the grammar
	if err != nil {
		return fmt.Errorf("store round: %w", err)
	}
	return nil
}

// Rounds returns the signatures of the rounds, as far as they are stored.
func (s *Evidence) Rounds(ctx context.Context, chain [32]byte, rounds []uint64) (map[uint64][]byte, error) {
	rows, _ := s.pool.Query(ctx, `select round, signature from beacon_rounds where chain = $1 and round = any($2)`,
		chain[:], bigints(rounds))
	signatures := map[uint64][]byte{}
	var round int64
	var signature []byte
	_, err := pgx.ForEachRow(rows, []any{&round, &signature}, func() error {
		signatures[uint64(round)] = bytes.Clone(signature) //nolint:gosec // as it was stored
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read rounds: %w", err)
	}
	return signatures, nil
}

// bigints converts numbers below 2^63 to the database's type.
func bigints(numbers []uint64) []int64 {
	list := make([]int64, len(numbers))
	for i, n := range numbers {
		list[i] = int64(n) //nolint:gosec // below 2^63
	}
	return list
}

// AddCosignature stores a witness's verified cosignature of the checkpoint of a size. If one is already stored,
// that one stays.
func (s *Evidence) AddCosignature(ctx context.Context, room uuid.UUID, size uint64, witness string,
	cosignature [76]byte) error {
	_, err := s.pool.Exec(ctx,
		`insert into freeze_cosignatures (room_id, size, witness, cosignature) values ($1, $2, $3, $4) on conflict do nothing`,
		room, int64(size), witness, cosignature[:]) //nolint:gosec // at most 2^60
	if err != nil {
		return fmt.Errorf("store cosignature: %w", err)
	}
	return nil
}

// Cosignatures returns the cosignatures of the checkpoints of some sizes, by size and witness.
func (s *Evidence) Cosignatures(ctx context.Context, room uuid.UUID,
	sizes []uint64) (map[uint64]map[string][76]byte, error) {
	rows, _ := s.pool.Query(ctx,
		`select size, witness, cosignature from freeze_cosignatures where room_id = $1 and size = any($2)`, room,
		bigints(sizes))
	by := map[uint64]map[string][76]byte{}
	var size int64
	var witness string
	var cosignature []byte
	_, err := pgx.ForEachRow(rows, []any{&size, &witness, &cosignature}, func() error {
		at := uint64(size) //nolint:gosec // as it was stored
		if by[at] == nil {
			by[at] = map[string][76]byte{}
		}
		by[at][witness] = [76]byte(cosignature)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read cosignatures: %w", err)
	}
	return by, nil
}

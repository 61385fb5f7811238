package pgaccount

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Factors stores second factors and recovery codes, in the columns factor, factor_pending and
// factor_step of the table people, and in the table recovery_codes.
type Factors struct{ pool *pgxpool.Pool }

// SetPending stores a second factor to be confirmed.
func (s *Factors) SetPending(ctx context.Context, id uuid.UUID, sealed []byte) error {
	return must(ctx, s.pool, "store second factor", `update people set factor_pending = $2 where person_id = $1`, id,
		sealed)
}

// Enable makes the pending factor the second factor, unless it was replaced meanwhile. It
// marks step as used, replaces the recovery codes and ends all sessions but one. It returns
// [ErrNotFound].
func (s *Factors) Enable(ctx context.Context, id uuid.UUID, pending []byte, step int64, codes [][]byte,
	keep uuid.UUID) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		const enable = `update people set factor = factor_pending, factor_pending = null, factor_step = $3
			where person_id = $1 and factor_pending = $2`
		if err := must(ctx, tx, "enable second factor", enable, id, pending, step); err != nil {
			return err
		}
		if err := setCodes(ctx, tx, id, codes); err != nil {
			return err
		}
		return endOthers(ctx, tx, id, keep)
	})
}

// Disable removes the second factor and its recovery codes.
func (s *Factors) Disable(ctx context.Context, id uuid.UUID) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := must(ctx, tx, "remove second factor", `update people set factor = null, factor_pending = null
			where person_id = $1`, id); err != nil {
			return err
		}
		return setCodes(ctx, tx, id, nil)
	})
}

// UseStep marks the code of a time step as used; false if it or a later one already was.
func (s *Factors) UseStep(ctx context.Context, id uuid.UUID, step int64) (bool, error) {
	n, err := changed(ctx, s.pool, "use code", `update people set factor_step = $2 where person_id = $1
		and factor_step < $2 and factor is not null`, id, step)
	return n > 0, err
}

// UseCode deletes a recovery code; false if it does not exist.
func (s *Factors) UseCode(ctx context.Context, id uuid.UUID, hash []byte) (bool, error) {
	n, err := changed(ctx, s.pool, "use recovery code",
		`delete from recovery_codes where person_id = $1 and hash = $2`, id, hash)
	return n > 0, err
}

// SetCodes replaces the recovery codes.
func (s *Factors) SetCodes(ctx context.Context, id uuid.UUID, codes [][]byte) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error { return setCodes(ctx, tx, id, codes) })
}

func setCodes(ctx context.Context, tx pgx.Tx, id uuid.UUID, codes [][]byte) error {
	if err := exec(ctx, tx, "remove recovery codes", `delete from recovery_codes where person_id = $1`,
		id); err != nil {
		return err
	}
	return exec(ctx, tx, "store recovery codes", `insert into recovery_codes (person_id, hash) 
		select $1, unnest($2::bytea[])`, id, codes)
}

// CountCodes returns the number of unused recovery codes.
func (s *Factors) CountCodes(ctx context.Context, id uuid.UUID) (int, error) {
	return value[int](ctx, s.pool, "count recovery codes", `select count(*) from recovery_codes where person_id = $1`,
		id)
}

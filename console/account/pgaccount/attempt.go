package pgaccount

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Attempt is the state of the attempts counted under one key.
type Attempt struct {
	Level float64
	At    time.Time // time of the latest attempt
	Next  time.Time // earliest time of the next attempt
}

// Attempts stores the attempts counted against guesses, in the table attempts.
type Attempts struct{ pool *pgxpool.Pool }

// Attempt locks the state under a key and replaces it with the result of decide. If decide returns
// an error, nothing is stored and Attempt returns that error.
func (s *Attempts) Attempt(ctx context.Context, key [32]byte, now time.Time,
	decide func(Attempt) (Attempt, error)) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
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
func (s *Attempts) Forget(ctx context.Context, key [32]byte) error {
	return exec(ctx, s.pool, "forget attempts", `delete from attempts where key = $1`, key[:])
}

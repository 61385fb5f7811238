package pglog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ClockView is one server's view of the database's clock.
type ClockView struct {
	Node   uuid.UUID
	Raw    time.Time     // time of that clock
	Step   time.Duration // how far the clock deviates from the server's expectation; 0: it is within bounds
	Agrees bool          // whether the server's own wall clock agrees with it
}

// Another server's view is current if it is at most clockFresh old, by the database's clock: running servers report
// theirs every second. One that is more than clockAhead in the future was reported before that clock was set back.
const (
	clockFresh = 15 * time.Second
	clockAhead = 3 * time.Second
)

// Stamp sets the function that decides the time of every append: it receives the time of the
// database's clock and returns the time to use, or an error to refuse the append. It must be called
// before the first append.
func (s *Store) Stamp(decide func(clock time.Time) (time.Time, error)) { s.stamp = decide }

// ExchangeClock publishes this server's view of the database's clock. It returns the current views
// of the other servers, and the number of the latest confirmation.
func (s *Store) ExchangeClock(ctx context.Context, own ClockView) (others []ClockView, confirmed int64, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`insert into clock_views (node_id, raw_ms, step_ms, agrees) values ($1, $2, $3, $4)
		on conflict (node_id) do update set raw_ms = excluded.raw_ms, step_ms = excluded.step_ms, agrees = excluded.agrees`,
		own.Node, own.Raw.UnixMilli(), own.Step.Milliseconds(), own.Agrees)
	batch.Queue(`select node_id, raw_ms, step_ms, agrees from clock_views where node_id <> $1 and raw_ms between $2 and $3`,
		own.Node, own.Raw.Add(-clockFresh).UnixMilli(), own.Raw.Add(clockAhead).UnixMilli()).Query(func(rows pgx.Rows) error {
		var v ClockView
		var raw, step int64
		_, err := pgx.ForEachRow(rows, []any{&v.Node, &raw, &step, &v.Agrees}, func() error {
			v.Raw, v.Step = time.UnixMilli(raw), time.Duration(step)*time.Millisecond
			others = append(others, v)
			return nil
		})
		return err
	})
	batch.Queue(`select coalesce(max(id), 0) from clock_confirmations`).QueryRow(func(row pgx.Row) error { return row.Scan(&confirmed) })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, 0, fmt.Errorf("exchange views of the clock: %w", err)
	}
	return others, confirmed, nil
}

// ConfirmClock makes all servers accept the database's clock as it is.
func (s *Store) ConfirmClock(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, `insert into clock_confirmations default values`); err != nil {
		return fmt.Errorf("confirm the clock: %w", err)
	}
	return nil
}

package pgroom

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Admission is a pass with its times in milliseconds since the Unix epoch.
type Admission struct {
	Room, Pass uuid.UUID
	Expires    int64 // the pass
	Ends       int64 // the session, without touch or release
}

// Session is what became of an admission.
type Session struct {
	Until    int64 // milliseconds since the Unix epoch
	Redeemed bool
	Released bool

	Changed bool // by this request
}

// clockMS is the database's clock in milliseconds, as it is and not as it was
// when the transaction began: one that waited for another may come too late.
const clockMS = `floor(extract(epoch from clock_timestamp()) * 1000)::bigint`

// Redeem uses a pass up. Of all requests, on whatever node, one changes the
// session; none does once the pass has expired or its session was released.
func (s *Store) Redeem(ctx context.Context, a Admission) (Session, error) {
	return s.change(ctx, a, `set redeemed_at = clock_timestamp() where redeemed_at is null and $3::bigint > `+clockMS, a.Expires)
}

// Touch lets a session last length milliseconds from now on, but not beyond
// most, unless it is over.
func (s *Store) Touch(ctx context.Context, a Admission, length, most int64) (Session, error) {
	return s.change(ctx, a, `set until_ms = greatest(until_ms, least(`+clockMS+` + $3::bigint, $4::bigint)) where until_ms > `+clockMS, length, most)
}

// Release ends a session now, unless it is over.
func (s *Store) Release(ctx context.Context, a Admission) (Session, error) {
	return s.change(ctx, a, `set released_at = clock_timestamp(), until_ms = `+clockMS+` where until_ms > `+clockMS)
}

// change makes sure that the session has a row, updates it unless it was
// released, and reads it. The update waits for that of another request, and
// then sees what it did.
func (s *Store) change(ctx context.Context, a Admission, update string, args ...any) (session Session, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`insert into room_sessions (room_id, pass_id, ends_ms, until_ms) values ($1, $2, $3, $3) on conflict do nothing`, a.Room, a.Pass, a.Ends)
	batch.Queue(`update room_sessions `+update+` and room_id = $1 and pass_id = $2 and released_at is null`, append([]any{a.Room, a.Pass}, args...)...)
	batch.Queue(`select until_ms, redeemed_at is not null, released_at is not null from room_sessions where room_id = $1 and pass_id = $2`, a.Room, a.Pass)
	results := s.pool.SendBatch(ctx, batch)
	defer func() {
		if err = errors.Join(err, results.Close()); err != nil {
			err = fmt.Errorf("change session: %w", err)
		}
	}()
	if _, err := results.Exec(); err != nil {
		return session, err
	}
	tag, err := results.Exec()
	if err != nil {
		return session, err
	}
	session.Changed = tag.RowsAffected() == 1
	return session, results.QueryRow().Scan(&session.Until, &session.Redeemed, &session.Released)
}

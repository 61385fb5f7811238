package pgwebhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Listener is an organization, and the time from which its rooms are followed.
type Listener struct {
	Org   uuid.UUID
	Since time.Time
}

// Room is a room to follow, with its cursor if it has one.
type Room struct {
	ID      uuid.UUID
	Org     uuid.UUID
	Slug    string
	Created time.Time
	// IsRehearsal reports whether the visitors are synthetic.
	IsRehearsal bool
	Next        *int64
	State       []byte // JSON
}

// Cursors stores the positions up to which transcripts have been followed, in the table
// transcript_cursors.
type Cursors struct{ pool *pgxpool.Pool }

// Rooms returns the listeners' rooms whose end has not been processed, without those that were imported after it.
func (s *Cursors) Rooms(ctx context.Context, listeners []Listener) ([]Room, error) {
	orgs, since := make([]uuid.UUID, len(listeners)), make([]time.Time, len(listeners))
	for i, l := range listeners {
		orgs[i], since[i] = l.Org, l.Since
	}
	rows, _ := s.pool.Query(ctx, `select r.room_id, r.org_id, r.slug, r.created_at, r.rehearsal_of is not null,
		c.next, c.state
		from unnest($1::uuid[], $2::timestamptz[]) as l (org_id, since)
		join rooms r on r.org_id = l.org_id
		left join transcript_cursors c on c.room_id = r.room_id
		where r.vkey is null
		and case when c.room_id is null then r.ended_at is null or r.ended_at >= l.since else not c.done end`, orgs, since)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Room])
	if err != nil {
		return nil, fmt.Errorf("read rooms to follow: %w", err)
	}
	return list, nil
}

// Cursor is the position up to which a room has been followed.
type Cursor struct {
	Next  uint64
	State []byte // JSON
	Done  bool

	looked time.Time // time of the claim, as stored
}

// Begin stores the first cursor of a room, unless it has one.
func (s *Cursors) Begin(ctx context.Context, r Room, c Cursor, now time.Time) error {
	_, err := s.pool.Exec(ctx, `insert into transcript_cursors (room_id, org_id, next, state, done, looked_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict do nothing`, r.ID, r.Org, int64(c.Next), c.State, c.Done, now.Add(-time.Hour)) //nolint:gosec // below 2^63
	if err != nil {
		return fmt.Errorf("begin to follow: %w", err)
	}
	return nil
}

// Claim claims the cursor of a room for [Cursors.Advance]. It returns false if the room is done, or
// was claimed by a node after latest.
func (s *Cursors) Claim(ctx context.Context, room uuid.UUID, now, latest time.Time) (c Cursor, ok bool, err error) {
	var next int64
	err = s.pool.QueryRow(ctx, `update transcript_cursors set looked_at = $2 where room_id = $1 and looked_at <= $3
		and not done
		returning next, state, looked_at`, room, now, latest).Scan(&next, &c.State, &c.looked)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("claim room to follow: %w", err)
	}
	c.Next = uint64(next) //nolint:gosec // never negative
	return c, true, nil
}

// Advance moves a claimed cursor and stores the resulting deliveries and alerts in one transaction.
// It has no effect if another node has claimed or moved the cursor since.
func (s *Cursors) Advance(ctx context.Context, room uuid.UUID, was, c Cursor, out Outgoing) error {
	return write(ctx, s.pool, "follow room", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update transcript_cursors set next = $2, state = $3, done = $4
			where room_id = $1 and next = $5 and looked_at = $6 and not done`,
			room, int64(c.Next), c.State, c.Done, int64(was.Next), was.looked) //nolint:gosec // below 2^63
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return out.insert(ctx, tx)
	})
}

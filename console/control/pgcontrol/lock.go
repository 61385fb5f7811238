package pgcontrol

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Locks locks rooms.
type Locks struct {
	pool  *pgxpool.Pool
	turns *turns
}

// Do runs do while holding the lock of a room, which excludes other calls for the room on all
// nodes.
//
// It occupies a connection while it waits for another node and while do runs, which uses further connections.
// Therefore the calls of one node take turns before they get a connection, so that some connections are always
// left for do and for other requests.
func (s *Locks) Do(ctx context.Context, roomID uuid.UUID, do func(context.Context) error) error {
	leave, err := s.turns.take(ctx, roomID)
	if err != nil {
		return fmt.Errorf("lock room: %w", err)
	}
	defer leave()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('proofline/control/' || $1, 0))`,
			roomID.String()); err != nil {
			return fmt.Errorf("lock room: %w", err)
		}
		return do(ctx)
	})
	return err //nolint:wrapcheck // already wrapped, or from do
}

// lockedShare is the divisor for the share of connections that may hold locks.
const lockedShare = 4

// turns orders the calls of one node. Safe for concurrent use.
type turns struct {
	places chan struct{} // holds one value per room that is locked

	mu    sync.Mutex // guards rooms
	rooms map[uuid.UUID]*turn
}

// turn orders the calls for one room.
type turn struct {
	taken chan struct{} // holds a value while a call has the turn
	wants int           // number of calls that have the turn or wait for it
}

func newTurns(conns int32) *turns {
	return &turns{places: make(chan struct{}, max(1, conns/lockedShare)), rooms: map[uuid.UUID]*turn{}}
}

// take waits for the turn of a room, and then for a place. However many calls want the same room,
// they occupy one place.
func (t *turns) take(ctx context.Context, roomID uuid.UUID) (leave func(), err error) {
	one := t.queue(roomID)
	select {
	case one.taken <- struct{}{}:
	case <-ctx.Done():
		t.quit(roomID, one)
		return nil, ctx.Err()
	}
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		<-one.taken
		t.quit(roomID, one)
		return nil, ctx.Err()
	}
	return func() {
		<-t.places
		<-one.taken
		t.quit(roomID, one)
	}, nil
}

func (t *turns) queue(roomID uuid.UUID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.rooms[roomID]
	if one == nil {
		one = &turn{taken: make(chan struct{}, 1)}
		t.rooms[roomID] = one
	}
	one.wants++
	return one
}

func (t *turns) quit(roomID uuid.UUID, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.wants--; one.wants == 0 {
		delete(t.rooms, roomID)
	}
}

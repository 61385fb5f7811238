package room

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// How often a node reads changes outside of the transcripts, and how long a session keeps its place after it
// ends: all nodes must read a touch made at the last moment before the place goes to another visitor.
const (
	surveyEvery = 250 * time.Millisecond
	sessionLag  = fairness.Time(500) // milliseconds
)

// flow holds the parts of a room's admission control that are not in the transcript: pass keys, whether a
// backend makes the calls, and sessions that end before or after their passes. The zero value has the room's
// first pass key and calls by the clock.
type flow struct {
	store  *pgroom.Store
	master *keys.MasterKey

	mu    sync.Mutex  // guards changes of pull and turns
	pull  atomic.Bool // a backend makes the calls; readable without the lock
	turns int         // number of changes of pull made on this node

	guests guests // unqueued sessions

	shift  atomic.Int64 // visitors at the site minus valid passes; may be negative
	read   atomic.Int64 // latest time for which shift is known, in Unix milliseconds
	added  atomic.Pointer[[]passKey]
	reread atomic.Int64 // when the keys were last read because of an unknown key, in Unix nanoseconds

	failing bool // keys could not be read, and this is logged; only the ticker uses it
}

// isPull reports whether visitors are called only when a backend asks for them.
func (f *flow) isPull() bool { return f != nil && f.pull.Load() }

// free returns the number of live unqueued sessions.
func (f *flow) free() uint64 {
	if f == nil {
		return 0
	}
	return f.guests.active()
}

// isKnown reports whether the unqueued sessions have been counted; until then a room with max_active calls
// nobody.
func (f *flow) isKnown() bool { return f == nil || f.guests.areCounted() }

// until returns the time up to which this node knows which sessions are live. On a node that is slow or has
// lost the database, that may be a while ago. Sessions that would have ended since then may have been
// touched, so they keep their places.
func (f *flow) until(now fairness.Time) fairness.Time {
	if f == nil {
		return now
	}
	return min(now, fairness.Time(f.read.Load())+sessionLag)
}

// present returns the number of visitors with a live session, given the number of those with a valid pass.
func (f *flow) present(valid uint64) uint64 {
	if f == nil {
		return valid
	}
	return uint64(max(int64(valid)+f.shift.Load(), 0)) //nolint:gosec // counts of people
}

// openFlow reads the flow of a room that is being loaded: the sessions must be known before the first call.
func (r *Room) openFlow(ctx context.Context) error {
	now := fromTime(r.clock.Now())
	flows, err := r.flow.store.Flows(ctx, []uuid.UUID{r.ID})
	if err != nil {
		return err
	}
	return r.setFlow(ctx, flows[r.ID], now, 0)
}

// setFlow applies what was read from the database at or after now. Pull is ignored if this node has changed
// it since, which turns, the number of changes before the read, shows.
func (r *Room) setFlow(ctx context.Context, stored pgroom.Flow, now fairness.Time, turns int) error {
	r.flow.shift.Store(stored.Shift)
	r.flow.read.Store(int64(now))
	r.takePull(stored.Pull, func() bool { return r.flow.turns == turns })
	if stored.PassKeys == len(r.addedKeys()) {
		return nil
	}
	return r.readPassKeys(ctx)
}

// takePull applies the stored value of pull if isNews allows it.
func (r *Room) takePull(stored bool, isNews func() bool) {
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	if isNews() && r.flow.pull.Swap(stored) != stored {
		r.queue.signal() // for a new snapshot
	}
}

// change counts a change made on this node; the caller holds mu.
func (f *flow) change() bool { f.turns++; return true }

// turn returns how often this node has changed pull.
func (f *flow) turn() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turns
}

// survey refreshes the flows of all loaded rooms every surveyEvery, so that changes of other nodes arrive
// within half a second.
func (rs *Rooms) survey(ctx context.Context, rooms map[uuid.UUID]*Room, now time.Time) error {
	if len(rooms) == 0 || time.Since(rs.surveyed) < surveyEvery || rs.clock.Step() != 0 {
		return nil
	}
	ids, turns := make([]uuid.UUID, 0, len(rooms)), make([]int, 0, len(rooms))
	for id, r := range rooms {
		ids, turns = append(ids, id), append(turns, r.flow.turn())
	}
	flows, err := rs.Options.Rooms.Flows(ctx, ids)
	if err != nil {
		return err
	}
	if err := rs.surveyGuests(ctx, rooms); err != nil {
		return err
	}
	rs.surveyed = time.Now()
	for i, id := range ids {
		r := rooms[id]
		err := r.setFlow(ctx, flows[id], fromTime(now), turns[i])
		if err != nil && !r.flow.failing {
			rs.Log.Error("cannot read pass keys", "room", r.Slug, "err", err)
		}
		r.flow.failing = err != nil
	}
	return nil
}

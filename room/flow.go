package room

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// How often a node reads what changed beside the transcripts, and how long after
// its pass a session keeps its place: a touch of the last moment, on whatever
// node, is read before anybody else gets it.
const (
	surveyEvery = 250 * time.Millisecond
	sessionLag  = fairness.Time(500) // milliseconds
)

// flow is what decides beside the transcript who is let in: the keys of
// passes, who calls, and the sessions that are not as long as their passes.
// The zero flow has the room's first pass key, and the clock calls.
type flow struct {
	store  *pgroom.Store
	master *MasterKey

	mu    sync.Mutex  // locked to change pull and turns
	pull  atomic.Bool // everybody may read it
	turns int         // how often pull was changed here

	guests guests // free sessions

	shift  atomic.Int64 // people at the site beyond those whose pass is valid; may be negative
	read   atomic.Int64 // the latest time for which shift is known, in milliseconds
	added  atomic.Pointer[[]passKey]
	reread atomic.Int64 // Unix time in nanoseconds of the latest reading of keys for an unknown one

	failing bool // keys cannot be read, and that is logged; the ticker alone uses it
}

// isPull tells whether people are called only when a backend asks for them.
func (f *flow) isPull() bool { return f != nil && f.pull.Load() }

// free returns how many free sessions go on.
func (f *flow) free() uint64 {
	if f == nil {
		return 0
	}
	return f.guests.active()
}

// isKnown tells whether it is known who is there.
func (f *flow) isKnown() bool { return f == nil || f.guests.areCounted() }

// until returns the time up to which it is known whose session goes on. On a
// node that is slow, or has lost the database, that may be a while ago: a session
// that would be over since then may have been touched, and keeps its place.
func (f *flow) until(now fairness.Time) fairness.Time {
	if f == nil {
		return now
	}
	return min(now, fairness.Time(f.read.Load())+sessionLag)
}

// present corrects the number of people whose pass is valid to that of people
// whose session goes on.
func (f *flow) present(valid uint64) uint64 {
	if f == nil {
		return valid
	}
	return uint64(max(int64(valid)+f.shift.Load(), 0)) //nolint:gosec // counts of people
}

// openFlow reads the flow of a room that is being loaded: before anybody is
// called, it must be known who is there.
func (r *Room) openFlow(ctx context.Context) error {
	now := fromTime(r.clock.Now())
	flows, err := r.flow.store.Flows(ctx, []uuid.UUID{r.ID})
	if err != nil {
		return err
	}
	return r.setFlow(ctx, flows[r.ID], now, 0)
}

// setFlow takes what was read about the room, not before that time, when its
// pull had made so many turns: what somebody has changed here since then stays.
func (r *Room) setFlow(ctx context.Context, stored pgroom.Flow, now fairness.Time, turns int) error {
	r.flow.shift.Store(stored.Shift)
	r.flow.read.Store(int64(now))
	r.takePull(stored.Pull, func() bool { return r.flow.turns == turns })
	if stored.PassKeys == len(r.addedKeys()) {
		return nil
	}
	return r.readPassKeys(ctx)
}

// takePull takes pull, as it is stored, if that is news.
func (r *Room) takePull(stored bool, isNews func() bool) {
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	if isNews() && r.flow.pull.Swap(stored) != stored {
		r.queue.signal() // for a new snapshot
	}
}

// change counts a change that is made here, under the lock.
func (f *flow) change() bool { f.turns++; return true }

// turn returns how often pull was changed here.
func (f *flow) turn() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turns
}

// survey reads the flows of all rooms that are loaded, now and then: what
// other nodes did is known here within half a second.
func (rs *Rooms) survey(ctx context.Context, rooms map[uuid.UUID]*Room, now time.Time) error {
	if len(rooms) == 0 || time.Since(rs.surveyed) < surveyEvery || rs.clock.pending().by != 0 { // whose session goes on says the database's clock
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
			rs.Log.Error("pass keys cannot be read", "room", r.Slug, "err", err)
		}
		r.flow.failing = err != nil
	}
	return nil
}

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

// gate is what decides beside the transcript who is let in: the keys of
// passes, who calls, and the sessions that are not as long as their passes.
// The zero gate has the room's first pass key, and the clock calls.
type gate struct {
	store  *pgroom.Store
	master *MasterKey

	mu    sync.Mutex  // locked to change pull, held and turns
	pull  atomic.Bool // everybody may read it
	held  atomic.Bool // called visitors wait outside; everybody may read it
	turns int         // how often pull or held was changed here

	shift  atomic.Int64 // people at the site beyond those whose pass is valid; may be negative
	added  atomic.Pointer[[]passKey]
	reread atomic.Int64 // Unix time in nanoseconds of the latest reading of keys for an unknown one

	failing bool // keys cannot be read, and that is logged; the ticker alone uses it
}

// isPull tells whether people are called only when a backend asks for them.
func (g *gate) isPull() bool { return g != nil && g.pull.Load() }

// present corrects the number of people whose pass is valid to that of people
// whose session goes on.
func (g *gate) present(valid uint64) uint64 {
	if g == nil {
		return valid
	}
	return uint64(max(int64(valid)+g.shift.Load(), 0)) //nolint:gosec // counts of people
}

// openGate reads the gate of a room that is being loaded: before anybody is
// called, it must be known who is there.
func (r *Room) openGate(ctx context.Context) error {
	gates, err := r.gate.store.Gates(ctx, []uuid.UUID{r.ID})
	if err != nil {
		return err
	}
	return r.setGate(ctx, gates[r.ID], 0)
}

// setGate takes what was read about the room when its pull had made so many
// turns: what somebody has changed here since then stays.
func (r *Room) setGate(ctx context.Context, g pgroom.Gate, turns int) error {
	r.gate.shift.Store(g.Shift)
	r.setFlow(&r.gate.pull, g.Pull, func() bool { return r.gate.turns == turns })
	r.setFlow(&r.gate.held, g.Held, func() bool { return r.gate.turns == turns })
	if g.PassKeys == len(r.addedKeys()) {
		return nil
	}
	return r.readPassKeys(ctx)
}

// setFlow takes pull or held, as it is stored, if that is news.
func (r *Room) setFlow(flag *atomic.Bool, stored bool, isNews func() bool) {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	if isNews() && flag.Swap(stored) != stored {
		r.queue.signal() // for a new snapshot
	}
}

// change counts a change that is made here, under the lock.
func (g *gate) change() bool { g.turns++; return true }

// turn returns how often pull or held was changed here.
func (g *gate) turn() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns
}

// survey reads the gates of all rooms that are loaded, now and then: what
// other nodes did is known here within half a second.
func (rs *Rooms) survey(ctx context.Context, rooms map[uuid.UUID]*Room) error {
	if len(rooms) == 0 || time.Since(rs.surveyed) < surveyEvery {
		return nil
	}
	ids, turns := make([]uuid.UUID, 0, len(rooms)), make([]int, 0, len(rooms))
	for id, r := range rooms {
		ids, turns = append(ids, id), append(turns, r.gate.turn())
	}
	gates, err := rs.Options.Rooms.Gates(ctx, ids)
	if err != nil {
		return err
	}
	rs.surveyed = time.Now()
	for i, id := range ids {
		r := rooms[id]
		err := r.setGate(ctx, gates[id], turns[i])
		if err != nil && !r.gate.failing {
			rs.Log.Error("pass keys cannot be read", "room", r.Slug, "err", err)
		}
		r.gate.failing = err != nil
	}
	return nil
}

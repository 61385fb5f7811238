package room

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

// surveyEvery is how often a node reads what changed beside the transcripts.
const surveyEvery = 250 * time.Millisecond

// gate is what decides beside the transcript who is let in: the keys of
// passes, who calls, and the sessions that are not as long as their passes.
// The zero gate has the room's first pass key, and the clock calls.
type gate struct {
	store  *pgroom.Store
	master *MasterKey

	pull   atomic.Bool
	shift  atomic.Int64 // people at the site beyond those whose pass is valid; may be negative
	added  atomic.Pointer[[]passKey]
	reread atomic.Int64 // Unix time in nanoseconds of the latest reading of keys for an unknown one
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
	return r.setGate(ctx, gates[r.ID])
}

// setGate takes what was read about the room.
func (r *Room) setGate(ctx context.Context, g pgroom.Gate) error {
	r.gate.shift.Store(g.Shift)
	r.setPull(g.Pull)
	if g.PassKeys == len(r.addedKeys()) {
		return nil
	}
	return r.readPassKeys(ctx)
}

// setPull takes who calls, as it is stored.
func (r *Room) setPull(pull bool) {
	if r.gate.pull.Swap(pull) != pull {
		r.queue.signal() // for a new snapshot
	}
}

// survey reads the gates of all rooms that are loaded, now and then: what
// other nodes did is known here within half a second.
func (rs *Rooms) survey(ctx context.Context, rooms map[uuid.UUID]*Room) error {
	if time.Since(rs.surveyed) < surveyEvery {
		return nil
	}
	ids := slices.Collect(maps.Keys(rooms))
	gates, err := rs.Options.Rooms.Gates(ctx, ids)
	if err != nil {
		return err
	}
	rs.surveyed = time.Now()
	for _, id := range ids {
		if err := rooms[id].setGate(ctx, gates[id]); err != nil {
			rs.Log.Error("pass keys cannot be read", "room", rooms[id].Slug, "err", err)
		}
	}
	return nil
}

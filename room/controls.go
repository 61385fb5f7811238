package room

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
)

// pollInterval is how often a node reads changes outside of the transcripts, so that changes of other nodes
// arrive within half a second.
const pollInterval = 250 * time.Millisecond

// controlsPoller reads what admission depends on besides the rooms' transcripts. Only the ticker uses poll.
type controlsPoller struct {
	store *pgroom.Store
	clock *clock.Clock
	log   *slog.Logger

	polled  time.Time
	counted counting           // latest count of unqueued sessions
	failing map[uuid.UUID]bool // rooms whose pass keys could not be read; the failure has been logged
}

// counting records the time and duration of a count.
type counting struct {
	at   time.Time
	took time.Duration
}

// countShare limits counting to one part in countShare of the time: the more sessions there are, the longer a
// count takes.
const countShare = 5

func newControlsPoller(store *pgroom.Store, c *clock.Clock, log *slog.Logger) *controlsPoller {
	return &controlsPoller{store: store, clock: c, log: log, failing: map[uuid.UUID]bool{}}
}

// poll refreshes the controls of rooms, unless they were read a moment ago.
func (p *controlsPoller) poll(ctx context.Context, rooms map[uuid.UUID]*Room, now fairness.Time) error {
	if len(rooms) == 0 || time.Since(p.polled) < pollInterval || p.clock.Step() != 0 {
		return nil
	}
	ids, changes := make([]uuid.UUID, 0, len(rooms)), make([]int, 0, len(rooms))
	for id, r := range rooms {
		ids, changes = append(ids, id), append(changes, r.controls.Pull.Changes())
	}
	values, err := p.store.Controls.Read(ctx, ids)
	if err != nil {
		return err
	}
	if began := time.Now(); began.Sub(p.counted.at) >= countShare*p.counted.took {
		err := p.countUnqueued(ctx, rooms)
		if p.counted = (counting{time.Now(), time.Since(began)}); err != nil {
			return err
		}
	}
	p.polled = time.Now()
	for i, id := range ids {
		if err := rooms[id].setControls(ctx, values[id], now, changes[i]); err == nil {
			delete(p.failing, id)
		} else if !p.failing[id] {
			p.failing[id] = true
			p.log.Error("cannot read pass keys", "room", rooms[id].Slug, "err", err)
		}
	}
	return nil
}

// readControls reads the controls of a room that is being loaded: the sessions must be known before the first
// call.
func (p *controlsPoller) readControls(ctx context.Context, r *Room) error {
	now := millis.Of(p.clock.Now())
	values, err := p.store.Controls.Read(ctx, []uuid.UUID{r.ID})
	if err != nil {
		return err
	}
	return r.setControls(ctx, values[r.ID], now, r.controls.Pull.Changes())
}

// setControls applies what was read from the database at or after now. changes is the number of this node's
// changes of pull before the read: if there were more since, the pull that was read is ignored.
func (r *Room) setControls(ctx context.Context, stored pgroom.ControlValues, now fairness.Time, changes int) error {
	r.controls.Sessions.Set(stored.Shift, now)
	if r.controls.Pull.Take(stored.Pull, changes) {
		r.sequencer.Wake() // to take a new snapshot
	}
	return r.PassKeys.Refresh(ctx, stored.PassKeys)
}

// countUnqueued counts the unqueued sessions of the rooms that may have some.
func (p *controlsPoller) countUnqueued(ctx context.Context, rooms map[uuid.UUID]*Room) error {
	var ids []uuid.UUID
	var reads []int
	for id, r := range rooms {
		if n, isExpected := r.controls.Unqueued.Reads(); isExpected {
			ids, reads = append(ids, id), append(reads, n)
		}
	}
	counts, err := p.store.Connectors.CountUnqueued(ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		rooms[id].SafetyNet.Take(projection.Count{
			UnqueuedCounts: projection.UnqueuedCounts(counts[id]), At: millis.Of(p.clock.Now()), Reads: reads[i],
		})
	}
	return nil
}

package sequence

import (
	"context"
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// StaleAfter is how long a node keeps answering without a response from the database. After that its answers may
// be out of date.
const StaleAfter = 2 * time.Second

// View is a room's projection as of the latest durable entry. The sequencer alone changes it. It is safe for
// concurrent use.
type View struct {
	mu         sync.RWMutex // guards the fields below; the goroutine that appends reads without it
	projection *projection.Projection
	durable    uint64 // entries known to be durable: what readers see

	current currency
}

// set replaces the projection.
func (v *View) set(p *projection.Projection, durable uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.projection, v.durable = p, durable
}

// Read calls do with the projection, which may have entries beyond the durable size, and is valid only during
// the call.
func (v *View) Read(do func(p *projection.Projection, durable uint64)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	do(v.projection, v.durable)
}

// Standing returns a ticket's standing at a time. That time may be before the latest entry's, because this
// node's clock may lag behind.
func (v *View) Standing(t fairness.Ticket, now fairness.Time) (fairness.Standing, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.projection.Standing(t, v.durable, max(now, v.projection.Now()))
}

// Size returns the number of entries that this node knows to be stored.
func (v *View) Size() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.durable
}

// Policy returns the room's policy as it was published.
func (v *View) Policy() fairness.Policy {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return *v.projection.Policy() // a copy: a pointer would keep the old state alive after a reload
}

// IsQuiet reports whether nothing can become due before a visitor joins.
func (v *View) IsQuiet() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.projection.IsQuiet()
}

// Pending returns the pending draws whose freezes are durable.
func (v *View) Pending() []fairness.Pending {
	v.mu.RLock()
	defer v.mu.RUnlock()
	pending := v.projection.Pending()
	for i, p := range pending {
		if p.Size > v.durable {
			return pending[:i]
		}
	}
	return pending
}

// AwaitsWorkRound returns the beacon round that work is done for, and when it appears, until the transcript has it.
func (v *View) AwaitsWorkRound() (round uint64, due fairness.Time, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return fairness.DoorOf(v.projection.State).AwaitsWorkRound()
}

// compare reports whether the log has entries that are not in the view, and whether an entry is due.
func (v *View) compare(size uint64, now fairness.Time) (isBehind, isDue bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return size > v.durable, v.projection.IsDue(max(now, v.projection.Now()))
}

// Age returns the time since this node last knew everything that was stored for the room.
func (v *View) Age() time.Duration { return v.current.age() }

// WaitFor waits until everything stored by a moment of this machine's clock is known. It returns false if nothing
// new is read for [StaleAfter], or ctx ends.
func (v *View) WaitFor(ctx context.Context, moment time.Time) bool {
	return v.current.reaches(ctx, moment)
}

// note records that the view has everything that was stored by a moment.
func (v *View) note(at time.Time) { v.current.note(at) }

// currency tracks the moment, by this machine's clock, up to which a node has read everything stored for a room.
// The zero value knows nothing.
type currency struct {
	mu   sync.Mutex // guards the fields below
	at   time.Time
	news chan struct{} // closed when at advances; nil: no reader waits
}

// note advances at to a moment at which the room's size was queried.
func (c *currency) note(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !at.After(c.at) {
		return
	}
	c.at = at
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
}

// age returns the time since the latest note.
func (c *currency) age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.at)
}

// reaches waits until everything stored by a moment is known. It returns false if nothing new is read for
// [StaleAfter], or ctx ends.
func (c *currency) reaches(ctx context.Context, moment time.Time) bool {
	tooLong := time.NewTimer(StaleAfter - min(c.age(), StaleAfter))
	defer tooLong.Stop()
	for {
		c.mu.Lock()
		known := !c.at.Before(moment)
		if !known && c.news == nil {
			c.news = make(chan struct{})
		}
		news := c.news
		c.mu.Unlock()
		if known {
			return true
		}
		select {
		case <-news:
		case <-tooLong.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

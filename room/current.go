package room

import (
	"context"
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
)

// staleAfter is how long a node may hear nothing from the database before it stops giving answers that may be
// out of date.
const staleAfter = 2 * time.Second

// Limits of the time after which a visitor asks again, having been told that the node is out of date, and how
// many visitors of a line then ask in a second.
const (
	leastStaleWait = 2 * time.Second
	mostStaleWait  = 15 * time.Second
	staleRate      = 10_000
)

// currency tracks up to when a node has read everything that was stored for a room, by this machine's clock.
// The zero value knows nothing.
type currency struct {
	mu   sync.Mutex // guards all below
	at   time.Time
	news chan struct{} // closed when at advances; nil: no reader waits
}

// note advances to a moment before which the room's size was queried.
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

// reaches waits until everything stored by a moment is known. It returns false when there is no news for
// [staleAfter], or ctx ends.
func (c *currency) reaches(ctx context.Context, moment time.Time) bool {
	tooLong := time.NewTimer(staleAfter - min(c.age(), staleAfter))
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

// isStale reports whether other nodes may have changed the room without this node's knowledge. A room that
// has ended does not change.
func (r *Room) isStale() bool { return r.current.age() > staleAfter && !r.Snapshot().Ended }

// stale returns a [*StaleError] with the time to wait: the longer the line, the longer.
func (r *Room) stale() error {
	n := r.Snapshot().Counts
	inLine := n.Arrivals - n.Admitted - n.NoShows - n.Left - n.Revoked
	wait := time.Duration(inLine) * time.Second / staleRate //nolint:gosec // at most fairness.MaxArrivals
	return &StaleError{min(max(wait, leastStaleWait), mostStaleWait)}
}

// Place returns a ticket's standing if this node can vouch for it. An unknown ticket may just have joined
// through another node, so Place first reads everything stored by now. Errors: [ErrTicketUnknown], and
// [*StaleError] when the database does not answer.
func (r *Room) Place(ctx context.Context, t fairness.Ticket) (fairness.Standing, error) {
	asked := time.Now()
	st, ok := r.Standing(t)
	switch {
	case ok && (!isPending(st) || !r.isStale()): // a settled ticket does not change
		return st, nil
	case ok, !r.Snapshot().Ended && !r.current.reaches(ctx, asked):
		return st, r.stale()
	}
	if st, ok = r.Standing(t); !ok {
		return st, ErrTicketUnknown
	}
	return st, nil
}

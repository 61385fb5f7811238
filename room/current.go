package room

import (
	"context"
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
)

// staleAfter is how long a node may be without news of a room before it no
// longer says what may have changed meanwhile.
const staleAfter = 2 * time.Second

// Bounds of the time after which a visitor asks again who was told that the node
// is out of date, and how many of a line ask in a second then.
const (
	leastStaleWait = 2 * time.Second
	mostStaleWait  = 15 * time.Second
	staleRate      = 10_000
)

// currency is up to when a node knows a room: everything that was stored by then
// it has read. It goes by this machine's clock. The zero value knows nothing.
type currency struct {
	mu   sync.Mutex // guards all below
	at   time.Time
	news chan struct{} // closed when at moves on; nil: nobody waits
}

// note moves on to a moment before which the room's size was asked for.
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

// age returns for how long nothing has been known.
func (c *currency) age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.at)
}

// reaches waits until everything is known that was stored by a moment; false
// when there is no news for [staleAfter], or ctx ends.
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

// isStale reports whether other nodes may have changed the room without this one
// knowing. Nothing follows an end.
func (r *Room) isStale() bool { return r.current.age() > staleAfter && !r.Snapshot().Ended }

// stale says when to ask again: the more people are in line, the later.
func (r *Room) stale() error {
	n := r.Snapshot().Counts
	inLine := n.Arrivals - n.Admitted - n.NoShows - n.Left - n.Revoked
	wait := time.Duration(inLine) * time.Second / staleRate //nolint:gosec // at most fairness.MaxArrivals
	return &StaleError{min(max(wait, leastStaleWait), mostStaleWait)}
}

// Place returns where a ticket stands, as far as this node can vouch for it: a
// ticket that it does not know may have joined through another node a moment ago,
// so it first reads what is stored by now. Errors: [ErrTicketUnknown], and
// [*StaleError] when the database has been silent.
func (r *Room) Place(ctx context.Context, t fairness.Ticket) (fairness.Standing, error) {
	asked := time.Now()
	st, ok := r.Standing(t)
	switch {
	case ok && (!isPending(st) || !r.isStale()): // what is settled stays so
		return st, nil
	case ok, !r.Snapshot().Ended && !r.current.reaches(ctx, asked):
		return st, r.stale()
	}
	if st, ok = r.Standing(t); !ok {
		return st, ErrTicketUnknown
	}
	return st, nil
}

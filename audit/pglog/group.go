package pglog

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Limits of the transactions that logs share.
const (
	maxGroup = 256 // logs per transaction
	maxLanes = 2   // transactions at a time, each on its own connection
)

// group lets logs that append a few entries at a time share transactions: with many rooms, a commit for each would
// cost more than the entries. While one transaction runs, appends for the next one collect. It is safe for
// concurrent use.
type group struct {
	store *Store

	mu      sync.Mutex // guards the fields below
	waiting []*part
	lanes   int // goroutines that append
}

// append appends a part together with those of other logs, and returns when the append has ended.
func (g *group) append(p *part) {
	p.done = make(chan struct{})
	g.mu.Lock()
	g.waiting = append(g.waiting, p)
	if g.lanes < maxLanes {
		g.lanes++
		go g.run()
	}
	g.mu.Unlock()
	select {
	case <-p.done:
	case <-p.ctx.Done():
		if g.remove(p) {
			p.err = p.ctx.Err()
			return
		}
		<-p.done // soon, because its transaction is cancelled
	}
}

// remove removes a part that still waits, and reports whether it did.
func (g *group) remove(p *part) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, p)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// take removes the parts of the next transaction, in the order of their locks.
func (g *group) take() []*part {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takeLocked()
}

// takeLocked leaves a part that appends to the same log as another for a later transaction, in which
// it sees what the other has stored.
func (g *group) takeLocked() (parts []*part) {
	rooms := map[uuid.UUID]bool{}
	left := g.waiting[:0]
	for _, p := range g.waiting {
		if len(parts) == maxGroup || rooms[p.log.room] {
			left = append(left, p)
			continue
		}
		rooms[p.log.room] = true
		parts = append(parts, p)
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	slices.SortFunc(parts, lockOrder)
	return parts
}

// first does what take does, for a goroutine that ends if there is nothing to append.
func (g *group) first() []*part {
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := g.takeLocked()
	if len(parts) == 0 {
		g.lanes--
	}
	return parts
}

// run appends until nothing waits.
func (g *group) run() {
	for parts := g.first(); len(parts) > 0; parts = g.first() {
		for len(parts) > 0 {
			parts = g.runFrom(parts)
		}
	}
}

// runFrom appends parts in a new transaction, and then those that arrive while it commits. It
// returns the parts that it took but could not begin to append.
func (g *group) runFrom(parts []*part) []*part {
	t, err := g.begin(parts)
	if err != nil {
		finish(parts, err)
		return nil
	}
	t.requestLocks(parts)
	for {
		riding, err := t.run(parts, g.take)
		finish(parts, nil)
		if err != nil || len(riding) == 0 {
			return riding
		}
		parts = riding
	}
}

// begin begins a transaction for parts. It gives up as soon as one of them is cancelled.
func (g *group) begin(parts []*part) (*transaction, error) {
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	for _, p := range parts {
		defer context.AfterFunc(p.ctx, cancel)()
	}
	return g.store.begin(ctx)
}

// finish lets the callers of append return.
func finish(parts []*part, err error) {
	for _, p := range parts {
		if err != nil {
			p.err = err
		}
		close(p.done)
	}
}

package sequence

import (
	"sync"
	"time"
)

// stuckAfter is how long a room may fail to store something before it counts as stuck.
const stuckAfter = 4 * time.Second

// backlog tracks since when a room has had something to store. The zero value is ready to use. It is safe for
// concurrent use.
type backlog struct {
	mu    sync.Mutex // guards the fields below
	since time.Time  // zero: nothing to store
	done  time.Time  // when an append, or a check that nothing was due, last succeeded
}

// begin notes that there is something to store.
func (b *backlog) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		b.since = time.Now()
	}
}

// end notes that everything is stored.
func (b *backlog) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since, b.done = time.Time{}, time.Now()
}

// isBusy reports whether there is something to store.
func (b *backlog) isBusy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.since.IsZero()
}

// look returns how long something has been waiting to be stored (0: nothing is), and how long ago something
// was stored, if ever.
func (b *backlog) look() (stuck, ago time.Duration, ever bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.since.IsZero() {
		stuck = time.Since(b.since)
	}
	return stuck, time.Since(b.done), !b.done.IsZero()
}

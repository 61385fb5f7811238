package safetynet

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Limits of the list of ended sessions that connectors get.
const (
	endedWithin   = 30 * time.Second // a response to a report may be lost for that long
	endedInterval = time.Second      // time between reads
)

// endedSessions caches the sessions that a site recently ended, on any node.
type endedSessions struct {
	query func(context.Context) ([]uuid.UUID, error)

	mu   sync.Mutex // guards the fields below; held during a read
	ids  []uuid.UUID
	err  error
	read time.Time
}

// list returns the sessions that a site recently ended, latest first. It queries the database at most once a
// second. Errors: those of the database.
func (e *endedSessions) list(ctx context.Context) ([]uuid.UUID, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.read.IsZero() || time.Since(e.read) >= endedInterval {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		e.ids, e.err = e.query(ctx)
		e.read = time.Now()
	}
	return e.ids, e.err
}

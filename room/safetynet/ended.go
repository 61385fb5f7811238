package safetynet

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Limits of the list of ended sessions that connectors get.
const (
	endedWithin   = 30 * time.Second // as long as the response to a report may be lost
	endedInterval = time.Second      // between reads
)

// endedSessions caches the sessions that a site ended lately, on any node.
type endedSessions struct {
	query func(context.Context) ([]uuid.UUID, error)

	mu   sync.Mutex // guards all below; held during a read
	ids  []uuid.UUID
	err  error
	read time.Time
}

// list returns the sessions that a site ended lately, latest first. It queries the database at most once a
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

package room

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Limits of the list of ended sessions that connectors get.
const (
	overSince = 30 * time.Second // as long as the response to a report may be lost
	overAgain = time.Second      // between reads
)

// overs caches the sessions that a site ended lately, on any node. The zero value is ready to use.
type overs struct {
	mu   sync.Mutex // guards all below; held during a read
	list []uuid.UUID
	err  error
	at   time.Time
}

// over returns the sessions that a site ended lately, latest first. It queries the database at most once a
// second. Errors: those of the database.
func (r *Room) over(ctx context.Context) ([]uuid.UUID, error) {
	o := &r.overs
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at.IsZero() || time.Since(o.at) >= overAgain {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		defer cancel()
		o.list, o.err = r.flow.store.Over(ctx, r.ID, overSince, MaxTold)
		o.at = time.Now()
	}
	return o.list, o.err
}

package room

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// What connectors are told of sessions that a site ended.
const (
	overSince = 30 * time.Second // as long as an answer to a report may be lost
	overAgain = time.Second      // between readings
)

// overs are the sessions that a site ended lately, by whatever server node that
// heard of them. The zero value is ready.
type overs struct {
	mu   sync.Mutex // guards all below; held while they are read
	list []uuid.UUID
	err  error
	at   time.Time
}

// over returns the sessions that a site ended lately, the latest first. They are
// read once a second however many reports come. Errors: those of the database.
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

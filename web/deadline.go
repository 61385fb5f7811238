package web

import (
	"context"
	"sync"
	"time"
)

// deadlines hands out contexts that end [answerTimeout] after they were asked
// for, up to a second later. All requests of a second share one: a timer of its
// own would cost a join more than all else the server does for it. They do not
// end with the request: what has begun to be recorded is recorded.
type deadlines struct {
	mu      sync.Mutex // guards all below
	current context.Context
	fresh   time.Time // current is handed out until then
}

func (d *deadlines) next() context.Context {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.After(d.fresh) {
		d.fresh = now.Add(time.Second)
		ctx, cancel := context.WithDeadline(context.Background(), d.fresh.Add(answerTimeout))
		context.AfterFunc(ctx, cancel)
		d.current = ctx
	}
	return d.current
}

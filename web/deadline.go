package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/proofline/proofline/internal/traces"
)

// deadlines provides contexts that end [answerTimeout] after the call, or up to a second later. All
// requests of a second share one, apart from their spans, because a timer per request would cost a
// join more than the rest of its handling. Contexts outlive their requests, so that entries being
// appended are still recorded.
type deadlines struct {
	mu      sync.Mutex // guards the fields below
	current context.Context
	fresh   time.Time // current is in use until this time
}

func (d *deadlines) next(r *http.Request) context.Context {
	return traces.Carry(d.latest(), r.Context())
}

func (d *deadlines) latest() context.Context {
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

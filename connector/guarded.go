package connector

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// restartDelay is the pause before background work restarts after a panic.
const restartDelay = time.Second

// errFault is returned when a panic, ours or of code in [Options], prevented a
// result.
var errFault = errors.New("the connector panicked")

// goGuarded runs background work until ctx ends, which f must notice, and restarts
// it after a panic: only the connector can recover there, and the site would crash.
// After ctx ends f runs once more, for what is left to do.
func (c *Connector) goGuarded(ctx context.Context, what string, f func(context.Context)) {
	c.done.Go(func() {
		for {
			isLast := ctx.Err() != nil
			if c.guarded(what, func() { f(ctx) }) || isLast {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(restartDelay):
			}
		}
	})
}

// guarded runs f, and reports whether it returned without a panic.
func (c *Connector) guarded(what string, f func()) (ok bool) {
	defer func() {
		if fault := recover(); fault != nil {
			ok = false
			c.logPanic(what, fault)
		}
	}()
	f()
	return true
}

// logPanic counts and logs a recovered panic.
func (c *Connector) logPanic(what string, fault any) {
	c.counts.panics.Add(1)
	defer func() { _ = recover() }() // the logger itself may panic
	c.options.Log.Error("the connector panicked", "in", what, "fault", fault, "stack", string(debug.Stack()))
}

package connector

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// restartAgain is how long work in the background rests after a fault.
const restartDelay = time.Second

// errFault is returned where a fault of ours, or of what [Options] names, takes
// the place of an answer.
var errFault = errors.New("the connector failed")

// keepUp has work in the background go on until ctx ends, which f must notice.
// Nobody but us can recover from a fault there, and it would end the site.
// After the end it has one more try, for what is left to do then.
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

// guarded does something, and tells whether it ended without a fault.
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

// failed counts and logs a fault, from where it is recovered.
func (c *Connector) logPanic(what string, fault any) {
	c.counts.panics.Add(1)
	defer func() { _ = recover() }() // it may be the log that fails
	c.options.Log.Error("connector failed", "in", what, "fault", fault, "stack", string(debug.Stack()))
}

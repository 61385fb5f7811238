// Package background runs a connector's background work. It recovers panics, which would otherwise
// crash the site that the connector is part of.
package background

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// restartDelay is the pause before background work restarts after a panic.
const restartDelay = time.Second

// logInterval is the minimum time between log lines of one [LogLimit].
const logInterval = time.Minute

// ErrPanic is returned when a panic prevented a result.
var ErrPanic = errors.New("the connector panicked")

// Group runs the background work of one connector. It counts the panics it recovers.
type Group struct {
	log    *slog.Logger
	panics atomic.Uint64
	done   sync.WaitGroup
}

// New returns a group without work.
func New(log *slog.Logger) *Group { return &Group{log: log} }

// Go runs f until ctx ends, which f must notice, and restarts it after a panic. If a panic
// coincides with the end of ctx, f still runs once more, to finish its work.
func (g *Group) Go(ctx context.Context, what string, f func(context.Context)) {
	g.done.Go(func() {
		for {
			isLast := ctx.Err() != nil
			if g.Run(what, func() { f(ctx) }) || isLast {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(restartDelay):
			}
		}
	})
}

// Wait waits until the work started by Go is done.
func (g *Group) Wait() { g.done.Wait() }

// Run runs f, and reports whether it returned without a panic.
func (g *Group) Run(what string, f func()) (ok bool) {
	defer func() {
		if fault := recover(); fault != nil {
			ok = false
			g.LogPanic(what, fault)
		}
	}()
	f()
	return true
}

// LogPanic counts and logs a recovered panic.
func (g *Group) LogPanic(what string, fault any) {
	g.panics.Add(1)
	defer func() { _ = recover() }() // the logger itself may panic
	g.log.Error("the connector panicked", "in", what, "fault", fault, "stack", string(debug.Stack()))
}

// Panics returns the number of recovered panics.
func (g *Group) Panics() uint64 { return g.panics.Load() }

// Notify signals a channel of capacity 1.
func Notify(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// LogLimit limits log lines of one kind to one a minute. The zero value is ready.
type LogLimit struct{ last atomic.Int64 } // ms since 1970

// Allow reports whether a minute has passed since the last line, and records the new one.
func (l *LogLimit) Allow(now time.Time) bool {
	last, ms := l.last.Load(), now.UnixMilli()
	return ms-last >= logInterval.Milliseconds() && l.last.CompareAndSwap(last, ms)
}

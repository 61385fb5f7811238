// Package timing waits and repeats until a context ends.
package timing

import (
	"context"
	"time"
)

// Every calls do once every d, from d on, until ctx ends.
func Every(ctx context.Context, d time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Package pace counts events against a limit a minute, without a lock.
package pace

import (
	"sync/atomic"
	"time"
)

// Limit is a token bucket, stored as the one time at which it is full again (GCRA). A minute's events may happen at
// once. The zero value is full. It is safe for concurrent use.
type Limit struct{ full atomic.Int64 } // Unix nanoseconds

// Take takes a token of perMinute, or none and returns the time until there is one. perMinute 0: no limit.
func (l *Limit) Take(now time.Time, perMinute uint32) (wait time.Duration) {
	if perMinute == 0 {
		return 0
	}
	at, cost := now.UnixNano(), cost(perMinute)
	for {
		full := l.full.Load()
		next := max(full, at) + cost
		if wait := next - at - int64(time.Minute); wait > 0 {
			return time.Duration(wait)
		}
		if l.full.CompareAndSwap(full, next) {
			return 0
		}
	}
}

// GiveBack refunds a token.
func (l *Limit) GiveBack(perMinute uint32) {
	if perMinute > 0 {
		l.full.Add(-cost(perMinute))
	}
}

func cost(perMinute uint32) int64 { return max(int64(time.Minute)/int64(perMinute), 1) }

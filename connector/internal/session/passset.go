package session

import (
	"sync"
	"time"
)

// maxPasses limits the remembered passes of each set.
const maxPasses = 100_000

// PassSet is a bounded set of passes. It drops expired ones first, then others; the room is then
// asked again about these. The zero value is ready.
type PassSet struct {
	mu    sync.RWMutex
	known map[[16]byte]span
}

// span records when a pass was added, and until when it matters, in ms since 1970.
type span struct{ since, until int64 }

// Has reports whether a pass is in the set.
func (o *PassSet) Has(pass [16]byte) bool {
	_, ok := o.Since(pass)
	return ok
}

// Since returns when a pass was first added.
func (o *PassSet) Since(pass [16]byte) (ms int64, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	s, ok := o.known[pass]
	return s.since, ok
}

// Add adds a pass until the given time, in ms since 1970.
func (o *PassSet) Add(pass [16]byte, till, now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[[16]byte]span{}
	}
	if s, ok := o.known[pass]; ok {
		now = s.since
	} else if len(o.known) >= maxPasses {
		o.shrink(now)
	}
	o.known[pass] = span{now, till}
}

// shrink removes expired passes, and others until a tenth is free.
func (o *PassSet) shrink(now int64) {
	for pass, s := range o.known {
		if s.until <= now {
			delete(o.known, pass)
		}
	}
	for pass := range o.known {
		if len(o.known) < maxPasses*9/10 {
			return
		}
		delete(o.known, pass)
	}
}

// touchTimes records the times of the last touches.
type touchTimes struct {
	mu sync.Mutex
	at map[[16]byte]time.Time
}

// mayTouch reports whether a session is due for a touch, and records it.
func (t *touchTimes) mayTouch(pass [16]byte, now time.Time, again time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.at[pass]; ok && now.Sub(at) < again {
		return false
	}
	if t.at == nil || len(t.at) >= maxPasses {
		kept := map[[16]byte]time.Time{}
		for pass, at := range t.at {
			if now.Sub(at) < TouchInterval && len(kept) < maxPasses/2 {
				kept[pass] = at
			}
		}
		t.at = kept
	}
	t.at[pass] = now
	return true
}

package connector

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"sync"
	"time"
)

// passSet is a bounded set of passes. It drops expired ones first, then others;
// a room is asked again about those.
type passSet struct {
	mu    sync.RWMutex
	known map[[16]byte]span
}

// span is when a pass was added, and until when it matters, in ms since 1970.
type span struct{ since, until int64 }

func (o *passSet) has(pass [16]byte) bool {
	_, ok := o.since(pass)
	return ok
}

// since returns when a pass was first added.
func (o *passSet) since(pass [16]byte) (ms int64, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	s, ok := o.known[pass]
	return s.since, ok
}

func (o *passSet) add(pass [16]byte, till, now int64) {
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
func (o *passSet) shrink(now int64) {
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

// touchTimes are the times of the last touches.
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
			if now.Sub(at) < touchInterval && len(kept) < maxPasses/2 {
				kept[pass] = at
			}
		}
		t.at = kept
	}
	t.at[pass] = now
	return true
}

// unrecorded is the past fail-open intervals that the server has not recorded.
type unrecorded struct {
	mu   sync.Mutex
	list []pastFailOpen
}

type pastFailOpen struct {
	room string // URL
	FailOpen
}

// add adds an interval. False: there are too many.
func (p *unrecorded) add(o pastFailOpen) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxUnrecorded {
		return false
	}
	p.list = append(p.list, o)
	return true
}

// all returns all intervals.
func (p *unrecorded) all() []pastFailOpen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

// byRoom returns the first intervals of each room, up to most.
func (p *unrecorded) byRoom(most int) map[string][]FailOpen {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string][]FailOpen{}
	for _, o := range p.list {
		if len(all[o.room]) < most {
			all[o.room] = append(all[o.room], o.FailOpen)
		}
	}
	return all
}

// drop removes recorded intervals of a room, and reports whether there were any.
func (p *unrecorded) drop(room string, recorded map[[16]byte]bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []pastFailOpen
	for _, o := range p.list {
		if o.room != room || !recorded[o.id] {
			left = append(left, o)
		}
	}
	hasDropped := len(left) < len(p.list)
	p.list = left
	return hasDropped
}

// newRaw returns a random id.
func newRaw() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// newID returns a random id as text.
func newID() string { return idText(newRaw()) }

func idText(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// parseID parses an id.
func parseID(text string) (id [16]byte, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	b, err := strict.DecodeString(text)
	return id, err == nil && copy(id[:], b) == len(id)
}

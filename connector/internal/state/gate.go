package state

import (
	"sync"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
)

// Gates holds the gates of the state file that no room has taken over yet. The zero value is empty.
type Gates struct {
	mu     sync.Mutex
	byRoom map[string]gate.Saved
}

// Set sets the gates.
func (r *Gates) Set(list []gate.Saved) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRoom = map[string]gate.Saved{}
	for _, k := range list {
		r.byRoom[k.Room] = k
	}
}

// Take removes and returns the gate of a room. It returns false if there is none that is still
// fresh.
func (r *Gates) Take(room string, now time.Time) (gate.Saved, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.byRoom[room]
	delete(r.byRoom, room)
	return k, ok && k.IsFresh(now)
}

// Remaining returns the gates that no room has taken over.
func (r *Gates) Remaining() (list []gate.Saved) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.byRoom {
		list = append(list, k)
	}
	return list
}

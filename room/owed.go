package room

import (
	"slices"
	"sync"
	"time"
)

// stuckAfter is how long a room may fail to store something before it counts as stuck.
const stuckAfter = 4 * time.Second

// owed tracks since when a room has had something to store. The zero value is ready to use. It is safe for
// concurrent use.
type owed struct {
	mu    sync.Mutex // guards all below
	since time.Time  // zero: nothing to store
	done  time.Time  // latest append, or check that nothing was due, that succeeded
}

// owe notes that there is something to store.
func (o *owed) owe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
}

// pay notes that everything is stored.
func (o *owed) pay() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since, o.done = time.Time{}, time.Now()
}

// look returns how long something has been waiting to be stored (0: nothing is), and how long ago something
// was stored, if ever.
func (o *owed) look() (stuck, ago time.Duration, ever bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		stuck = time.Since(o.since)
	}
	return stuck, time.Since(o.done), !o.done.IsZero()
}

// Stuck returns how long this node has failed to store what the room has to store; 0 if it has not, or not
// for long.
func (r *Room) Stuck() time.Duration {
	if stuck, _, _ := r.pulse.owed.look(); stuck >= stuckAfter {
		return stuck
	}
	return 0
}

// StuckRooms returns the rooms that are stuck on this node, sorted by slug.
func (rs *Rooms) StuckRooms() (list []*Room) {
	for _, r := range rs.Loaded() {
		if r.Stuck() > 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *Room) int {
		if a.Slug < b.Slug {
			return -1
		}
		return 1
	})
	return list
}

// reportStuck logs when a room gets stuck, and when it recovers.
func (r *Room) reportStuck() {
	stuck := r.Stuck()
	switch was := r.wasStuck; {
	case stuck > 0 && !was:
		r.log.Error("room cannot store anything: joins, claims and calls wait", "room", r.Slug,
			"for", stuck.Round(time.Second))
	case stuck == 0 && was:
		r.log.Info("room stores again", "room", r.Slug)
	}
	r.wasStuck = stuck > 0
}

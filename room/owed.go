package room

import (
	"slices"
	"sync"
	"time"
)

// stuckAfter is how long a room may have had something to store before it counts
// as one that cannot store anything.
const stuckAfter = 4 * time.Second

// owed is since when a room has had something to store that is not stored. The
// zero value is ready, and safe for concurrent use.
type owed struct {
	mu    sync.Mutex // guards all below
	since time.Time  // zero: nothing is owed
	done  time.Time  // the latest append or look at the lock that succeeded
}

// owe notes that there is something to store.
func (o *owed) owe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
}

// pay notes that all that there was is stored.
func (o *owed) pay() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since, o.done = time.Time{}, time.Now()
}

// look returns for how long something has been owed, 0 for nothing, and how long
// ago something was stored, which is false for never.
func (o *owed) look() (stuck, ago time.Duration, ever bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		stuck = time.Since(o.since)
	}
	return stuck, time.Since(o.done), !o.done.IsZero()
}

// Stuck returns for how long the room has had something to store that this node
// could not, 0 when there is nothing or it has not been long.
func (r *Room) Stuck() time.Duration {
	if stuck, _, _ := r.pulse.owed.look(); stuck >= stuckAfter {
		return stuck
	}
	return 0
}

// StuckRooms returns the rooms that cannot store anything at this node, by slug.
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

// reportStuck logs when a room gets stuck, and when it is not any more.
func (r *Room) reportStuck() {
	stuck := r.Stuck()
	switch was := r.wasStuck; {
	case stuck > 0 && !was:
		r.log.Error("room cannot store anything: joins, claims and calls wait", "room", r.Slug, "for", stuck.Round(time.Second))
	case stuck == 0 && was:
		r.log.Info("room stores again", "room", r.Slug)
	}
	r.wasStuck = stuck > 0
}

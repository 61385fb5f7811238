package room

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/proofline/proofline/audit/pglog"
)

// Health is the condition of this node and its database.
type Health struct {
	Ready    bool          // result of [Rooms.Ready]
	Loaded   bool          // the rooms that existed at the start are loaded
	Answers  bool          // the database answers, as of at most two seconds ago
	Answered time.Time     // when the latest query that was answered was sent, by this machine's clock
	Took     time.Duration // how long that answer took
	Ahead    time.Duration // how far the rooms' time is ahead of this machine's clock
	Step     time.Duration // jump of the database's clock that rooms do not follow; 0: none
	Rooms    int           // loaded rooms
	Stuck    int           // of Rooms, those that cannot store anything
	Held     int           // of Rooms, those that lack published entries; the log of rooms counts as one
	Marked   bool          // marks are kept on disk, and the latest write succeeded
	Away     time.Duration // how long the object storage of marks has not answered; 0: it answers, or there is none
	Lag      time.Duration // how long the oldest mark that object storage lacks has waited; 0: it has all
	Longest  time.Duration // how long the longest stuck room has been stuck
	Pool     pglog.PoolUse
}

// answer records when the database was queried, and how long the answer took.
type answer struct {
	asked time.Time
	took  time.Duration
}

// Health returns the condition of this node and its database.
func (rs *Rooms) Health() Health {
	h := Health{
		Ready: rs.Ready(), Loaded: rs.adopted.Load(), Answers: rs.Answers(), Ahead: rs.clock.Ahead(),
		Step: rs.clock.Step(), Rooms: len(rs.Loaded()), Pool: rs.Logs.PoolUse(),
	}
	if a := rs.answered.Load(); a != nil {
		h.Answered, h.Took = a.asked, a.took
	}
	h.Marked = rs.Marks.IsKept() && rs.Marks.Err() == nil
	if rs.Marks.Remote != nil {
		h.Away, h.Lag = rs.Marks.Remote.Away(), rs.Marks.Remote.Lag()
	}
	for _, r := range rs.Loaded() {
		if r.Regression() != nil {
			h.Held++
		}
	}
	if rs.Register.IsHeld() {
		h.Held++
	}
	for _, r := range rs.StuckRooms() {
		h.Stuck, h.Longest = h.Stuck+1, max(h.Longest, r.Stuck())
	}
	return h
}

// Loaded returns the rooms in memory, in no particular order. Being listed does not keep a room
// loaded.
func (rs *Rooms) Loaded() []*Room {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return slices.Collect(maps.Values(rs.loaded))
}

// StuckRooms returns the rooms that are stuck on this node, sorted by slug.
func (rs *Rooms) StuckRooms() (list []*Room) {
	for _, r := range rs.Loaded() {
		if r.Stuck() > 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *Room) int { return cmp.Compare(a.Slug, b.Slug) })
	return list
}

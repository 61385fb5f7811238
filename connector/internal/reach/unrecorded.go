package reach

import (
	"slices"
	"sync"

	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/id"
)

// maxUnrecorded limits the past fail-open intervals that the server has not recorded.
const maxUnrecorded = 1_000

// Past is a fail-open interval of a room.
type Past struct {
	Room string // URL of the room
	Interval
}

// Unrecorded holds the past fail-open intervals of all rooms that the server has not recorded. A
// nil pointer keeps none, for connectors that do not report.
type Unrecorded struct {
	changed chan struct{}

	mu   sync.Mutex
	list []Past
}

// NewUnrecorded returns an empty list.
func NewUnrecorded() *Unrecorded { return &Unrecorded{changed: make(chan struct{}, 1)} }

// Changed signals that intervals began, ended or were recorded.
func (u *Unrecorded) Changed() <-chan struct{} { return u.changed }

func (u *Unrecorded) notify() {
	if u != nil {
		background.Notify(u.changed)
	}
}

// Add adds an interval. It returns false if there are too many.
func (u *Unrecorded) Add(o Past) bool {
	if u == nil {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.list) >= maxUnrecorded {
		return false
	}
	u.list = append(u.list, o)
	return true
}

// All returns all intervals, and those of current that are not among them: one may have
// ended in the meantime.
func (u *Unrecorded) All(current []Past) []Past {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := slices.Clone(u.list)
	for _, o := range current {
		if !slices.ContainsFunc(list, func(p Past) bool { return p.ID == o.ID }) {
			list = append(list, o)
		}
	}
	return list
}

// ByRoom returns the first intervals of each room, up to most.
func (u *Unrecorded) ByRoom(most int) map[string][]Interval {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[string][]Interval{}
	for _, o := range u.list {
		if len(all[o.Room]) < most {
			all[o.Room] = append(all[o.Room], o.Interval)
		}
	}
	return all
}

// Drop removes recorded intervals of a room.
func (u *Unrecorded) Drop(room string, recorded map[id.ID]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := len(u.list)
	u.list = slices.DeleteFunc(u.list, func(o Past) bool { return o.Room == room && recorded[o.ID] })
	if len(u.list) < before {
		u.notify()
	}
}

package connector

import (
	"slices"
	"sync/atomic"
	"time"
)

// Stats counts what happened since the connector began.
type Stats struct {
	Bypassed uint64 // requests that needed no pass
	Passed   uint64 // requests with a session
	Queued   uint64 // requests that were led to a room
	Blocked  uint64 // requests that were refused for good
	Held     uint64 // requests that were asked to come back, as a room was out of reach
	Opened   uint64 // requests let through without a pass, as a room was out of reach
	Redeemed uint64 // passes used up
	Refused  uint64 // passes that were none, or not good any more
	Touches  uint64 // sessions told to go on
	Released uint64 // sessions ended by the site
	Dropped  uint64 // touches and releases that were lost
	Panics   uint64 // faults of the connector
	Rooms    map[string]RoomStats
}

// RoomStats is what is known of a room.
type RoomStats struct {
	DownSince time.Time // zero: it can be reached
	Openings  []Opening // the latest, the oldest first
}

type counts struct {
	bypassed, passed, queued, blocked, held, opened, redeemed, refused, touches, released, dropped, panics atomic.Uint64
}

// Stats returns the counts.
func (c *Connector) Stats() Stats {
	n := &c.counts
	s := Stats{
		Bypassed: n.bypassed.Load(), Passed: n.passed.Load(), Queued: n.queued.Load(), Blocked: n.blocked.Load(), Held: n.held.Load(), Opened: n.opened.Load(),
		Redeemed: n.redeemed.Load(), Refused: n.refused.Load(), Touches: n.touches.Load(), Released: n.released.Load(), Dropped: n.dropped.Load(), Panics: n.panics.Load(),
		Rooms: map[string]RoomStats{},
	}
	for name, d := range c.current.Load().doors {
		d.link.mu.Lock()
		s.Rooms[name] = RoomStats{d.link.since, slices.Clone(d.link.openings)}
		d.link.mu.Unlock()
	}
	return s
}

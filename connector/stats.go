package connector

import (
	"slices"
	"sync/atomic"
	"time"
)

// Stats counts what happened since the connector began.
type Stats struct {
	Bypassed   uint64 // requests that needed no pass
	Observed   uint64 // of these: that would have waited, if the room were not off
	Passed     uint64 // requests with a session
	Started    uint64 // requests with which a free session began
	Queued     uint64 // requests that were led to a room
	Turned     uint64 // of these: because a gate was open, but not for more of them here
	Crowded    uint64 // of these: because a gate was open, but not for more of their network here
	Blocked    uint64 // requests that the rules refuse
	Held       uint64 // requests that were asked to come back, as a room was out of reach
	FailedOpen uint64 // requests let through without a pass, as a room was out of reach
	Redeemed   uint64 // passes used up
	Refused    uint64 // passes that were none, or not good any more
	Touches    uint64 // sessions told to go on
	Released   uint64 // sessions ended by the site
	Dropped    uint64 // touches and releases that were lost
	Copied     uint64 // requests with a session that too many clients share
	Sharing    int    // the most clients that used one session in the last 10 minutes, of sessions without a key
	Cut        uint64 // upgraded connections that were closed, as the session was over
	Panics     uint64 // faults of the connector
	Reports    uint64 // reports that were answered
	HasRules   bool   // see [Connector.HasRules]
	Serial     uint64 // of the rules, if they are signed; else 0
	Rooms      map[string]RoomStats

	TokenEnds time.Time     // when the token for the server does; zero: never, or nobody said
	TokenLeft time.Duration // until then; below 0: since then
}

// RoomStats is what is known of a room. Since a change of its address.
type RoomStats struct {
	DownSince time.Time  // zero: it can be reached
	FailOpen  []FailOpen // the latest, the oldest first

	// Of rooms in mode off: requests that would have waited.
	Observed     uint64
	ObservedHour uint64 // of these: in the last 60 minutes

	// Of rooms in mode safety-net.
	Gate     string    // [GateOpen] or [GateShut] as last heard; empty: nothing was
	HeardAt  time.Time // when that was
	Unqueued int       // free sessions that go on, as far as they were here
	Started  uint64    // free sessions that began here
	Turned   uint64    // visitors led to the line as the gate was open, but not for more of them here
	Crowded  uint64    // likewise, but not for more of their network here
}

type counts struct {
	bypassed, observed, passed, started, queued, turned, crowded, blocked, held, opened, redeemed, refused, touches, released, dropped, copied, cut, panics, reports atomic.Uint64
}

// byName returns the counts as reports have them.
func (n *counts) byName() map[string]uint64 {
	return map[string]uint64{
		"bypassed": n.bypassed.Load(), "observed": n.observed.Load(), "passed": n.passed.Load(), "started": n.started.Load(), "queued": n.queued.Load(), "turned": n.turned.Load(), "crowded": n.crowded.Load(),
		"blocked": n.blocked.Load(), "held": n.held.Load(), "opened": n.opened.Load(), "redeemed": n.redeemed.Load(), "refused": n.refused.Load(),
		"touches": n.touches.Load(), "released": n.released.Load(), "dropped": n.dropped.Load(), "copied": n.copied.Load(), "cut": n.cut.Load(), "panics": n.panics.Load(),
	}
}

// Stats returns the counts.
func (c *Connector) Stats() Stats {
	n, now := &c.counts, c.current.Load()
	s := Stats{
		Bypassed: n.bypassed.Load(), Observed: n.observed.Load(), Passed: n.passed.Load(), Started: n.started.Load(), Queued: n.queued.Load(), Turned: n.turned.Load(), Crowded: n.crowded.Load(),
		Blocked: n.blocked.Load(), Held: n.held.Load(), FailedOpen: n.opened.Load(), Redeemed: n.redeemed.Load(), Refused: n.refused.Load(),
		Touches: n.touches.Load(), Released: n.released.Load(), Dropped: n.dropped.Load(), Copied: n.copied.Load(), Sharing: c.holders.maxClients(c.options.Now()), Cut: n.cut.Load(), Panics: n.panics.Load(), Reports: n.reports.Load(),
		HasRules: !now.isEarly, Serial: now.serial, Rooms: map[string]RoomStats{},
	}
	if s.TokenEnds = c.bearer.end(); !s.TokenEnds.IsZero() {
		s.TokenLeft = s.TokenEnds.Sub(c.options.Now())
	}
	for name, rm := range now.rooms {
		var room RoomStats
		rm.state.mu.Lock()
		room.DownSince, room.FailOpen = rm.state.downSince, slices.Clone(rm.state.failOpen)
		rm.state.mu.Unlock()
		rm.state.gate.stats(&room)
		room.Observed, room.ObservedHour = rm.state.observed.counts(c.options.Now())
		s.Rooms[name] = room
	}
	return s
}

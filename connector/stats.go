package connector

import (
	"slices"
	"sync/atomic"
	"time"
)

// Stats are the connector's counts since its start.
type Stats struct {
	Bypassed     uint64 // requests that did not need a session
	Observed     uint64 // of Bypassed: for a room in mode off, would have needed a session
	Passed       uint64 // requests with a session
	Started      uint64 // unqueued sessions that began
	Queued       uint64 // requests sent to a room
	Turned       uint64 // of Queued: the gate was open, but this node's share was used up
	Crowded      uint64 // of Queued: the gate was open, but the client's network was over its limit
	Blocked      uint64 // requests refused by the rules
	Unavailable  uint64 // requests asked to retry, because the room was out of reach
	FailedOpen   uint64 // requests admitted without a pass, because the room was out of reach
	Redeemed     uint64 // passes redeemed
	Refused      uint64 // invalid, expired or used passes
	Touches      uint64 // sessions extended at their room
	Released     uint64 // sessions ended by the site or the visitor
	Dropped      uint64 // touches and releases that could not be delivered
	Copied       uint64 // requests refused because too many clients share the session
	Sharing      int    // largest number of clients of one session in the last 10 minutes
	Cut          uint64 // upgraded connections closed because the session ended
	Panics       uint64 // panics of the connector that were recovered
	Reports      uint64 // reports that the server accepted
	HasRules     bool   // see [Connector.HasRules]
	RulesVersion uint64 // of signed rules; 0: not signed
	Rooms        map[string]RoomStats

	TokenEnds time.Time     // expiry of the server token; zero: never, or unknown
	TokenLeft time.Duration // until TokenEnds; negative: expired since then
}

// RoomStats are the counts and the state of a room since its address last changed.
type RoomStats struct {
	DownSince time.Time  // zero: reachable
	FailOpen  []FailOpen // the latest, oldest first

	// Rooms in mode off: requests that would have needed a session.
	Observed     uint64
	ObservedHour uint64 // of Observed: in the last 60 minutes

	// Rooms in mode safety-net.
	Gate     string    // [GateOpen] or [GateShut] in the latest reply; empty: no reply yet
	HeardAt  time.Time // time of the latest reply
	Unqueued int       // active unqueued sessions known to this node
	Started  uint64    // unqueued sessions that began here
	Turned   uint64    // visitors sent to the room because this node's share was used up
	Crowded  uint64    // visitors sent to the room because their network was over its limit
}

type counts struct {
	bypassed, observed, passed, started, queued, turned, crowded, blocked, unavailable, failedOpen, redeemed,
	refused, touches, released, dropped, copied, cut, panics, reports atomic.Uint64
}

// byName returns the counts by their names in reports.
func (n *counts) byName() map[string]uint64 {
	return map[string]uint64{
		"bypassed": n.bypassed.Load(), "observed": n.observed.Load(), "passed": n.passed.Load(),
		"started": n.started.Load(), "queued": n.queued.Load(), "turned": n.turned.Load(), "crowded": n.crowded.Load(),
		"blocked": n.blocked.Load(), "unavailable": n.unavailable.Load(), "failed_open": n.failedOpen.Load(), "redeemed": n.redeemed.Load(),
		"refused": n.refused.Load(), "touches": n.touches.Load(), "released": n.released.Load(),
		"dropped": n.dropped.Load(), "copied": n.copied.Load(), "cut": n.cut.Load(), "panics": n.panics.Load(),
	}
}

// Stats returns the current counts.
func (c *Connector) Stats() Stats {
	n, now := &c.counts, c.current.Load()
	s := Stats{
		Bypassed: n.bypassed.Load(), Observed: n.observed.Load(), Passed: n.passed.Load(),
		Started: n.started.Load(), Queued: n.queued.Load(), Turned: n.turned.Load(), Crowded: n.crowded.Load(),
		Blocked: n.blocked.Load(), Unavailable: n.unavailable.Load(), FailedOpen: n.failedOpen.Load(), Redeemed: n.redeemed.Load(),
		Refused: n.refused.Load(), Touches: n.touches.Load(), Released: n.released.Load(),
		Dropped: n.dropped.Load(), Copied: n.copied.Load(), Sharing: c.holders.maxClients(c.options.Now()),
		Cut: n.cut.Load(), Panics: n.panics.Load(), Reports: n.reports.Load(),
		HasRules: !now.isEarly, RulesVersion: now.version, Rooms: map[string]RoomStats{},
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

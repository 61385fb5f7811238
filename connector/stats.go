package connector

import (
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
)

// States of a gate in [RoomStats].
const (
	GateOpen = gate.Open
	GateShut = gate.Shut
)

// Stats are the connector's counts since its start.
type Stats struct {
	Bypassed     uint64 // requests that did not need a session
	Observed     uint64 // of Bypassed: would have needed a session if the room were not off
	Passed       uint64 // requests with a session
	Started      uint64 // unqueued sessions that began
	Queued       uint64 // requests sent to a room
	TurnedAway   uint64 // of Queued: the gate was open, but this node's share was used up
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
	RulesVersion uint64 // version of signed rules; 0: not signed
	Rooms        map[string]RoomStats

	TokenEnds time.Time     // expiry of the server token; zero: never, or unknown
	TokenLeft time.Duration // time until TokenEnds; negative: time since the expiry
}

// RoomStats are the counts and the state of a room since its address last changed.
type RoomStats struct {
	DownSince time.Time  // zero: reachable
	FailOpen  []FailOpen // the latest, oldest first

	// Rooms in mode off: requests that would have needed a session.
	Observed     uint64
	ObservedHour uint64 // of Observed: those of the last 60 minutes

	// Rooms in mode safety-net.
	Gate       string    // [GateOpen] or [GateShut] in the latest reply; empty: no reply yet
	HeardAt    time.Time // time of the latest reply
	Unqueued   int       // active unqueued sessions known to this node
	Started    uint64    // unqueued sessions that began here
	TurnedAway uint64    // visitors sent to the room because this node's share was used up
	Crowded    uint64    // visitors sent to the room because their network was over its limit
}

// FailOpen is an interval in which requests were admitted without a pass,
// because the room was out of reach.
type FailOpen struct {
	From     time.Time
	Until    time.Time // zero: still open
	Requests uint64    // number of requests admitted without a pass
}

// counts holds the counts of checked requests.
type counts struct {
	bypassed, observed, passed, started, queued, turned, crowded, blocked, unavailable, failedOpen, redeemed,
	refused, copied atomic.Uint64
}

// countsByName returns the counts by their names in reports.
func (c *Connector) countsByName() map[string]uint64 {
	n := &c.counts
	return map[string]uint64{
		"bypassed": n.bypassed.Load(), "observed": n.observed.Load(), "passed": n.passed.Load(),
		"started": n.started.Load(), "queued": n.queued.Load(), "turned": n.turned.Load(), "crowded": n.crowded.Load(),
		"blocked": n.blocked.Load(), "unavailable": n.unavailable.Load(), "failed_open": n.failedOpen.Load(),
		"redeemed": n.redeemed.Load(), "refused": n.refused.Load(), "copied": n.copied.Load(),
		"touches": c.sessions.outbox.Touched(), "released": c.sessions.released.Load(),
		"dropped": c.sessions.outbox.Dropped(), "cut": c.sessions.cut.Load(), "panics": c.group.Panics(),
	}
}

// Stats returns the current counts.
func (c *Connector) Stats() Stats {
	n, current, now := &c.counts, c.current.Load(), c.options.Now()
	s := Stats{
		Bypassed: n.bypassed.Load(), Observed: n.observed.Load(), Passed: n.passed.Load(),
		Started: n.started.Load(), Queued: n.queued.Load(), TurnedAway: n.turned.Load(), Crowded: n.crowded.Load(),
		Blocked: n.blocked.Load(), Unavailable: n.unavailable.Load(), FailedOpen: n.failedOpen.Load(),
		Redeemed: n.redeemed.Load(), Refused: n.refused.Load(), Touches: c.sessions.outbox.Touched(),
		Released: c.sessions.released.Load(), Dropped: c.sessions.outbox.Dropped(), Copied: n.copied.Load(),
		Sharing: c.sessions.store.MostClients(now), Cut: c.sessions.cut.Load(), Panics: c.group.Panics(),
		HasRules: !current.IsEarly, RulesVersion: current.Version, Rooms: map[string]RoomStats{},
	}
	if c.reporter != nil {
		s.Reports = c.reporter.Accepted()
	}
	if s.TokenEnds = c.token.End(); !s.TokenEnds.IsZero() {
		s.TokenLeft = s.TokenEnds.Sub(now)
	}
	for name, rm := range current.rooms {
		s.Rooms[name] = rm.state.stats(now)
	}
	return s
}

func (st *roomState) stats(now time.Time) RoomStats {
	g := st.gate.Stats()
	s := RoomStats{
		DownSince: st.reach.DownSince(), Gate: g.State, HeardAt: g.ReplyAt, Unqueued: g.Unqueued, Started: g.Started,
		TurnedAway: g.TurnedAway, Crowded: g.Crowded,
	}
	for _, i := range st.reach.Intervals() {
		s.FailOpen = append(s.FailOpen, FailOpen{i.From, i.Until, i.Requests})
	}
	s.Observed, s.ObservedHour = st.observed.counts(now)
	return s
}

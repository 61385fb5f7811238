// Package poll determines how often visitors' clients poll a server.
package poll

import (
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// Min and Max are the limits of polling intervals. Far from the front little changes, and polling a moment too late
// costs little.
const (
	Min = 2 * time.Second
	Max = time.Minute
	// minRest is the minimum interval for pages whose visitors wait for nothing, for example because
	// they missed their call.
	minRest = 2 * time.Minute
)

// restRate is the total number of requests per second from pages whose visitors wait for nothing. It
// equals the load of 60,000 visitors that wait.
const restRate = 1000

// Jitter is the share by which pages should vary the interval, so that they do not all ask at once.
const Jitter = "0.3"

// Longest returns the longest polling interval of a room. A visitor that is called right after an
// answer, because the organizer raised the outflow, still has half of the claim time left, whatever
// the jitter.
func Longest(s *room.Snapshot) time.Duration { return min(max(s.Claim/3, Min), Max) }

// Rest returns the interval for pages that only wait for the end of the line, an open gate or a restored place. It
// grows with the number of visitors that missed their call, left, or had their tickets revoked.
func Rest(s *room.Snapshot) time.Duration {
	people := s.Counts.NoShows + s.Counts.Left + s.Counts.Revoked
	return max(minRest, time.Duration(people)*time.Second/restRate) //nolint:gosec // at most fairness.MaxArrivals
}

// before returns the interval for pages that wait for an event in d.
func before(s *room.Snapshot, d time.Duration) time.Duration {
	return min(max(d/4, Min), Longest(s))
}

// Room returns the interval for polling a room's state.
func Room(s *room.Snapshot, now time.Time) time.Duration {
	switch s.Phase(now) {
	case room.PhaseUpcoming:
		return before(s, s.Opens.Sub(now))
	case room.PhaseOpen:
		return before(s, s.Starts.Sub(now))
	case room.PhaseEnded:
		return Rest(s)
	default:
		return Min
	}
}

// Ticket returns the interval for polling a ticket's state.
func Ticket(st *fairness.Standing, s *room.Snapshot, now time.Time) time.Duration {
	span, expected := s.Expected(*st, now)
	switch {
	case st.Status == fairness.StatusWaiting:
		return before(s, s.Draws(st.Window).Sub(now))
	case expected:
		return before(s, span.Earliest.Sub(now))
	case st.Status == fairness.StatusAdmitted, st.Status == fairness.StatusSkipped, s.Ended:
		return Rest(s)
	}
	return 2 * Min // called, or paused
}

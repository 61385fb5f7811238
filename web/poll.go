package web

import (
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// Bounds of the time after which a page should ask again. Far from the front
// little changes, and a moment too late costs little.
const (
	minPoll = 2 * time.Second
	maxPoll = time.Minute
	// minRest is how often a page may ask whose visitor waits for nothing, such
	// as somebody who missed the call.
	minRest = 2 * time.Minute
)

// restRate is how many requests a second all pages together make whose visitors
// wait for nothing, however many there are. It is what 60,000 people cost who wait.
const restRate = 1000

// pollJitter is the part of the time by which pages should vary it, so that
// they do not all ask at once.
const pollJitter = "0.3"

// mostPoll is how rarely a page may ask at all: so often that whoever is called
// the moment after an answer, because the organizer lets many more people in,
// still has half of the time to go in, whatever the jitter.
func mostPoll(s *room.Snapshot) time.Duration { return min(max(s.Claim/3, minPoll), maxPoll) }

// restPoll returns when a page asks again on which something may still change,
// though nobody is called there: that the line ends, or that the site lets people
// in. The more there are who missed their call or left, the more rarely.
func restPoll(s *room.Snapshot) time.Duration {
	people := s.Counts.NoShows + s.Counts.Left
	return max(minRest, time.Duration(people)*time.Second/restRate) //nolint:gosec // at most fairness.MaxArrivals
}

// pollBefore returns when to ask again about something that happens in d.
func pollBefore(s *room.Snapshot, d time.Duration) time.Duration {
	return min(max(d/4, minPoll), mostPoll(s))
}

// roomPoll returns when to ask again for a room's state.
func roomPoll(s *room.Snapshot, now time.Time) time.Duration {
	switch s.Phase(now) {
	case room.PhaseUpcoming:
		return pollBefore(s, s.Opens.Sub(now))
	case room.PhaseOpen:
		return pollBefore(s, s.Starts.Sub(now))
	case room.PhaseEnded:
		return restPoll(s)
	}
	return minPoll
}

// ticketPoll returns when to ask again where a ticket stands.
func ticketPoll(st *fairness.Standing, s *room.Snapshot, now time.Time) time.Duration {
	span, expected := s.Expected(*st, now)
	switch {
	case st.Status == fairness.StatusWaiting:
		return pollBefore(s, s.Draws(st.Window).Sub(now))
	case expected:
		return pollBefore(s, span.Earliest.Sub(now))
	case st.Status == fairness.StatusAdmitted, st.Status == fairness.StatusSkipped, s.Ended:
		return restPoll(s)
	}
	return 2 * minPoll // called, or paused
}

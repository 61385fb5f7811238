package poll

import (
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// TestPollBeforeClaim checks that a visitor called right after a response polls again in the first half of
// the claim time, whatever the expected time and the jitter.
func TestPollBeforeClaim(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, claim := range []time.Duration{30 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 24 * time.Hour} {
		s := &room.Snapshot{Opens: now.Add(-time.Hour), Starts: now.Add(-time.Hour), Claim: claim, Outflow: fairness.Outflow{PerMinute: 1}}
		far := fairness.Standing{Status: fairness.StatusDrawn, BeforeMin: 1e6, BeforeMax: 1e6}
		got := Ticket(&far, s, now)
		if latest := got * 13 / 10; latest > claim/2 || got > Max || got < min(claim/4, Max) {
			t.Errorf("claim %v: asks again after %v", claim, got)
		}
	}
}

// TestRestPoll checks that all pages whose visitors wait for nothing send at most a thousand requests per
// second together, however many there are.
func TestRestPoll(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, people := range []uint64{0, 1, 120_000, 1_000_000, fairness.MaxArrivals} {
		s := &room.Snapshot{Counts: fairness.Counts{NoShows: people / 2, Left: people / 4, Revoked: people - people/2 - people/4}}
		got := Rest(s)
		if rate := float64(people) / got.Seconds(); rate > restRate || got < minRest {
			t.Errorf("%d people ask every %v, %.0f times a second", people, got, rate)
		}
		if people <= 120_000 && got != minRest {
			t.Errorf("%d people ask every %v, and could do so every %v", people, got, minRest)
		}
		skipped := fairness.Standing{Status: fairness.StatusSkipped}
		if polls := Ticket(&skipped, s, now); polls != got {
			t.Errorf("a ticket is asked for every %v, the room every %v", polls, got)
		}
	}
}

package room

import (
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
)

// TestTurnSurvivesOutage stops the database for longer than the time to claim: the called visitor still gets in.
func TestTurnSurvivesOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	rs := node(t, server.URL(), newMaster(t))
	r := create(t, rs, Config{Slug: "survives", Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}},
		Outflow: Outflow{PerMinute: 600}, Claim: span(8 * time.Second), Grace: span(time.Second)})
	called := awaitCalled(t, r, joinMany(t, r, 1))
	server.KillHard()
	time.Sleep(10 * time.Second)
	server.Restart()
	eventually(t, "the visitor gets in", func() bool {
		_, err := r.Claim(t.Context(), called.ticket, called.secret)
		if errors.Is(err, ErrExpired) {
			t.Fatal("the outage cost the turn")
		}
		return err == nil
	})
	auditRoom(t, r)
}

// TestBeats: while a called visitor may claim and nothing else happens, beats keep the claim clock running.
func TestBeats(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "beats",
		Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}}, Outflow: Outflow{PerMinute: 600},
		Claim: span(3 * time.Second), Grace: span(time.Second)})
	awaitCalled(t, r, joinMany(t, r, 1))
	eventually(t, "the visitor is a no-show", func() bool { return r.Snapshot().Counts.NoShows == 1 }) // never without beats

	const without = 7 // room, arrive, freeze, draw, assign, call, skip
	if size := r.Snapshot().Size; size < without+3 || size > without+7 {
		t.Errorf("%d entries, want about five beats", size-without)
	}
	time.Sleep(1500 * time.Millisecond) // nobody is called any more
	if size := r.Snapshot().Size; size > without+7 {
		t.Errorf("%d entries", size)
	}
	auditRoom(t, r)
}

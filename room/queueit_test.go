package room

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/queueit"
)

const queueItKey = "4e1db821-a825-49da-acd0-5d376f2068db" // from KnownUser's own tests

// TestQueueIt configures a room for Queue-it connectors, on one node and for another, changes it without
// giving the key, and ends it.
func TestQueueIt(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	first, second := node(t, url, master), node(t, url, master)
	r := create(t, first, Config{Slug: "switch", Settings: Settings{Targets: []string{"https://shop.example.com/"}}})
	other, err := second.Get(t.Context(), "switch")
	if err != nil {
		t.Fatal(err)
	}
	ticket := newVisitor(r).ticket
	st := fairness.Standing{Ticket: ticket, Settled: millis.Of(time.Now())}
	if token, err := r.QueueIt.Token(t.Context(), st); token != "" || err != nil {
		t.Fatalf("token %q without settings, %v", token, err)
	}
	if err := r.QueueIt.Set(t.Context(), queueit.Config{CustomerID: "arena"}, queueItKey); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node knows", func() bool { q, ok := other.QueueIt.Config(); return ok && q.CustomerID == "arena" })
	if err := other.QueueIt.Set(t.Context(), queueit.Config{CustomerID: "arena", Extend: true}, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is known", func() bool { q, ok := r.QueueIt.Config(); return ok && q.Extend })
	for _, r := range []*Room{r, other} {
		token, err := r.QueueIt.Token(t.Context(), st)
		if want := "~ce_true~q_" + ticket.String() + "~rt_queue~h_"; err != nil || !strings.HasPrefix(token, "e_switch~ts_") || !strings.Contains(token, want) {
			t.Errorf("token %q, %v, want %s in it", token, err, want)
		}
		if targets := r.Config().Targets; len(targets) != 1 {
			t.Errorf("targets %v", targets)
		}
	}
	var stored string
	if err := connect(t, url).QueryRow(t.Context(), `select settings::text from rooms where room_id = $1`, r.ID).Scan(&stored); err != nil || strings.Contains(stored, queueItKey) || !strings.Contains(stored, "arena") {
		t.Errorf("stored %s, %v", stored, err)
	}
	if err := r.QueueIt.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is over everywhere", func() bool { _, ok := other.QueueIt.Config(); return !ok })
	if token, err := r.QueueIt.Token(t.Context(), st); token != "" || err != nil {
		t.Errorf("token %q afterwards, %v", token, err)
	}
	if _, ok := errors.AsType[*invalid.Error](r.QueueIt.Set(t.Context(), queueit.Config{CustomerID: "arena"}, "")); !ok {
		t.Error("the key of before is still there")
	}
}

// TestQueueItOtherMaster: with another master key there are no tokens, and the error does not reveal the
// encrypted key.
func TestQueueItOtherMaster(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "sealed"})
	if err := r.QueueIt.Set(t.Context(), queueit.Config{CustomerID: "arena"}, queueItKey); err != nil {
		t.Fatal(err)
	}
	other := queueit.New(r.ID, r.Slug, newMaster(t), r.details, r.Sessions, r.Now)
	if token, err := other.Token(t.Context(), fairness.Standing{Ticket: newVisitor(r).ticket}); token != "" || !errors.Is(err, keys.ErrMasterKey) {
		t.Errorf("token %q, %v", token, err)
	}
}

// TestQueueItKeepsPlace: Queue-it connectors redeem nothing, so a visitor with a token keeps the place for
// the session, and any other visitor for the life of the pass.
func TestQueueItKeepsPlace(t *testing.T) {
	t.Parallel()
	c := quick("tokens")
	c.Session = span(time.Hour)
	d, nodes, rooms := dialed(t, c)
	if err := rooms[0].QueueIt.Set(t.Context(), queueit.Config{CustomerID: "arena"}, queueItKey); err != nil {
		t.Fatal(err)
	}
	there, _ := admit(t, rooms[0])
	admit(t, rooms[0])
	st, _ := rooms[0].Standing(there.ticket)
	token := func() string {
		token, err := rooms[0].QueueIt.Token(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if got := token(); !strings.Contains(got, "~cv_60~") {
		t.Errorf("token %s, want 60 minutes", got)
	}
	d.pass(30*time.Minute, nodes[:]...)
	if got := token(); !strings.Contains(got, "~cv_30~") {
		t.Errorf("token %s, want 30 minutes", got)
	}
	for n, r := range rooms {
		if !r.Sessions.IsIn(t.Context(), st) {
			t.Errorf("node %d: the visit is over", n)
		}
		eventually(t, "one place is free", func() bool { return present(r) == 1 })
	}
}

package relay_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
)

// TestMonitor checks that a monitor follows relays that go down and come back, reports each change once, and
// does not mistake relays of another chain for ours.
func TestMonitor(t *testing.T) {
	t.Parallel()
	chain := func(id string) *local.Beacon {
		b, err := local.New(local.NewKey(), local.Config{ID: id, Genesis: time.Now().Unix() - 60, Period: 1})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ours, other := chain("ours"), chain("other")
	var answers atomic.Pointer[http.Handler]
	set := func(h http.Handler) { answers.Store(&h) }
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { (*answers.Load()).ServeHTTP(w, r) })
	changes := []error{}
	client := &relay.Client{Chain: ours.Chain(), URLs: []string{server.URL}}
	m := &relay.Monitor{Client: client, OnChange: func(err error) { changes = append(changes, err) }}

	if m.Err() != nil {
		t.Error("before the first probe there is an error")
	}
	set(http.NotFoundHandler())
	for range 2 {
		if err := m.Check(t.Context()); err == nil || m.Err() == nil {
			t.Fatal("relays without the chain pass")
		}
	}
	set(other.Handler())
	if m.Check(t.Context()) == nil {
		t.Fatal("relays of another chain pass")
	}
	set(ours.Handler())
	if err := m.Check(t.Context()); err != nil {
		t.Fatalf("honest relays do not pass: %v", err)
	}
	asked := server.asked.Load()
	if err := m.Check(t.Context()); err != nil || server.asked.Load() != asked {
		t.Errorf("a fresh result is not used again: %v, %d more requests", err, server.asked.Load()-asked)
	}
	if len(changes) != 2 || changes[0] == nil || changes[1] != nil {
		t.Errorf("reported %v, want one failure and one recovery", errors.Join(changes...))
	}
}

package room

import (
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
)

// TestHold keeps called visitors out on every node, costs nobody the time to
// go in, and is over with the pause.
func TestHold(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	rs, other := node(t, url, master), node(t, url, master)
	r := create(t, rs, Config{
		Slug: "hold", Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}},
		Outflow: Outflow{PerMinute: 600}, Claim: span(time.Minute),
	})
	visitors := joinMany(t, r, 2)
	called := awaitCalled(t, r, visitors)
	before, _ := r.Standing(called.ticket)
	if err := r.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Claim(t.Context(), called.ticket, called.secret); !errors.Is(err, ErrHeld) {
		t.Errorf("claim while held: %v, want ErrHeld", err)
	}
	far := get(t, other, "hold")
	eventually(t, "the other node holds", far.IsHeld)
	if _, err := far.Claim(t.Context(), called.ticket, called.secret); !errors.Is(err, ErrHeld) {
		t.Errorf("claim on another node: %v, want ErrHeld", err)
	}
	first, _ := r.Standing(called.ticket)
	time.Sleep(100 * time.Millisecond)
	if second, _ := r.Standing(called.ticket); second.Left != first.Left || first.Left > before.Left+5000 { // a node guesses the database's clock
		t.Errorf("time to go in: %d ms, then %d ms, then %d ms", before.Left, first.Left, second.Left)
	}
	if err := far.Resume(t.Context()); err != nil { // where it was not held
		t.Fatal(err)
	}
	eventually(t, "the hold is over", func() bool { return !r.flow.held.Load() })
	if _, err := r.Claim(t.Context(), called.ticket, called.secret); err != nil {
		t.Errorf("claim after the hold: %v", err)
	}
	if err := r.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.IsHeld() {
		t.Error("a pause after a hold holds everybody again")
	}
	auditRoom(t, r)
}

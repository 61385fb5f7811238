package room

import (
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
)

// TestEmptyWake wakes the sequencer without work between requests, as every
// entry of another node does: memory that goes back and forth between it and
// the queue must never be in both places.
func TestEmptyWake(t *testing.T) {
	rs := node(t, pgtest.URL(t), newMaster(t))
	r, err := rs.Create(t.Context(), Config{Slug: "wake"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		for _, change := range []func() error{
			func() error { return r.Pause(t.Context()) },
			func() error { return r.Resume(t.Context()) },
			func() error { _, err := r.Join(t.Context(), newVisitor(r).ticket); return err },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			r.queue.signal()
			time.Sleep(2 * time.Millisecond) // let it wake
		}
	}
}

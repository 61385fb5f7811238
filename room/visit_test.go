package room

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
)

// TestIsIn: a visit ends with its session, on any node. Without the database it lasts as long as the pass.
func TestIsIn(t *testing.T) {
	t.Parallel()
	c := quick("visits")
	c.Session = span(time.Hour)
	d, nodes, rooms := dialed(t, c)
	idle, _ := admit(t, rooms[0])
	touching, touched := enter(t, rooms[1])
	releasing, released := admit(t, rooms[0])
	away, cancel := context.WithCancel(t.Context())
	cancel()
	in := func(ctx context.Context, when string, want ...bool) {
		t.Helper()
		for n, r := range rooms {
			for i, v := range []visitor{idle, touching, releasing} {
				var st fairness.Standing
				eventually(t, "the admission is known", func() bool {
					st, _ = r.Standing(v.ticket)
					return st.Status == fairness.StatusAdmitted
				})
				if got := r.Sessions.IsIn(ctx, st); got != want[i] {
					t.Errorf("%s: visit %d on node %d goes on: %t", when, i, n, got)
				}
			}
		}
	}
	in(t.Context(), "at first", true, true, true)
	if _, err := rooms[0].Sessions.Release(t.Context(), released.Token); err != nil {
		t.Fatal(err)
	}
	in(t.Context(), "after a release", true, true, false)
	in(away, "when no node can know of it", true, true, true)
	if _, err := rooms[1].Claim(t.Context(), releasing.ticket, releasing.secret); !errors.Is(err, ErrExpired) {
		t.Errorf("claim after the release: %v, want ErrExpired", err)
	}
	d.pass(40*time.Minute, nodes[:]...)
	if _, err := rooms[0].Sessions.Touch(t.Context(), touched.Token); err != nil {
		t.Fatal(err)
	}
	d.pass(25*time.Minute, nodes[:]...) // after the passes have expired
	in(t.Context(), "after the passes", false, true, false)
	in(away, "after the passes, when no node can know", false, false, false)
}

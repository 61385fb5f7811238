package room

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
)

// TestLeave gives places up before the draw, after it and when called, and also tries it with wrong secrets.
func TestLeave(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, Config{
		Slug: "leave", Windows: []WindowRule{{Length: Duration(700 * time.Millisecond)}},
		Outflow: Outflow{PerMinute: 60, MaxActive: 1}, Claim: span(time.Hour),
	})
	visitors := joinMany(t, r, 3)
	leave := func(v visitor) error { return r.Leave(t.Context(), v.ticket, v.secret) }
	stranger := newVisitor(r)
	if err := leave(stranger); !errors.Is(err, ErrTicketUnknown) {
		t.Errorf("leave without having joined: %v, want ErrTicketUnknown", err)
	}
	if err := r.Leave(t.Context(), visitors[0].ticket, stranger.secret); !errors.Is(err, ErrSecret) {
		t.Errorf("leave with another visitor's secret: %v, want ErrSecret", err)
	}
	if n := count(t, url, r, fairness.KindSkip); n != 0 {
		t.Fatalf("%d skips, though no visitor has left", n)
	}
	early := newVisitor(r)
	if _, err := r.Join(t.Context(), early.ticket); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 { // at once, and again
		wg.Go(func() {
			if err := leave(early); err != nil {
				t.Errorf("leave: %v", err)
			}
		})
	}
	wg.Wait()
	if st, _ := r.Standing(early.ticket); st.Status != fairness.StatusSkipped || st.Reason != fairness.Left {
		t.Errorf("left, and stands as %+v", st)
	}
	if _, err := r.Claim(t.Context(), early.ticket, early.secret); !errors.Is(err, ErrExpired) {
		t.Errorf("claim after leaving: %v, want ErrExpired", err)
	}
	first := awaitCalled(t, r, visitors)
	if err := leave(first); err != nil {
		t.Errorf("leave when called: %v", err)
	}
	second := awaitCalled(t, r, visitors) // the place becomes free for the next visitor
	if _, err := r.Claim(t.Context(), second.ticket, second.secret); err != nil {
		t.Fatal(err)
	}
	if err := leave(second); !errors.Is(err, ErrSettled) {
		t.Errorf("leave after admission: %v, want ErrSettled", err)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, v := range visitors {
		if st, _ := r.Standing(v.ticket); st.Status == fairness.StatusDrawn {
			if err := leave(v); !errors.Is(err, ErrSettled) {
				t.Errorf("leave after the end: %v, want ErrSettled", err)
			}
		}
	}
	if err := leave(early); err != nil {
		t.Errorf("leave again after the end: %v", err)
	}
	if n := count(t, url, r, fairness.KindSkip); n != 2 {
		t.Errorf("%d skips, want 2", n)
	}
	auditRoom(t, r)
}

// awaitCalled waits until one of the visitors is called, and returns it.
func awaitCalled(t *testing.T, r *Room, visitors []visitor) (called visitor) {
	t.Helper()
	eventually(t, "a visitor is called", func() bool {
		for _, v := range visitors {
			if st, _ := r.Standing(v.ticket); st.Status == fairness.StatusCalled {
				called = v
				return true
			}
		}
		return false
	})
	return called
}

package room

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
)

// TestExtendTurn gives a called ticket more time, once, however often its visitor asks, and no other ticket.
func TestExtendTurn(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, Config{
		Slug: "extend", Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}},
		Outflow: Outflow{PerMinute: 60, MaxActive: 1}, Claim: span(time.Hour), Extend: span(30 * time.Minute),
	})
	visitors := joinMany(t, r, 2)
	first := awaitCalled(t, r, visitors)
	second := visitors[0]
	if second.ticket == first.ticket {
		second = visitors[1]
	}
	if err := r.Extend(t.Context(), first.ticket, second.secret); !errors.Is(err, ErrSecret) {
		t.Errorf("with another visitor's secret: %v, want ErrSecret", err)
	}
	if err := r.Extend(t.Context(), second.ticket, second.secret); !errors.Is(err, ErrNotCalled) {
		t.Errorf("of a ticket in line: %v, want ErrNotCalled", err)
	}
	if err := r.FreezeClaims(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Extend(t.Context(), first.ticket, first.secret); !errors.Is(err, ErrClaimsFrozen) {
		t.Errorf("while claims are frozen: %v, want ErrClaimsFrozen", err)
	}
	if err := r.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 { // at once, and again
		wg.Go(func() {
			err := r.Extend(t.Context(), first.ticket, first.secret)
			st, _ := r.Standing(first.ticket)
			if left := time.Duration(st.Left) * time.Millisecond; err != nil || left < 85*time.Minute || left > 90*time.Minute {
				t.Errorf("%v, with %s left", err, left)
			}
		})
	}
	wg.Wait()
	if n := count(t, url, r, fairness.KindExtend); n != 1 {
		t.Errorf("%d extend entries, want 1", n)
	}
	if _, err := r.Claim(t.Context(), first.ticket, first.secret); err != nil {
		t.Error(err)
	}
	if err := r.Extend(t.Context(), first.ticket, first.secret); !errors.Is(err, ErrSettled) {
		t.Errorf("after the claim: %v, want ErrSettled", err)
	}
	plain := create(t, rs, quick("plain"))
	v := joinMany(t, plain, 1)
	awaitCalled(t, plain, v)
	if err := plain.Extend(t.Context(), v[0].ticket, v[0].secret); !errors.As(err, new(*fairness.Violation)) {
		t.Errorf("in a room without extensions: %v, want a violation", err)
	}
}

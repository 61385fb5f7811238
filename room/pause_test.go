package room

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
)

// TestFreezeClaims keeps called visitors out on every node, costs no visitor any claim time, and ends with
// the pause.
func TestFreezeClaims(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	rs, other := node(t, url, master), node(t, url, master)
	r := create(t, rs, Config{
		Slug: "frozen", Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}},
		Outflow: Outflow{PerMinute: 600}, Claim: span(time.Minute),
	})
	visitors := joinMany(t, r, 2)
	called := awaitCalled(t, r, visitors)
	before, _ := r.Standing(called.ticket)
	if err := r.FreezeClaims(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Claim(t.Context(), called.ticket, called.secret); !errors.Is(err, ErrClaimsFrozen) {
		t.Errorf("claim while frozen: %v, want ErrClaimsFrozen", err)
	}
	far := get(t, other, "frozen")
	eventually(t, "the other node freezes claims", func() bool { return far.Snapshot().ClaimsFrozen })
	if _, err := far.Claim(t.Context(), called.ticket, called.secret); !errors.Is(err, ErrClaimsFrozen) {
		t.Errorf("claim on another node: %v, want ErrClaimsFrozen", err)
	}
	first, _ := r.Standing(called.ticket)
	time.Sleep(100 * time.Millisecond)
	if second, _ := r.Standing(called.ticket); second.Left != first.Left || first.Left > before.Left+5000 { // a node guesses the database's clock
		t.Errorf("time to go in: %d ms, then %d ms, then %d ms", before.Left, first.Left, second.Left)
	}
	if err := far.Resume(t.Context()); err != nil { // where claims were not frozen
		t.Fatal(err)
	}
	eventually(t, "the freeze is over", func() bool { return !r.Snapshot().ClaimsFrozen })
	if _, err := r.Claim(t.Context(), called.ticket, called.secret); err != nil {
		t.Errorf("claim after the freeze: %v", err)
	}
	for _, step := range []struct {
		do   func(context.Context) error
		want Phase
	}{{r.Pause, PhasePaused}, {r.FreezeClaims, PhaseClaimsFrozen}, {r.FreezeClaims, PhaseClaimsFrozen}, {r.Pause, PhasePaused}, {r.FreezeClaims, PhaseClaimsFrozen}, {r.Resume, PhaseServing}, {r.Resume, PhaseServing}} {
		if err := step.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.Snapshot().Phase(r.Now()); got != step.want {
			t.Errorf("phase %s, want %s", got, step.want)
		}
	}
	var said []string
	for _, e := range transcript(t, r) {
		if text := string(fairness.AppendEntry(nil, e)); strings.HasPrefix(text, "amend ") {
			said = append(said, strings.SplitN(text, " ", 3)[2])
		}
	}
	if want := []string{"pause claims", "resume", "pause", "pause claims", "pause", "pause claims", "resume"}; !slices.Equal(said, want) {
		t.Errorf("the transcript says %q, want %q", said, want)
	}
	auditRoom(t, r)
}

package projection

import (
	"slices"
	"sync"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// TestRefusedStored: statements that an append may or may not have stored are made again, unchanged, until the log has
// them, and not once more.
func TestRefusedStored(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/refused", "operator")
	if err != nil {
		t.Fatal(err)
	}
	p := New(nil, nil)
	root := func() (h audit.Hash) { return h }
	apply := func(e fairness.Entry) {
		t.Helper()
		if err := p.Apply(e, root); err != nil {
			t.Fatal(err)
		}
	}
	apply(&fairness.Room{Policy: keys.Policy()})
	const first = roomtest.Opens + 5_000
	for i := range 7 {
		p.controls.Refusals.Add(RefusedFull, first+fairness.Time(i))
	}
	if p.IsDue(first+toldInterval-1) || len(p.NextRefused(first+toldInterval-1, false)) > 0 {
		t.Error("due within the minute")
	}
	due := first + toldInterval
	if !p.IsDue(due) {
		t.Error("not due after the minute")
	}
	want := []fairness.Tell{{Time: due, Subject: fairness.TellRefused, Name: "full", From: first, Until: due, Count: 7}}
	before := p.Mark()
	if got := p.NextRefused(due, false); !slices.Equal(got, want) {
		t.Fatalf("due are %+v, want %+v", got, want)
	}
	apply(&want[0])
	if got := p.NextRefused(due, true); len(got) > 0 {
		t.Errorf("in the same batch once more: %+v", got)
	}
	p.Undo(before) // the append seems to have failed
	p.ToldRefused()
	p.controls.Refusals.Add(RefusedBusy, due+1)
	want[0].Time = due + 3_000
	if got := p.NextRefused(due+3_000, false); !slices.Equal(got, want) {
		t.Fatalf("after a failed append %+v are due, want %+v", got, want)
	}
	stored := want[0] // by the append, as another node's entries turn out to show
	stored.Time = due
	apply(&stored)
	if got := p.NextRefused(due+4_000, false); len(got) > 0 {
		t.Errorf("stored, and due again: %+v", got)
	}
	p.ToldRefused()
	if n := len(p.controls.Refusals.taken); n > 0 {
		t.Errorf("%d statements are kept that the log has", n)
	}
	if got := p.NextRefused(due+4_000, true); len(got) != 1 || got[0].Name != "busy" || got[0].Count != 1 {
		t.Errorf("the rest is %+v", got)
	}
	apply(&fairness.End{Time: due + 4_000})
	p.controls.Refusals.Add(RefusedBusy, due+5_000)
	if p.IsDue(due+100_000) || len(p.NextRefused(due+100_000, true)) > 0 {
		t.Error("due after the end")
	}
}

// TestRefusedClock: if the clock stands still or goes back, an interval still ends after it begins, and not in the future.
func TestRefusedClock(t *testing.T) {
	t.Parallel()
	p := New(nil, nil)
	for i, ahead := range []fairness.Time{0, -1, 1, 90_000} {
		now := 1_000 * fairness.Time(i+1)
		p.controls.Refusals.Add(RefusedNetwork, now+ahead)
		got := p.NextRefused(now, true)
		if len(got) != 1 || got[0].From >= got[0].Until || got[0].Until > got[0].Time || got[0].Time != now {
			t.Fatalf("refused at %d and stated at %d: %+v", now+ahead, now, got)
		}
		p.told = keep(p.told, keptTold, got[0])
		p.ToldRefused()
	}
}

// TestRefusedCount counts in many goroutines, while statements are made.
func TestRefusedCount(t *testing.T) {
	t.Parallel()
	p := New(nil, nil)
	const goroutines, each = 8, 20_000
	var adding sync.WaitGroup
	for range goroutines {
		adding.Go(func() {
			for i := range each {
				p.controls.Refusals.Add(Refusal(i%int(refusals)), fairness.Time(1+i))
			}
		})
	}
	var total uint64
	take := func() {
		for _, e := range p.NextRefused(200_000, true) {
			total += e.Count
			p.told = keep(p.told, keptTold, e)
		}
		p.ToldRefused()
	}
	done := make(chan struct{})
	go func() { adding.Wait(); close(done) }()
	for isDone := false; !isDone; take() {
		select {
		case <-done:
			isDone = true
		default:
		}
	}
	if total != goroutines*each {
		t.Errorf("%d refusals are stated, want %d", total, goroutines*each)
	}
}

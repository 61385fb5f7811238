package room

import (
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// TestExpectedLimit: a full site slows the line down, but affects only the latest expected time.
func TestExpectedLimit(t *testing.T) {
	t.Parallel()
	drawn := func(ahead uint64) fairness.Standing {
		return fairness.Standing{Status: fairness.StatusDrawn, BeforeMin: ahead, BeforeMax: ahead}
	}
	in := func(minutes float64) time.Time { return moment.Add(time.Duration(minutes * float64(time.Minute))) }
	for _, test := range []struct {
		name   string
		limit  *projection.Limit
		ahead  uint64
		latest float64 // minutes
	}{
		{"no limit", nil, 999, 12.5},
		{"among the free", &projection.Limit{Free: 1000, First: in(20), PerMinute: 1}, 999, 12.5},
		{"behind the free", &projection.Limit{Free: 100, First: in(0), PerMinute: 10}, 999, 1 + 89.9*1.25},
		{"behind free places taken late", &projection.Limit{Free: 100, First: in(7), PerMinute: 10}, 999, 7 + 89.9*1.25},
		{"a full site", &projection.Limit{Free: 0, First: in(3), PerMinute: 10}, 999, 3 + 99.9*1.25},
		{"faster than the outflow", &projection.Limit{Free: 0, First: in(0), PerMinute: 1000}, 999, 12.5},
		{"next, and the site is full", &projection.Limit{Free: 0, First: in(20), PerMinute: 2.5}, 0, 20},
	} {
		s := Snapshot{Outflow: fairness.Outflow{PerMinute: 100}, Limit: test.limit}
		got, _ := s.Expected(drawn(test.ahead), moment)
		if (got.Latest.Sub(in(test.latest))).Abs() > time.Millisecond {
			t.Errorf("%s: at the latest after %v, want %v min", test.name, got.Latest.Sub(moment), test.latest)
		}
		if want := s.calls(test.ahead); got.Earliest.Sub(moment) != want {
			t.Errorf("%s: not before %v, want %v", test.name, got.Earliest.Sub(moment), want)
		}
	}
}

// TestLimit admits two visitors into a room with three places, and lets one not come.
func TestLimit(t *testing.T) {
	t.Parallel()
	c := quick("limit")
	c.Outflow.MaxActive, c.Claim, c.Session = 3, span(time.Minute), span(2*time.Minute)
	c.Grace = span(time.Hour) // minutes pass without entries
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	r := create(t, rs, c)
	free := func() uint64 { return r.Snapshot().Limit.Free }
	if l := r.Snapshot().Limit; l == nil || l.Free != 3 || l.PerMinute < 0.99 || l.PerMinute > 1 { // three every 180.5 s
		t.Fatalf("limit of an empty room %+v", l)
	}
	if first := r.Snapshot().Limit.First.Sub(r.Snapshot().latest); first != 180_500*time.Millisecond {
		t.Errorf("the first place is free %v after the room is made", first)
	}
	_, pass := admit(t, r)
	admit(t, r)
	if got := free(); got != 1 {
		t.Errorf("%d places are free, want 1", got)
	}
	if late := r.Snapshot().Limit.First.Sub(pass.Expires); late.Abs() > 500*time.Millisecond { // expiry is rounded up to a second
		t.Errorf("the first place is free %v after the first pass expires", late)
	}
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the third is called", func() bool { return free() == 0 })
	d.pass(4*time.Minute, rs)
	eventually(t, "all are gone", func() bool {
		_, _ = r.Join(t.Context(), newVisitor(r).ticket) // for a new snapshot
		return free() > 0
	})
}

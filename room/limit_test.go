package room

import (
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
)

// TestExpectedLimit: a full site slows the line down, at the latest end alone.
func TestExpectedLimit(t *testing.T) {
	t.Parallel()
	drawn := func(ahead uint64) fairness.Standing {
		return fairness.Standing{Status: fairness.StatusDrawn, AheadMin: ahead, AheadMax: ahead}
	}
	in := func(minutes float64) time.Time { return moment.Add(time.Duration(minutes * float64(time.Minute))) }
	for _, test := range []struct {
		name   string
		limit  *Limit
		ahead  uint64
		latest float64 // minutes
	}{
		{"no limit", nil, 999, 12.5},
		{"among the free", &Limit{1000, in(20), 1}, 999, 12.5},
		{"behind the free", &Limit{100, in(0), 10}, 999, 1 + 89.9*1.25},
		{"behind the free, who go late", &Limit{100, in(7), 10}, 999, 7 + 89.9*1.25},
		{"a full site", &Limit{0, in(3), 10}, 999, 3 + 99.9*1.25},
		{"faster than the outflow", &Limit{0, in(0), 1000}, 999, 12.5},
		{"next, and the site is full", &Limit{0, in(20), 2.5}, 0, 20},
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

// TestFreed counts the places that become free, not those that are taken.
func TestFreed(t *testing.T) {
	t.Parallel()
	var f freed
	add := func(at fairness.Time, people int64) {
		f.looks = append(f.looks, freedLook{at, people})
	}
	if got := f.perMinute(); got != 0 {
		t.Errorf("of no looks %v", got)
	}
	add(0, 10)
	add(50_000, 100)
	if got := f.perMinute(); got != 0 {
		t.Errorf("of less than a minute %v", got)
	}
	add(120_000, 40)
	if got := f.perMinute(); got != 15 {
		t.Errorf("of two minutes %v, want 15", got)
	}
	add(240_000, 0) // sessions were touched
	if got := f.perMinute(); got != 0 {
		t.Errorf("when fewer are free than before: %v", got)
	}
}

// TestLimit lets two people into a room with three places, and one not come.
func TestLimit(t *testing.T) {
	t.Parallel()
	c := quick("limit")
	c.Outflow.MaxActive, c.Claim, c.Session = 3, span(time.Minute), span(2*time.Minute)
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
	if late := r.Snapshot().Limit.First.Sub(pass.Expires); late.Abs() > 500*time.Millisecond { // passes expire with a whole second, up to one later
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
	now := fromTime(r.Now())
	r.mu.RLock()
	defer r.mu.RUnlock()
	var f freed
	for i := range fairness.Time(100) {
		f.note(now+i*freedEvery/2, r.live)
	}
	if n := len(f.looks); n != freedMost+1 || f.looks[n-1].at-f.looks[0].at != freedMost*freedEvery {
		t.Errorf("%d looks are kept", n)
	}
}

package room

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/projection"
)

func TestPhase(t *testing.T) {
	t.Parallel()
	in := func(minutes int) time.Time { return moment.Add(time.Duration(minutes) * time.Minute) }
	room := Snapshot{Opens: in(1), Starts: in(2), Closes: at(in(3))}
	forever, paused, ended := room, room, room
	forever.Closes, paused.Paused, ended.Paused, ended.Ended = nil, true, true, true
	for _, test := range []struct {
		s    Snapshot
		now  time.Time
		want Phase
	}{
		{room, in(0), PhaseUpcoming}, {room, in(1).Add(-1), PhaseUpcoming},
		{room, in(1), PhaseOpen}, {room, in(2).Add(-1), PhaseOpen},
		{room, in(2), PhaseServing}, {room, in(3).Add(-1), PhaseServing},
		{room, in(3), PhaseClosed}, {room, in(1000), PhaseClosed},
		{forever, in(1000), PhaseServing},
		{paused, in(0), PhaseUpcoming}, {paused, in(1), PhasePaused}, {paused, in(3), PhasePaused},
		{ended, in(0), PhaseEnded}, {ended, in(2), PhaseEnded},
	} {
		if got := test.s.Phase(test.now); got != test.want {
			t.Errorf("%v after the creation: %s, want %s", test.now.Sub(moment), got, test.want)
		}
	}
}

// TestWindow finds the open window with its arrivals.
func TestWindow(t *testing.T) {
	t.Parallel()
	opens := moment.Add(time.Minute)
	p, err := Config{Slug: "a", Opens: &opens, Closes: at(opens.Add(3 * time.Minute))}.withDefaults(moment).policy(anyone)
	if err != nil {
		t.Fatal(err)
	}
	s := snapshotOf(t, p)
	second, _ := s.schedule.At(millis.Of(opens.Add(time.Minute)))
	s.Windows = []fairness.WindowSum{{Window: second, Arrivals: 5}}
	for _, test := range []struct {
		now      time.Time
		ok       bool
		index    fairness.WindowIndex
		arrivals uint32
	}{
		{opens.Add(-1), false, 0, 0}, {opens, true, 0, 0}, {opens.Add(time.Minute), true, 1, 5}, {opens.Add(2 * time.Minute), true, 2, 0}, {opens.Add(3 * time.Minute), false, 0, 0},
	} {
		if w, ok := s.Window(test.now); ok != test.ok || w.Index != test.index || w.Arrivals != test.arrivals {
			t.Errorf("%v after opening: %+v, %t", test.now.Sub(opens), w, ok)
		}
	}
	s.Ended = true
	if _, ok := s.Window(opens); ok {
		t.Error("an ended room has an open window")
	}
}

func TestExpected(t *testing.T) {
	t.Parallel()
	in := func(minutes float64) time.Time { return moment.Add(time.Duration(minutes * float64(time.Minute))) }
	s := &Snapshot{Starts: in(10), Outflow: fairness.Outflow{PerMinute: 4}}
	window := fairness.Window{To: millis.Of(in(20))}
	for _, test := range []struct {
		name             string
		st               fairness.Standing
		now              time.Time
		earliest, latest time.Time
	}{
		{"drawn, before the start", fairness.Standing{Status: fairness.StatusDrawn, BeforeMin: 8, BeforeMax: 8}, in(0), in(12), in(10 + 9.0/4*1.25)},
		{"drawn, after the start", fairness.Standing{Status: fairness.StatusDrawn, BeforeMin: 8, BeforeMax: 8}, in(30), in(32), in(30 + 9.0/4*1.25)},
		{"first in line", fairness.Standing{Status: fairness.StatusDrawn}, in(30), in(30), in(30 + 1.0/4*1.25)},
		{"waiting for the draw", fairness.Standing{Status: fairness.StatusWaiting, Window: window, BeforeMin: 4, BeforeMax: 15}, in(12), in(21), in(25)},
		{"waiting for a late draw", fairness.Standing{Status: fairness.StatusWaiting, Window: window, BeforeMin: 4, BeforeMax: 15}, in(24), in(25), in(29)},
	} {
		got, ok := s.Expected(test.st, test.now)
		if !ok || got.Earliest.Sub(test.earliest).Abs() > time.Millisecond || got.Latest.Sub(test.latest).Abs() > time.Millisecond {
			t.Errorf("%s: %v, %t; want %v to %v", test.name, got, ok, test.earliest, test.latest)
		}
	}
	paused, ended := *s, *s
	paused.Paused, ended.Ended = true, true
	drawn := fairness.Standing{Status: fairness.StatusDrawn}
	_, inPause := paused.Expected(drawn, moment)
	_, inEnd := ended.Expected(drawn, moment)
	if inPause || inEnd {
		t.Error("something is expected in a pause, or after the end")
	}
	for _, status := range []fairness.Status{fairness.StatusCalled, fairness.StatusAdmitted, fairness.StatusSkipped} {
		if _, ok := s.Expected(fairness.Standing{Status: status}, moment); ok {
			t.Errorf("a call is expected of a ticket that is %s", status)
		}
	}
}

// TestExpectedOrder checks for arbitrary numbers that the range is valid and not in the past, and that a
// visitor further behind is not expected earlier.
func TestExpectedOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	someone := func() fairness.Standing {
		st := fairness.Standing{Status: fairness.StatusDrawn, AheadMin: random.Uint64() >> random.IntN(64)}
		st.AheadMax = st.AheadMin
		return st
	}
	for range 20_000 {
		s := &Snapshot{Starts: moment.Add(time.Duration(random.Int64N(1e15))), Outflow: fairness.Outflow{PerMinute: random.Uint32() >> random.IntN(32)}}
		if random.IntN(2) == 0 {
			s.Limit = &projection.Limit{Free: random.Uint64() >> random.IntN(64), First: moment.Add(time.Duration(random.Int64N(1e15))), PerMinute: random.ExpFloat64() + 1e-9}
		}
		now := moment.Add(time.Duration(random.Int64N(1e15)))
		a, b := someone(), someone()
		if a.AheadMin > b.AheadMin {
			a, b = b, a
		}
		if a.AheadMax == math.MaxUint64 {
			continue
		}
		first, _ := s.Expected(a, now)
		second, _ := s.Expected(b, now)
		if first.Earliest.Before(now) || first.Latest.Before(first.Earliest) || second.Latest.Before(second.Earliest) ||
			second.Earliest.Before(first.Earliest) || second.Latest.Before(first.Latest) {
			t.Fatalf("%d per minute: %d ahead gives %v, %d gives %v", s.Outflow.PerMinute, a.AheadMin, first, b.AheadMin, second)
		}
	}
}

// TestNowAfterEntries: a node whose clock is behind does not report that a room is still closed after
// visitors have joined it.
func TestNowAfterEntries(t *testing.T) {
	t.Parallel()
	latest := time.Now().Add(time.Hour)
	r := &Room{clock: clock.New(0)}
	r.snapshot.Store(&Snapshot{latest: latest})
	if now := r.Now(); !now.Equal(latest) {
		t.Errorf("now is %v, and the latest entry is of %v", now, latest)
	}
	r.clock.Observe(time.Now().Add(2*time.Hour), time.Now(), time.Now())
	if now := r.Now(); !now.After(latest.Add(59 * time.Minute)) {
		t.Errorf("now is %v, want the clock's", now)
	}
}

package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
)

// described returns the description of a room with arrivals in these seconds after the opening.
func described(t *testing.T, perSecond map[int]int, last int) Room {
	t.Helper()
	var d description
	d.begin(&policy)
	for s := 0; s <= last; s++ {
		for range perSecond[s] {
			d.arrive(policy.Opens + fairness.Time(s)*1000 + 999)
		}
	}
	return d.finish(&scores{})
}

func TestBursts(t *testing.T) {
	perSecond := map[int]int{0: 900, 9: 50, 100: 21, 101: 19, 130: 200, 131: 900, 300: 5, 400: 20}
	r := described(t, perSecond, 400)
	second := func(s int) fairness.Time { return policy.Opens + fairness.Time(s)*1000 }
	want := []Moment{
		{second(131), 900, (21 + 19 + 200) / 60.0},
		{second(130), 200, (21 + 19) / 60.0},
		{second(100), 21, 0},
		{second(400), 20, 0},
	}
	if diff := cmp.Diff(want, r.Bursts); diff != "" {
		t.Errorf("bursts (-want +got):\n%s", diff)
	}
	if want := (Moment{second(0), 900, 0}); r.Peak != want { // the first of several equal ones
		t.Errorf("peak %+v, want %+v", r.Peak, want)
	}
}

// A steady crowd has no bursts, and seconds older than a minute are forgotten.
func TestSteadyArrivals(t *testing.T) {
	perSecond := map[int]int{}
	for s := range 500 {
		perSecond[s] = 100 + s%7
	}
	perSecond[200], perSecond[261] = 500, 505
	r := described(t, perSecond, 500)
	if len(r.Bursts) > 0 {
		t.Errorf("bursts %+v", r.Bursts)
	}
	perSecond[200], perSecond[261] = 600, 700
	for s := 201; s < 261; s++ {
		perSecond[s] = 10
	}
	r = described(t, perSecond, 500)
	if len(r.Bursts) == 0 || r.Bursts[0].Usual != 10 {
		t.Errorf("bursts %+v", r.Bursts)
	}
}

func TestOnlyTheLargestBurstsAreListed(t *testing.T) {
	perSecond := map[int]int{}
	for i := range 15 {
		perSecond[100+i*70] = 30 + i
	}
	r := described(t, perSecond, 1200)
	if len(r.Bursts) != 10 || r.Bursts[0].Arrivals != 44 || r.Bursts[9].Arrivals != 35 {
		t.Errorf("bursts %+v", r.Bursts)
	}
}

func TestSeriesStaysShort(t *testing.T) {
	s := Series{From: 1000, Step: 1000}
	for i := range 10_000 {
		s.add(1000 + fairness.Time(i)*1000)
	}
	if s.Step != 32_000 || len(s.Counts) != 313 {
		t.Fatalf("step %d, %d counts", s.Step, len(s.Counts))
	}
	for i, n := range s.Counts {
		if want := uint64(32); n != want && i < 312 {
			t.Errorf("step %d has %d", i, n)
		}
	}
	s.add(fairness.Never - 1) // no slow loops, whatever the times are
	if s.Counts[0] != 10_000 || len(s.Counts) > maxSteps {
		t.Errorf("step %d, %d counts", s.Step, len(s.Counts))
	}
}

func TestOddWindows(t *testing.T) {
	r := newRoom("odd", 12, 200, fair)
	r.sizes[3], r.sizes[5], r.sizes[7], r.sizes[8] = 2100, 2000, 19, 0
	got := r.result(t).Room
	from := func(w int) fairness.Time { return policy.Opens + fairness.Time(w)*10_000 }
	if diff := cmp.Diff([]Window{{Index: 3, From: from(3), To: from(4), Arrivals: 2100, Usual: 200}}, got.Many); diff != "" {
		t.Errorf("many (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Window{{Index: 7, From: from(7), To: from(8), Arrivals: 19, Usual: 200}}, got.Few); diff != "" {
		t.Errorf("few (-want +got):\n%s", diff)
	}
	if got.Windows != 11 || got.Empty != 1 || got.Draws != 11 {
		t.Errorf("%d windows, %d empty, %d draws", got.Windows, got.Empty, got.Draws)
	}
}

package live

import (
	"slices"
	"testing"
	"time"
)

// filled returns a ring with one sample per second: 3 arrivals a second, but 2 in the last second
// of every minute, and an admission every two seconds.
func filled(samples int) *ring {
	r := &ring{}
	for i := range samples {
		n := uint32(i) //nolint:gosec // few
		r.add(sample{at: 1_000_000 + int64(i)*1000, arrivals: 3*n - n/60, admitted: n / 2, waiting: 7 + n,
			active: n % 5, size: ^uint32(0) - 10 + n})
	}
	return r
}

func TestRing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, ringSize - 1, ringSize, ringSize + 1, 2*ringSize + 17} {
		r := filled(n)
		r.add(sample{at: 1_000_000 + int64(n-1)*1000, arrivals: 1}) // the clock was set back
		want := min(n, ringSize)
		if n == 0 {
			want = 1
		}
		if r.len() != want {
			t.Fatalf("of %d samples %d are kept", n, r.len())
		}
		for i := 1; i < r.len(); i++ {
			if r.at(i).at != r.at(i-1).at+1000 {
				t.Fatalf("of %d samples, %d and %d are of %d and %d", n, i-1, i, r.at(i-1).at, r.at(i).at)
			}
		}
		if n > 0 && r.at(r.len()-1).at != 1_000_000+int64(n-1)*1000 {
			t.Errorf("of %d samples the last is of %d", n, r.at(r.len()-1).at)
		}
	}
}

// TestSince compares the binary search with a linear search.
func TestSince(t *testing.T) {
	t.Parallel()
	if _, _, ok := filled(1).since(time.Minute); ok {
		t.Error("a span of one sample")
	}
	for _, n := range []int{2, 5, ringSize, ringSize + 30} {
		r := filled(n)
		for _, d := range []time.Duration{0, time.Millisecond, time.Second, 1500 * time.Millisecond, time.Minute,
			time.Hour} {
			from, to, ok := r.since(d)
			want := r.len() - 2
			for want > 0 && r.at(want-1).at >= to.at-d.Milliseconds() {
				want--
			}
			if !ok || to != r.at(r.len()-1) || from != r.at(want) {
				t.Errorf("of %d samples, %v: from %d to %d, want from %d", n, d, from.at, to.at, r.at(want).at)
			}
		}
	}
	from, to, _ := filled(30).since(10 * time.Second)
	if got := perSecond(from, to, entries); got != 1 {
		t.Errorf("%v entries a second while the count goes over 2^32, want 1", got)
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	if s := filled(1).series(); s.At == nil || len(s.At) != 0 {
		t.Errorf("of one sample %+v", s)
	}
	s := filled(200).series()
	if len(s.At) != 199 || len(s.Arrivals) != 199 || len(s.Waiting) != 199 || len(s.Admitted) != 199 ||
		len(s.Active) != 199 {
		t.Fatalf("lists of %d, %d, %d, %d, %d", len(s.At), len(s.Arrivals), len(s.Waiting), len(s.Admitted),
			len(s.Active))
	}
	for i, at := range s.At {
		wantRate := 3.0
		if (i+1)%60 == 0 {
			wantRate = 2
		}
		if at != float64(1001+i) || s.Arrivals[i] != wantRate || s.Waiting[i] != uint32(8+i) { //nolint:gosec // few
			t.Errorf("second %d: at %v, %v arrivals, %d waiting", i, at, s.Arrivals[i], s.Waiting[i])
		}
	}
	r := filled(3)
	for i, target := range []uint32{60, 60, 90, 0, 60} {
		r.add(sample{at: 2_000_000 + int64(i)*1000, target: target, limit: target / 30})
	}
	if got, limits := r.series().Target[2:], r.series().Limit[2:]; !slices.Equal(got, []uint32{60, 60, 90, 0, 60}) ||
		!slices.Equal(limits, []uint32{2, 2, 3, 0, 2}) {
		t.Errorf("targets %v with limits %v, want those of their time", got, limits)
	}
	if got := s.Admitted[198]; got < 29.5 || got > 30.5 {
		t.Errorf("%v admitted a minute, want 30", got)
	}
}

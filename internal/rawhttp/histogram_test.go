package rawhttp

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSteps: steps rise with latencies, and no latency is rounded up by more than
// the documented share.
func TestSteps(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 2*time.Hour; d += max(time.Microsecond, d/1000) {
		i := step(d)
		if i < last || i >= steps {
			t.Fatalf("%v is in step %d, after step %d of %d", d, i, last, steps)
		}
		last = i
		if d >= 1<<32*time.Microsecond {
			continue // all in the last step
		}
		if high := highest(i); high < d || high-d > d/subSteps+time.Microsecond {
			t.Fatalf("%v is in step %d, which ends at %v", d, i, high)
		}
	}
	if step(-time.Second) != 0 || step(1<<62) != steps-1 {
		t.Errorf("out of range: steps %d and %d", step(-time.Second), step(1<<62))
	}
}

// TestQuantiles compares quantiles with those of a sorted list.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var whole Histogram
	var sorted []time.Duration
	for range 4 {
		var part Histogram
		for range 5_000 {
			d := time.Duration(r.ExpFloat64() * float64(3*time.Millisecond))
			part.Add(d)
			sorted = append(sorted, d)
		}
		whole.Merge(&part)
	}
	slices.Sort(sorted)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		want := sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
		if got := whole.Quantile(q); got < want || got > want+want/subSteps+time.Microsecond {
			t.Errorf("quantile %v is %v, sorted %v", q, got, want)
		}
	}
	if whole.Max != sorted[len(sorted)-1] || whole.Count != uint64(len(sorted)) {
		t.Errorf("max %v of %d, want %v of %d", whole.Max, whole.Count, sorted[len(sorted)-1], len(sorted))
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}

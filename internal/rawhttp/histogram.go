package rawhttp

import (
	"math/bits"
	"time"
)

// Steps of the histogram: each power of two in microseconds has subSteps steps, so a
// quantile is at most 1/subSteps (1.6 %) too high.
const (
	subBits  = 6
	subSteps = 1 << subBits
	steps    = (32 - subBits + 1) * subSteps // up to 2^32 microseconds, over an hour
)

// Histogram counts latencies in constant memory. The zero value is empty. Not safe
// for concurrent use.
type Histogram struct {
	counts [steps]uint64
	Count  uint64 // number of latencies
	Max    time.Duration
}

// Add counts a latency.
func (h *Histogram) Add(d time.Duration) {
	h.counts[step(d)]++
	h.Count++
	h.Max = max(h.Max, d)
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.Count += other.Count
	h.Max = max(h.Max, other.Max)
}

// Quantile returns the latency that a share q of all latencies did not exceed; 0 if
// the histogram is empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank, seen := uint64(q*float64(h.Count)), uint64(0)
	for i, n := range h.counts {
		if seen += n; n > 0 && seen > min(rank, h.Count-1) {
			return min(highest(i), h.Max)
		}
	}
	return 0
}

// step returns the step of a latency.
func step(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	us = min(us, 1<<32-1)
	if us < subSteps {
		return int(us)
	}
	shift := bits.Len64(us) - subBits - 1
	return (shift+1)*subSteps + int(us>>shift) - subSteps
}

// highest returns the longest latency of a step.
func highest(i int) time.Duration {
	if i < subSteps {
		return time.Duration(i+1)*time.Microsecond - 1
	}
	shift := i/subSteps - 1
	us := uint64(i%subSteps+subSteps+1) << shift
	return time.Duration(us)*time.Microsecond - 1
}

package report

import "github.com/proofline/proofline/fairness"

// series is something counted over time.
type series int

const (
	arrived series = iota
	called         // tickets whose places are called or passed over
	admitted
	skipped // and not restored
	allSeries
)

// maxBins is the maximum number of bins over time.
const maxBins = 400

// Times counts over time in bins of equal length, which grows with the room.
type Times struct {
	start fairness.Time // start of the first bin, which also counts everything earlier
	width fairness.Time
	bins  [][allSeries]int64
}

func (t *Times) add(at fairness.Time, what series, n int64) {
	if t.width == 0 {
		t.width = 100
	}
	i := max(at-t.start, 0) / t.width
	for ; i >= maxBins; i /= 2 {
		t.halve()
	}
	for fairness.Time(len(t.bins)) <= i {
		t.bins = append(t.bins, [allSeries]int64{})
	}
	t.bins[i][what] += n
}

// halve merges pairs of bins.
func (t *Times) halve() {
	half := make([][allSeries]int64, (len(t.bins)+1)/2, maxBins)
	for i, b := range t.bins {
		for s, n := range b {
			half[i/2][s] += n
		}
	}
	t.bins, t.width = half, 2*t.width
}

// end returns the end of the last bin.
func (t *Times) end() fairness.Time { return t.start + t.width*fairness.Time(len(t.bins)) }

// most returns the largest count of any bin.
func (t *Times) most(what series) (n uint64) {
	for _, b := range t.bins {
		n = max(n, uint64(max(b[what], 0)))
	}
	return n
}

// sum returns the total count of all bins.
func (t *Times) sum(what series) uint64 {
	sum := int64(0)
	for _, b := range t.bins {
		sum += b[what]
	}
	return uint64(max(sum, 0))
}

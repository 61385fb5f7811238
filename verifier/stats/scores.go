package stats

import (
	"math"

	"github.com/proofline/proofline/fairness"
)

// Minimum numbers for reliable p-values, determined with fair rooms.
const (
	minCell        = 10 // expected arrivals per cell of a grid
	minGrid        = 90 // arrivals of a window for its own grid of 3 by 3
	minCorrelated  = 50 // arrivals of a window for its own correlation
	minNeighbours  = 10 // arrivals of a window to count neighbours
	minCorrelation = 30 // arrivals, minus one per window, for the correlation of all windows
	minListed      = 5  // tickets of a list
	maxSide        = 10 // largest side of a grid
)

// sides and parts are the possible sizes of the grid and of the scan of all windows.
var (
	sides = [...]int{2, 3, 5, maxSide}
	parts = [...]int{20, 100}
)

// scores accumulates the windows whose places are all published.
type scores struct {
	arrivals uint64
	windows  uint64

	grids   [len(sides)]grid // for windows with at least as many arrivals as a grid's side has cells
	scans   [len(parts)]scan // for windows with at least as many arrivals as parts
	square  float64          // sum of the windows' own chi-squares
	degrees float64
	gridded uint64 // number of windows in square

	correlation float64 // sum of correlations, weighted with n-1
	weight      float64

	adjacent   uint64 // adjacent pairs
	expected   float64
	neighbours uint64 // windows whose neighbours were counted

	worst   oddity
	oddness int // number of p-values, of which worst is the smallest

	own       listed
	ownPlaces []float64
	group     listed
	labels    labelled // places of the group
	spread    float64  // sum of the standard deviations of the group's rank sums by window
}

func newScores() (s scores) {
	for i, side := range sides {
		s.grids[i] = newGrid(side)
	}
	for i, n := range parts {
		s.scans[i] = newScan(n)
	}
	return s
}

// oddity is the most unusual of the windows' own tests.
type oddity struct {
	window fairness.WindowIndex
	what   string
	p      float64
}

// note records the p-value of a single window's test.
func (s *scores) note(w *drum, p float64, what string) {
	if s.oddness++; s.oddness == 1 || p < s.worst.p {
		s.worst = oddity{w.Index, what, p}
	}
}

// add adds a window whose places are all published.
func (s *scores) add(w *drum) {
	n := w.count
	s.arrivals += uint64(n)
	s.windows++
	for i := range s.grids {
		if n >= s.grids[i].side {
			s.grids[i].add(w.order)
		}
	}
	for i := range s.scans {
		if n >= s.scans[i].parts {
			s.scans[i].add(w.order)
		}
	}
	if n >= minGrid {
		own := newGrid(min(maxSide, int(math.Sqrt(float64(n)/minCell))))
		own.add(w.order)
		x, df := own.square()
		s.square, s.degrees = s.square+x, s.degrees+df
		s.gridded++
		s.note(w, tail(x, df), whatGrid)
	}
	if n >= 2 {
		rho := correlation(w.order)
		s.correlation += rho * float64(n-1)
		s.weight += float64(n - 1)
		if n >= minCorrelated {
			s.note(w, correlationTail(rho, n), whatOrder)
		}
	}
	if n >= minNeighbours {
		pairs, mean := neighbours(w.order), 2*float64(n-1)/float64(n)
		s.adjacent += pairs
		s.expected += mean
		s.neighbours++
		s.note(w, poissonTail(pairs, mean), whatNeighbours)
	}
	s.ownPlaces = append(s.ownPlaces, w.own...)
	s.own.placed += uint64(len(w.own))
	s.group.placed += uint64(w.group.tickets)
	w.group.close(n)
	s.labels.join(w.group)
	s.spread += math.Sqrt(w.group.variance)
}

// correlation returns Spearman's correlation of seq and place. Its variance over all permutations
// is 1/(n-1).
func correlation(order []uint32) float64 {
	n := float64(len(order))
	middle, sum := (n-1)/2, 0.0
	for place, seq := range order {
		sum += (float64(place) - middle) * (float64(seq) - middle)
	}
	return sum / (n * (n*n - 1) / 12)
}

// neighbours counts the pairs that are adjacent both by arrival and by place. Over all permutations
// their mean is 2(n-1)/n, and their number is close to a Poisson variable, with fewer large values
// (Kaplansky, Annals of Mathematical Statistics 16, 1945).
func neighbours(order []uint32) (pairs uint64) {
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; a+1 == b || b+1 == a {
			pairs++
		}
	}
	return pairs
}

// listed counts the tickets of a list.
type listed struct{ seen, placed uint64 }

func (l *listed) arrived(yes bool) {
	if yes {
		l.seen++
	}
}

// labelled sums the places of listed tickets, each as the share of its window that is ahead of its
// middle: (place + 1/2) / n. With m of n tickets in a window, the sum has mean m/2 and variance
// m(n-m)(n+1)/(12 n²): the rank sum of Wilcoxon, Mann and Whitney, stratified.
type labelled struct {
	tickets  int
	sum      float64
	variance float64
}

func (l *labelled) add(place, n int) {
	l.tickets++
	l.sum += (float64(place) + 0.5) / float64(n)
}

// close sets the variance for a window of n arrivals.
func (l *labelled) close(n int) {
	m, all := float64(l.tickets), float64(n)
	l.variance = m * (all - m) * (all + 1) / (12 * all * all)
}

func (l *labelled) join(w labelled) {
	l.tickets += w.tickets
	l.sum += w.sum
	l.variance += w.variance
}

// z returns how far toward the back the tickets are, in standard deviations.
func (l *labelled) z() float64 { return (l.sum - float64(l.tickets)/2) / math.Sqrt(l.variance) }

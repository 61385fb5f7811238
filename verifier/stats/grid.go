package stats

import "math"

// grid counts arrivals by time and place: row i and column j count those that arrived in part i of
// their window and have a place in part j of it. The parts have equal numbers of arrivals, as far
// as n allows.
type grid struct {
	side     int
	windows  uint64
	arrivals uint64
	counts   []uint64  // counts, row by row
	expected []float64 // expected counts over all permutations
	variance []float64 // variance of the counts over all permutations
}

func newGrid(side int) grid {
	cells := side * side
	return grid{side: side, counts: make([]uint64, cells), expected: make([]float64, cells),
		variance: make([]float64, cells)}
}

// add adds a window with at least as many arrivals as a side has parts.
func (g *grid) add(order []uint32) {
	n, side := uint64(len(order)), uint64(g.side)
	g.windows++
	g.arrivals += n
	for place, seq := range order {
		g.counts[uint64(seq)*side/n*side+uint64(place)*side/n]++
	}
	all := float64(n)
	for i := range side {
		for j := range side {
			a, b := part(i, side, n), part(j, side, n)
			g.expected[i*side+j] += a * b / all
			if n > 1 {
				g.variance[i*side+j] += a * (all - a) * b * (all - b) / (all * all * (all - 1))
			}
		}
	}
}

// part returns the number of x from 0 to n-1 with floor(x side / n) = i.
func part(i, side, n uint64) float64 {
	return float64(((i+1)*n+side-1)/side - (i*n+side-1)/side)
}

// square returns Pearson's chi-square with its degrees of freedom. It is scaled so that its mean
// equals the degrees of freedom, because places are drawn without replacement and the parts of
// small windows are not quite equal (Rao, Scott, Journal of the American Statistical Association
// 76, 1981).
func (g *grid) square() (x, df float64) {
	df = float64((g.side - 1) * (g.side - 1))
	mean := 0.0
	for i, e := range g.expected {
		d := float64(g.counts[i]) - e
		x += d * d / e
		mean += g.variance[i] / e
	}
	return x * df / mean, df
}

// fullest returns the cell that exceeds its expected count most.
func (g *grid) fullest() (row, column int) {
	most, at := math.Inf(-1), 0
	for i, e := range g.expected {
		if z := (float64(g.counts[i]) - e) / math.Sqrt(g.variance[i]); z > most {
			most, at = z, i
		}
	}
	return at / g.side, at % g.side
}

// scan sums the places of the arrivals in each of a number of equal parts of the window.
type scan struct {
	parts    int
	arrivals uint64
	moments  []labelled
}

func newScan(parts int) scan { return scan{parts: parts, moments: make([]labelled, parts)} }

// add adds a window with at least as many arrivals as parts.
func (s *scan) add(order []uint32) {
	n, parts := len(order), uint64(s.parts)
	s.arrivals += uint64(n)
	window := newScan(s.parts)
	for place, seq := range order {
		window.moments[uint64(seq)*parts/uint64(n)].add(place, n)
	}
	for i := range s.moments {
		window.moments[i].close(n)
		s.moments[i].join(window.moments[i])
	}
}

// strangest returns the part whose arrivals are furthest to the front or to the back, relative to
// their number.
func (s *scan) strangest() (at int) {
	for i := range s.moments {
		if math.Abs(s.moments[i].z()) > math.Abs(s.moments[at].z()) {
			at = i
		}
	}
	return at
}

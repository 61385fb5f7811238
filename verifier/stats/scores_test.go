package stats

import (
	"math"
	"testing"
)

// permutations yields all orders of n.
func permutations(n int, yield func(order []uint32)) (count float64) {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	var from func(int)
	from = func(i int) {
		if i == n {
			count++
			yield(order)
			return
		}
		for j := i; j < n; j++ {
			order[i], order[j] = order[j], order[i]
			from(i + 1)
			order[i], order[j] = order[j], order[i]
		}
	}
	from(0)
	return count
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// Statements about all permutations are checked with all permutations.
func TestMomentsOverAllPermutations(t *testing.T) {
	for n := 2; n <= 7; n++ {
		for _, side := range []int{2, 3} {
			if side > n {
				continue
			}
			model := newGrid(side)
			sums, squares := make([]float64, side*side), make([]float64, side*side)
			var x, rho, rho2, pairs, share, share2 float64
			all := permutations(n, func(order []uint32) {
				g := newGrid(side)
				g.add(order)
				model = g
				for i, c := range g.counts {
					sums[i] += float64(c)
					squares[i] += float64(c * c)
				}
				one, _ := g.square()
				x += one
				r := correlation(order)
				rho, rho2 = rho+r, rho2+r*r
				pairs += float64(neighbours(order))
				var l labelled
				for place, seq := range order {
					if seq < 2 {
						l.add(place, n)
					}
				}
				share, share2 = share+l.sum, share2+l.sum*l.sum
			})
			for i := range sums {
				mean := sums[i] / all
				if !near(mean, model.expected[i]) || !near(squares[i]/all-mean*mean, model.variance[i]) {
					t.Errorf("n %d, side %d, field %d: mean %v, variance %v; want %v, %v", n, side, i, mean, squares[i]/all-mean*mean, model.expected[i], model.variance[i])
				}
			}
			l := labelled{tickets: 2}
			l.close(n)
			mean := share / all
			switch {
			case !near(x/all, float64((side-1)*(side-1))):
				t.Errorf("n %d, side %d: mean chi-square %v", n, side, x/all)
			case !near(rho/all, 0), !near(rho2/all, 1/float64(n-1)):
				t.Errorf("n %d: correlation %v, variance %v", n, rho/all, rho2/all)
			case !near(pairs/all, 2*float64(n-1)/float64(n)):
				t.Errorf("n %d: %v pairs of neighbours", n, pairs/all)
			case !near(mean, 1), !near(share2/all-mean*mean, l.variance):
				t.Errorf("n %d: sum of two %v, variance %v, want %v", n, mean, share2/all-mean*mean, l.variance)
			}
		}
	}
}

func TestGridOfSeveralWindows(t *testing.T) {
	g := newGrid(2)
	g.add([]uint32{2, 0, 3, 1})
	g.add([]uint32{0, 1, 2}) // the first part has two
	// seq/place: 2/0 0/1 3/2 1/3, and 0/0 1/1 2/2
	want := []uint64{1 + 2, 1, 1, 1 + 1}
	for i := range want {
		if g.counts[i] != want[i] {
			t.Errorf("counts %v, want %v", g.counts, want)
		}
	}
	if e := 4.0/4 + 4.0/3; !near(g.expected[0], e) || g.windows != 2 || g.arrivals != 7 {
		t.Errorf("expected %v, want %v first; %d windows, %d arrivals", g.expected, e, g.windows, g.arrivals)
	}
	if row, column := g.fullest(); row != column {
		t.Errorf("fullest %d, %d", row, column)
	}
}

// A scan has the sums of its parts, and their variances.
func TestScan(t *testing.T) {
	s := newScan(2)
	s.add([]uint32{2, 0, 3, 1})
	s.add([]uint32{0, 1, 2})
	var first, second labelled // seqs 0 and 1 of both windows; the others
	for _, place := range []int{1, 3} {
		first.add(place, 4)
	}
	for _, place := range []int{0, 1} {
		first.add(place, 3)
	}
	for _, place := range []int{0, 2} {
		second.add(place, 4)
	}
	second.add(2, 3)
	four, three, one := labelled{tickets: 2}, labelled{tickets: 2}, labelled{tickets: 1}
	four.close(4)
	three.close(3)
	one.close(3)
	for i, want := range []labelled{{4, first.sum, four.variance + three.variance}, {3, second.sum, four.variance + one.variance}} {
		if got := s.moments[i]; got.tickets != want.tickets || !near(got.sum, want.sum) || !near(got.variance, want.variance) {
			t.Errorf("part %d: %+v, want %+v", i, got, want)
		}
	}
	if s.arrivals != 7 {
		t.Errorf("%d arrivals", s.arrivals)
	}
}

func TestNeighbours(t *testing.T) {
	for _, c := range []struct {
		order []uint32
		want  uint64
	}{
		{[]uint32{0, 1, 2, 3}, 3}, {[]uint32{3, 2, 1, 0}, 3}, {[]uint32{1, 3, 0, 2}, 0}, {[]uint32{0, 1, 3, 2}, 2}, {[]uint32{0}, 0},
	} {
		if got := neighbours(c.order); got != c.want {
			t.Errorf("%v: %d, want %d", c.order, got, c.want)
		}
	}
}

// Holm's own procedure: the smallest p-value is compared with level/m, the next with level/(m-1), and so on
// until one is larger.
func TestHolm(t *testing.T) {
	tests := []Test{{Made: true, P: 0.004}, {P: 1}, {Made: true, P: 0.0001}, {Made: true, P: 0.3}, {Made: true, P: 0.006}, {Made: true, P: 0.9}}
	if n := holm(tests); n != 5 {
		t.Fatalf("%d tests made", n)
	}
	for i, want := range []float64{0.016, 0, 0.0005, 0.6, 0.018, 0.9} {
		if !near(tests[i].Adjusted, want) || tests[i].Unusual != (want > 0 && want <= Level) {
			t.Errorf("test %d: adjusted %v, unusual %v; want %v", i, tests[i].Adjusted, tests[i].Unusual, want)
		}
	}
}

// A place in a small window is spread evenly, and always in the same way.
func TestEvenPlace(t *testing.T) {
	const n = 4000
	var all []float64
	for i := range n {
		r := room{name: "even"}
		p := evenPlace(i%2, 2, r.ticket(0, i))
		if p < float64(i%2)/2 || p >= float64(i%2+1)/2 || p != evenPlace(i%2, 2, r.ticket(0, i)) {
			t.Fatalf("place %d of 2: %v", i%2, p)
		}
		all = append(all, p)
	}
	if p := distanceTail(distance(all), n); p < 0.001 {
		t.Errorf("p = %v", p)
	}
}

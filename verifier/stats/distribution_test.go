package stats

import (
	"math"
	"testing"
)

// Values without another source were computed with mpmath 1.3.0 to 40 digits, from the definitions:
// incomplete gamma and beta integrals, and the sum of Birnbaum and Tingey.
func TestDistributions(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
		within    float64 // relative
	}{
		// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4
		{"chi-square, 4 degrees, table", tail(13.277, 4), 0.01, 2e-4},
		{"chi-square, 81 degrees, table", tail(113.512, 81), 0.01, 2e-4},
		{"chi-square, 4 degrees", tail(13.277, 4), 0.00999871443076, 1e-10},
		{"chi-square, 4 degrees, far out", tail(60, 4), 2.90086312034e-12, 1e-10},
		{"chi-square, 800 degrees", tail(1000, 800), 1.64721926441e-6, 1e-9},
		{"chi-square, 400000 degrees", tail(401000, 400000), 0.131815776745, 1e-8},
		{"chi-square, at 0", tail(0, 4), 1, 0},
		{"normal, both sides, table", twoSided(2.575829), 0.01, 1e-6},
		{"normal, one side, table", below(-1.959964), 0.025, 1e-6},
		{"normal, limit, table", limit(0.05), 1.959964, 1e-6},
		{"smallest of 3", smallest(0.1, 3), 1 - 0.9*0.9*0.9, 1e-12},
		{"smallest of a million", smallest(1e-9, 1_000_000), 0.0009995002, 1e-6},
		{"smallest of anything", smallest(1, 7), 1, 1e-12},
		{"each of 3", each(1-0.9*0.9*0.9, 3), 0.1, 1e-12},
		{"Poisson, 3 of 2", poissonTail(3, 2), 0.323323583817, 1e-10},
		{"Poisson, 10 of 1.98", poissonTail(10, 1.98), 4.28102356664e-5, 1e-10},
		{"Poisson, 2300 of 2000", poissonTail(2300, 2000), 3.01168668765e-11, 1e-8},
		{"Poisson, 0 of anything", poissonTail(0, 5), 1, 0},
		{"correlation of 90", correlationTail(0.3, 90), 0.00406916622428, 1e-10},
		{"correlation of 1000", correlationTail(-0.05, 1000), 0.114072595551, 1e-10},
		{"correlation of 20, far out", correlationTail(0.9, 20), 6.5742845445e-8, 1e-9},
		{"correlation of a million", correlationTail(0.01, 1_000_000), 1.52031980399e-23, 1e-6},
		{"correlation, whole", correlationTail(1, 10), 0, 0},
		// Miller, Journal of the American Statistical Association 51, 1956, table 1: one side
		{"distance of 10, table", distanceTail(0.45662, 10), 2 * 0.01, 1e-4},
		{"distance of 10, table", distanceTail(0.48893, 10), 2 * 0.005, 1e-4},
		{"distance of 20, table", distanceTail(0.32866, 20), 2 * 0.01, 1e-4},
		{"distance of 2000", distanceTail(0.05, 2000), 8.7430957959e-5, 1e-8},
		{"distance of 5", distanceTail(0.3, 5), 0.68564, 1e-10},
		{"no distance", distanceTail(0, 5), 1, 0},
		{"whole distance", distanceTail(1, 5), 0, 0},
	} {
		if math.Abs(c.got-c.want) > c.within*c.want || math.IsNaN(c.got) {
			t.Errorf("%s: %.12g, want %.12g", c.name, c.got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{0.5}, 0.5},
		{[]float64{0.75, 0.25}, 0.25},
		{[]float64{0.1, 0.2, 0.3, 0.4}, 0.6},
		{[]float64{0.9, 0.6, 0.8, 0.7}, 0.6},
	} {
		if got := distance(c.values); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// The best of 100: its density is 100 φ(x) Φ(x)^99.
func TestBestOfHundred(t *testing.T) {
	const step = 1e-3
	mean, square := 0.0, 0.0
	for x := -8.0; x < 10; x += step {
		density := redraws * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) * math.Pow(below(x), redraws-1) * step
		mean += x * density
		square += x * x * density
	}
	if math.Abs(mean-bestMean) > 1e-5 || math.Abs(math.Sqrt(square-mean*mean)-bestDeviation) > 1e-5 {
		t.Errorf("mean %.6f, deviation %.6f", mean, math.Sqrt(square-mean*mean))
	}
}

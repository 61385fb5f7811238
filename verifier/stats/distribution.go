package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// tail returns the chance that a chi-square variable with df degrees of
// freedom is at least x.
func tail(x, df float64) float64 { return mathext.GammaIncRegComp(df/2, max(x, 0)/2) }

// critical returns the x whose [tail] is p, by bisection.
func critical(p, df float64) float64 {
	low, high := 0.0, df+1
	for tail(high, df) > p {
		high *= 2
	}
	for range 60 {
		if mid := (low + high) / 2; tail(mid, df) > p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// noncentralTail returns the same chance with noncentrality lambda, as the
// mixture of central ones that it is (Johnson, Kotz, Balakrishnan: Continuous
// Univariate Distributions, volume 2, chapter 29).
func noncentralTail(x, df, lambda float64) float64 {
	half := lambda / 2
	spread := 8*math.Sqrt(half) + 20
	p := 0.0
	for j := math.Floor(max(0, half-spread)); j <= half+spread; j++ {
		lg, _ := math.Lgamma(j + 1)
		weight := math.Exp(-half - lg)
		if half > 0 {
			weight = math.Exp(j*math.Log(half) - half - lg)
		} else if j > 0 {
			break
		}
		p += weight * tail(x, df+2*j)
	}
	return min(p, 1)
}

// twoSided returns the chance that a standard normal variable is at least as
// far from 0 as z.
func twoSided(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// below returns the chance that a standard normal variable is below z.
func below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// limit returns the z whose [twoSided] is p.
func limit(p float64) float64 { return math.Sqrt2 * math.Erfcinv(p) }

// poissonTail returns the chance that a Poisson variable of that mean is at
// least n.
func poissonTail(n uint64, mean float64) float64 {
	if n == 0 {
		return 1
	}
	return mathext.GammaIncReg(float64(n), mean)
}

// correlationTail returns the chance that Spearman's rank correlation of n
// pairs is at least as far from 0 as rho, by Student's t with n-2 degrees of
// freedom (Kendall: Rank Correlation Methods).
func correlationTail(rho float64, n int) float64 {
	return mathext.RegIncBeta(float64(n-2)/2, 0.5, max(0, 1-rho*rho))
}

// distance returns the largest distance between the distribution of values
// and the even one over [0, 1), Kolmogorov's D, and changes their order.
func distance(values []float64) float64 {
	slices.Sort(values)
	d, n := 0.0, float64(len(values))
	for i, v := range values {
		d = max(d, (float64(i)+1)/n-v, v-float64(i)/n)
	}
	return d
}

// distanceTail returns the chance that [distance] of n even values is at least
// d: twice that of one side, which is exact (Birnbaum, Tingey,
// Annals of Mathematical Statistics 22, 1951). Both sides at once are counted
// twice, so it is a little too large when it is large.
func distanceTail(d float64, n int) float64 {
	if d <= 0 {
		return 1
	}
	if d >= 1 {
		return 0
	}
	count := float64(n)
	all, _ := math.Lgamma(count + 1)
	p := 0.0
	for j := 0.0; j <= count*(1-d); j++ {
		one, _ := math.Lgamma(j + 1)
		rest, _ := math.Lgamma(count - j + 1)
		term := all - one - rest + (j-1)*math.Log(d+j/count)
		if left := 1 - d - j/count; left > 0 {
			term += (count - j) * math.Log(left)
		} else if j < count {
			continue // 0 to a power
		}
		p += math.Exp(term)
	}
	return min(1, 2*d*p)
}

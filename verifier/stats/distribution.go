package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// tail returns the probability that a chi-square variable with df degrees of freedom is at least x.
func tail(x, df float64) float64 { return mathext.GammaIncRegComp(df/2, max(x, 0)/2) }

// twoSided returns the probability that a standard normal variable is at least as far from 0 as z.
func twoSided(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// below returns the probability that a standard normal variable is below z.
func below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// limit returns the z whose [twoSided] is p.
func limit(p float64) float64 { return math.Sqrt2 * math.Erfcinv(p) }

// smallest returns the probability that the smallest of n independent p-values is at most p (Šidák,
// Journal of the American Statistical Association 62, 1967). For dependent p-values, as here, it is
// an upper bound.
func smallest(p float64, n int) float64 {
	return -math.Expm1(float64(n) * math.Log1p(-min(p, 1-1e-15)))
}

// each is the inverse of [smallest]: the single p-value at which smallest of n is p.
func each(p float64, n int) float64 { return -math.Expm1(math.Log1p(-p) / float64(n)) }

// poissonTail returns the probability that a Poisson variable with that mean is at least n.
func poissonTail(n uint64, mean float64) float64 {
	if n == 0 {
		return 1
	}
	return mathext.GammaIncReg(float64(n), mean)
}

// correlationTail returns the probability that Spearman's rank correlation of n pairs is at least
// as far from 0 as rho, by Student's t with n-2 degrees of freedom (Kendall: Rank Correlation
// Methods).
func correlationTail(rho float64, n int) float64 {
	return mathext.RegIncBeta(float64(n-2)/2, 0.5, max(0, 1-rho*rho))
}

// distance returns Kolmogorov's D, the largest distance between the distribution of values and the
// uniform one over [0, 1). It reorders values.
func distance(values []float64) float64 {
	slices.Sort(values)
	d, n := 0.0, float64(len(values))
	for i, v := range values {
		d = max(d, (float64(i)+1)/n-v, v-float64(i)/n)
	}
	return d
}

// distanceTail returns the probability that [distance] of n uniform values is at least d: twice the
// exact probability of one side (Birnbaum, Tingey, Annals of Mathematical Statistics 22, 1951).
// Cases with both sides are counted twice, so the result is slightly too large where it is large.
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

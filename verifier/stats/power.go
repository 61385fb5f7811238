package stats

import (
	"fmt"
	"math"

	"github.com/proofline/proofline/verifier/numeral"
)

// Parameters of the cheats whose detection is predicted.
const (
	favoured  = 0.01 // share of arrivals that are favoured
	headStart = 0.10 // head start of favoured people, as a share of the window
	redraws   = 100  // tries per window
	// mean and deviation of the largest of 100 standard normal variables
	// (integrals of its density, in distribution_test.go)
	bestMean      = 2.507594
	bestDeviation = 0.429424
)

// Power is the probability of detecting a cheat in this room, with the number of tests that were
// made.
type Power struct {
	ID          string  `json:"id"`
	Cheat       string  `json:"cheat"`       // the cheat in plain words
	Probability float64 `json:"probability"` // lower bound for the probability of the verdict [Unusual]
	Basis       string  `json:"basis"`       // how it was computed
}

// Ids of the cheats.
const (
	cheatTogether = "together" // favoured people who arrive at one time
	cheatListed   = "listed"   // favoured people who arrive at any time, but are on the auditor's list
	cheatGroup    = "group"    // the given group is favoured
	cheatRedraw   = "redraw"   // draws repeated in favour of the given group
)

// power computes the detection probabilities with formulas: a test detects a cheat if it would do
// so alone at the strictest level of Holm's correction.
func (s *scores) power(m *scan, tests int) (list []Power) {
	level := Level / float64(tests)
	const byRanks = "formula: normal approximation of the rank sum"
	if m != nil {
		list = append(list, Power{cheatTogether,
			fmt.Sprintf("1 %% of the people, %s, get a head start of 10 %% of the window, and they all arrive in the same part of %d of their windows; nobody has a list of them", numeral.Group(m.arrivals/100), m.parts),
			seen(favoured*float64(m.arrivals), m.moments[m.parts/2].variance, each(level, m.parts)), byRanks})
	}
	if people := favoured * float64(s.arrivals); people >= minListed {
		list = append(list, Power{cheatListed,
			fmt.Sprintf("1 %% of the people, %s, get a head start of 10 %% of the window, and somebody gives a list of them", numeral.Group(uint64(people))),
			seen(people, people*(1-favoured)/12, level), byRanks})
	}
	if m := float64(s.labels.tickets); m >= minListed && s.labels.variance > 0 {
		list = append(list, Power{cheatGroup,
			fmt.Sprintf("the %s of the list get a head start of 10 %% of the window",
				numeral.Count(uint64(m), "person", "people")),
			seen(m, s.labels.variance, level), byRanks})
		windows := s.spread / math.Sqrt(s.labels.variance) // square root of the equivalent number of equal windows
		list = append(list, Power{cheatRedraw,
			fmt.Sprintf("every window was drawn %d times, and the draw that was best for the people of the list kept",
				redraws),
			below((bestMean*windows - limit(level)) / bestDeviation),
			"formula: normal approximation of the best of 100 rank sums"})
	}
	return list
}

// seen returns the probability that the rank sum, given its variance without a head start, detects
// a head start of m people.
func seen(m, variance, level float64) float64 {
	// A share u of the window in front of a favoured person becomes max(0, u-h).
	const rest = 1 - headStart
	const mean, square = rest * rest / 2, rest * rest * rest / 3 //nolint:staticcheck // a constant, which math.Pow is not
	const spread = (square - mean*mean) * 12                     // relative to 1 without a head start
	return below(((0.5-mean)*m/math.Sqrt(variance) - limit(level)) / math.Sqrt(spread))
}

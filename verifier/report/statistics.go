package report

import (
	"fmt"

	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/stats"
)

// statsView is the page's view of the statistics.
type statsView struct {
	Verdict, Words string
	Unusual        bool
	Tests          []testView
	Seen           []string
	CannotSee      []string
	Grid           *gridView
}

type testView struct {
	Title, Finding, Result string
	Unusual                bool
}

// gridView shows places by time of arrival; darker cells exceed the expected count.
type gridView struct {
	Side  int
	Cells []cell
	About string
}

type cell struct {
	X, Y    int
	Opacity string
}

func newStatsView(r *stats.Result) *statsView {
	if r == nil {
		return nil
	}
	v := &statsView{CannotSee: r.CannotSee, Unusual: r.Verdict == stats.Unusual}
	switch r.Verdict {
	case stats.Usual:
		v.Verdict = "Nothing unusual"
		v.Words = fmt.Sprintf("As far as the tests below can detect, places are random. A fair room looks unusual to any of them in at most %g of 100 cases.", 100*r.Level)
	case stats.Unusual:
		v.Verdict = "Unusual"
		v.Words = fmt.Sprintf("Chance does this to at most %g of 100 fair rooms. It is a reason to ask, not a proof.",
			100*r.Level)
	default:
		v.Verdict = "Too few arrivals to tell"
		v.Words = "No test was possible."
	}
	for _, t := range r.Tests {
		one := testView{Title: t.Title, Finding: clip(t.Finding, 1000), Result: "not made", Unusual: t.Unusual}
		if t.Made {
			one.Result = chance(t.Adjusted)
		}
		v.Tests = append(v.Tests, one)
	}
	for _, p := range r.Power {
		v.Seen = append(v.Seen, fmt.Sprintf("With a probability of %s, if %s.",
			numeral.Probability(p.Probability), p.Cheat))
	}
	if r.Grid != nil {
		v.Grid = newGridView(r.Grid)
	}
	return v
}

// chance formats the probability that a fair room looks like this.
func chance(p float64) string {
	switch {
	case p < 1e-6:
		return "under 0.0001 %"
	case p < 0.01:
		return fmt.Sprintf("%.2g %%", 100*p)
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}

func newGridView(g *stats.Grid) *gridView {
	v := &gridView{Side: g.Side}
	least, most := 2.0, 0.0
	for i, row := range g.Counts {
		for j, n := range row {
			ratio := 1.0
			if g.Expected[i][j] > 0 {
				ratio = float64(n) / g.Expected[i][j]
			}
			least, most = min(least, ratio), max(most, ratio)
			v.Cells = append(v.Cells, cell{i, j, fmt.Sprintf("%.2f", min(ratio, 2)/2)})
		}
	}
	v.About = fmt.Sprintf("All windows laid over each other: from left to right the time of arrival, from top to bottom the place. Fields have between %.0f %% and %.0f %% of the arrivals that chance would give them; an even shade is fair.",
		100*least, 100*most)
	return v
}

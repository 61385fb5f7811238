package stats

import (
	"fmt"
	"math"
	"slices"

	"github.com/proofline/proofline/verifier/numeral"
)

// Level is the maximum probability that a fair room is called unusual.
const Level = 0.01

// Verdict summarizes the tests.
type Verdict string

// The verdicts.
const (
	Usual   Verdict = "nothing unusual"
	Unusual Verdict = "unusual"
	TooFew  Verdict = "too few arrivals to tell" // too few arrivals for any test
)

// Result is the result of the statistics of a room.
type Result struct {
	Verdict   Verdict  `json:"verdict"`
	Level     float64  `json:"level"` // [Level]
	Tests     []Test   `json:"tests"`
	Grid      *Grid    `json:"grid"` // all windows; null if there are too few arrivals
	Power     []Power  `json:"power"`
	CannotSee []string `json:"cannot_see"` // limits, in plain words
	Own       *List    `json:"own"`        // the auditor's tickets; null without a list
	Group     *List    `json:"group"`      // people who may have been favoured; null without a list
	Room      Room     `json:"room"`
}

// Test is the result of one test.
type Test struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	Made    bool    `json:"made"`    // false if there are too few arrivals or no list
	Finding string  `json:"finding"` // result, or why the test was not made; in plain words
	P       float64 `json:"p"`       // probability of such a result or a more extreme one in a fair room; 1 if not made
	// Adjusted is P after Holm's correction for the number of tests: in a fair room, the probability
	// that any of them is at most [Level] is at most [Level].
	Adjusted float64 `json:"adjusted"`
	Unusual  bool    `json:"unusual"` // Adjusted is at most [Level]
}

// Grid counts arrivals by time and place. Counts[i][j] is the number of arrivals in part i of their
// window (0: earliest) with a place in part j of it (0: front); the parts have equal numbers of
// arrivals.
type Grid struct {
	Side     int         `json:"side"` // parts, 2 to 10
	Windows  uint64      `json:"windows"`
	Arrivals uint64      `json:"arrivals"`
	Counts   [][]uint64  `json:"counts"`
	Expected [][]float64 `json:"expected"` // expected counts in a fair room
}

// List summarizes what became of a list of tickets.
type List struct {
	Tickets uint64 `json:"tickets"` // number of different tickets given
	Arrived uint64 `json:"arrived"`
	Placed  uint64 `json:"placed"` // tickets in windows whose places are all published
}

// Ids of the tests, in order.
const (
	testGrid       = "grid"
	testMoments    = "moments"
	testWindows    = "windows"
	testOrder      = "order"
	testNeighbours = "neighbours"
	testWorst      = "worst-window"
	testOwn        = "own-tickets"
	testGroup      = "group"
)

// Tests of single windows, as named in findings.
const (
	whatGrid       = "who arrived when stands where"
	whatOrder      = "early and late arrivals"
	whatNeighbours = "neighbours who stay together"
)

// Result returns the statistics of the entries added so far. More may be added.
func (c *Collector) Result() (*Result, error) {
	if c.err != nil {
		return nil, c.err
	}
	s := &c.scores
	r := &Result{Verdict: TooFew, Level: Level, Room: c.room.finish(s)}
	r.Own, r.Group = list(len(c.own), s.own), list(len(c.group), s.group)
	g, m := s.grid(), s.scan()
	r.Tests = []Test{gridTest(g), momentsTest(m), s.windowsTest(), s.orderTest(), s.neighboursTest(), s.worstTest(),
		s.ownTest(r.Own), s.groupTest(r.Group)}
	made := holm(r.Tests)
	for _, t := range r.Tests {
		switch {
		case t.Unusual:
			r.Verdict = Unusual
		case t.Made && r.Verdict == TooFew:
			r.Verdict = Usual
		}
	}
	if g != nil {
		r.Grid = g.publish()
	}
	r.Power = s.power(m, max(made, 1))
	r.CannotSee = cannotSee(r)
	return r, nil
}

func list(tickets int, l listed) *List {
	if tickets == 0 {
		return nil
	}
	return &List{uint64(tickets), l.seen, l.placed}
}

// holm adjusts the p-values of the tests that were made, and returns their number (Holm,
// Scandinavian Journal of Statistics 6, 1979).
func holm(tests []Test) (made int) {
	var order []int
	for i, t := range tests {
		if t.Made {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if tests[a].P < tests[b].P {
			return -1
		}
		return 1
	})
	adjusted := 0.0
	for k, i := range order {
		adjusted = max(adjusted, min(1, tests[i].P*float64(len(order)-k)))
		tests[i].Adjusted, tests[i].Unusual = adjusted, adjusted <= Level
	}
	return len(order)
}

func notMade(id, title, why string) Test {
	return Test{ID: id, Title: title, Finding: why, P: 1, Adjusted: 1}
}

func made(id, title string, p float64, format string, args ...any) Test {
	return Test{ID: id, Title: title, Made: true, P: p, Finding: fmt.Sprintf(format, args...)}
}

// grid returns the grid of all windows: the finest whose cells expect ten arrivals and that leaves
// out less than half of the arrivals because their windows are too small.
func (s *scores) grid() *grid {
	for i := len(s.grids) - 1; i >= 0; i-- {
		g := &s.grids[i]
		if g.arrivals >= uint64(minCell*g.side*g.side) && 2*g.arrivals > s.arrivals {
			return g
		}
	}
	return nil
}

// scan returns the finest scan whose parts have ten arrivals each, by the same criteria.
func (s *scores) scan() *scan {
	for i := len(s.scans) - 1; i >= 0; i-- {
		m := &s.scans[i]
		if m.arrivals >= uint64(minCell*m.parts) && 2*m.arrivals > s.arrivals {
			return m
		}
	}
	return nil
}

func gridTest(g *grid) Test {
	const title = "Places do not depend on the moment of arrival, over all windows"
	if g == nil {
		return notMade(testGrid, title, fmt.Sprintf("Needs %d arrivals with places.", minCell*4))
	}
	x, df := g.square()
	row, column := g.fullest()
	at := row*g.side + column
	return made(testGrid, title, tail(x, df),
		"What stands out most: part %d of %d by arrival has %s in part %d by place, and chance gives %s. Chi-square %.1f, %.0f degrees of freedom.",
		row+1, g.side, numeral.Count(g.counts[at], "person", "people"), column+1,
		numeral.Group(uint64(math.Round(g.expected[at]))), x, df)
}

// momentsTest compares the arrivals of each part with all others, with the rank sum of
// [scores.groupTest].
func momentsTest(m *scan) Test {
	const title = "No short moment of arrival is favoured, over all windows"
	if m == nil {
		return notMade(testMoments, title, fmt.Sprintf("Needs windows of %d arrivals, and %d in all.", parts[0],
			minCell*parts[0]))
	}
	at := m.strangest()
	l := &m.moments[at]
	people := float64(l.tickets)
	return made(testMoments, title, smallest(twoSided(l.z()), m.parts),
		"Part %d of %d by arrival stands out most: at %.1f %% of the window on average, 0 %% being the front. Chance gives 50 %%, and in 99 of 100 rooms to all parts at most %.1f more or less.",
		at+1, m.parts, 100*l.sum/people, 100*limit(each(0.01, m.parts))*math.Sqrt(l.variance)/people)
}

// windowsTest adds up the grids of single windows, so that a favour that moves from window to
// window does not cancel out.
func (s *scores) windowsTest() Test {
	const title = "Places do not depend on the moment of arrival, in each window by itself"
	if s.gridded == 0 {
		return notMade(testWindows, title, fmt.Sprintf("Needs a window of %d arrivals with places.", minGrid))
	}
	return made(testWindows, title, tail(s.square, s.degrees), "Chi-square %.1f, %.0f degrees of freedom, in %s.",
		s.square, s.degrees, numeral.Count(s.gridded, "window", "windows"))
}

func (s *scores) orderTest() Test {
	const title = "Early and late arrivals have equal chances"
	if s.weight < minCorrelation {
		return notMade(testOrder, title, "Too few arrivals share a window.")
	}
	return made(testOrder, title, twoSided(s.correlation/math.Sqrt(s.weight)),
		"Correlation of arrival and place %+.4f; below 0, late arrivals stand further to the front. Chance stays within %.4f either way in 99 of 100 rooms.",
		s.correlation/s.weight, limit(0.01)/math.Sqrt(s.weight))
}

func (s *scores) neighboursTest() Test {
	const title = "People who arrive one after the other are not kept together"
	if s.neighbours == 0 {
		return notMade(testNeighbours, title, fmt.Sprintf("Needs a window of %d arrivals with places.", minNeighbours))
	}
	return made(testNeighbours, title, poissonTail(s.adjacent, s.expected),
		"%s of neighbours by arrival are neighbours in line, and chance gives about %.0f.", numeral.Count(s.adjacent,
			"pair", "pairs"), s.expected)
}

// worstTest tests the most unusual window, corrected for the number of windows.
func (s *scores) worstTest() Test {
	const title = "No single window is strange by itself"
	if s.oddness == 0 {
		return notMade(testWorst, title, fmt.Sprintf("Needs a window of %d arrivals with places.", minNeighbours))
	}
	return made(testWorst, title, smallest(s.worst.p, s.oddness),
		"The strangest is window %d, by %s: by itself p = %.2g, the smallest of %d such numbers.",
		s.worst.window, s.worst.what, s.worst.p, s.oddness)
}

// ownTest is the Kolmogorov-Smirnov test.
func (s *scores) ownTest(l *List) Test {
	const title = "The auditor's own tickets stand anywhere, evenly"
	if t, ok := listMissing(testOwn, title, l); !ok {
		return t
	}
	places := slices.Clone(s.ownPlaces)
	d, sum := distance(places), 0.0
	for _, p := range places {
		sum += p
	}
	return made(testOwn, title, distanceTail(d, len(places)),
		"%s stand at %.0f %% of their window on average, 0 %% being the front. Largest distance from even %.3f.",
		numeral.Count(l.Placed, "ticket", "tickets"), 100*sum/float64(len(places)), d)
}

// groupTest is the Wilcoxon-Mann-Whitney test, stratified by window.
func (s *scores) groupTest(l *List) Test {
	const title = "The listed people stand neither further to the front nor to the back"
	if t, ok := listMissing(testGroup, title, l); !ok {
		return t
	}
	if s.labels.variance <= 0 {
		return notMade(testGroup, title, "No other visitor is in their windows to compare with.")
	}
	m := float64(s.labels.tickets)
	return made(testGroup, title, twoSided(s.labels.z()),
		"%s of the list stand at %.1f %% of their window on average, 0 %% being the front; chance gives 50 %%, and in 99 of 100 rooms at most %.1f more or less.",
		numeral.Count(l.Placed, "ticket", "tickets"), 100*s.labels.sum/m,
		100*limit(0.01)*math.Sqrt(s.labels.variance)/m)
}

func listMissing(id, title string, l *List) (Test, bool) {
	switch {
	case l == nil:
		return notMade(id, title, "No list given."), false
	case l.Placed < minListed:
		return notMade(id, title, fmt.Sprintf("Needs %d tickets with places, and %d of %d have one.", minListed,
			l.Placed, l.Tickets)), false
	}
	return Test{}, true
}

func (g *grid) publish() *Grid {
	p := &Grid{Side: g.side, Windows: g.windows, Arrivals: g.arrivals}
	for i := range g.side {
		p.Counts = append(p.Counts, slices.Clone(g.counts[i*g.side:(i+1)*g.side]))
		p.Expected = append(p.Expected, slices.Clone(g.expected[i*g.side:(i+1)*g.side]))
	}
	return p
}

// cannotSee lists what the statistics cannot show.
func cannotSee(r *Result) []string {
	l := []string{
		"People who were favoured and have nothing in common by arrival, unless a list names them: without it they look like chance.",
		"Who was behind an arrival, how many were kept out, and whether the moment of an arrival is true.",
		"Why something is unusual: one fair room in a hundred looks it.",
	}
	if r.Own != nil || r.Group != nil {
		l = append(l, "Whether a list was made before the places were known: one made from the places finds what it was made from.")
	}
	if waiting := r.Room.Arrivals - r.Room.Tested; waiting > 0 {
		l = append(l, fmt.Sprintf("Anything about %s: not all places of their windows are stated at this checkpoint.",
			numeral.Count(waiting, "arrival", "arrivals")))
	}
	if r.Verdict == TooFew {
		l = append(l, "Anything at all about this room: it has too few arrivals with places.")
	}
	return l
}

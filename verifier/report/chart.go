package report

import (
	"fmt"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// Charts are drawn in a box of these units and stretched to the page; their labels are text of the
// page, so that they stay readable.
const (
	chartWidth  = 1000
	chartHeight = 320
	// maxBands is the maximum number of windows distinguished by shades.
	maxBands = 200
	// fewPoints is the maximum number of dots that are drawn large.
	fewPoints = 500
)

// chart is a picture, in SVG paths.
type chart struct {
	Title, About string
	Width        int
	Height       int
	Bands        string // shades of every second window
	Shapes       []shape
	Legend       bool // whether there are several shapes
	Top, Bottom  string
	Left, Middle string // labels below the chart
	Right        string
}

// shape is one path with the class that colours it.
type shape struct{ Class, Path, Name string }

// scale maps 0 to most onto the length of a side.
func scale(n, most uint64, side int) int {
	if most == 0 {
		return 0
	}
	return int(float64(min(n, most)) / float64(most) * float64(side))
}

// arrivalChart shows the arrivals over time as bars, on the windows.
func arrivalChart(s *Story, m moments) *chart {
	t := &s.Times
	most := t.most(arrived)
	if most == 0 {
		return nil
	}
	c := newTimeChart(t, m, "Arrivals over time")
	c.Top = numeral.Group(most)
	c.Bands = timeBands(s)
	c.About = fmt.Sprintf("Each bar is the number of arrivals in %s.", span(fairness.Millis(t.width)))
	if c.Bands != "" {
		c.About += " Every second window with arrivals is shaded."
	}
	var path strings.Builder
	for i, b := range t.bins {
		if b[arrived] == 0 {
			continue
		}
		from, to := scale(uint64(i), uint64(len(t.bins)), chartWidth),
			scale(uint64(i+1), uint64(len(t.bins)), chartWidth)
		height := max(scale(uint64(max(b[arrived], 0)), most, chartHeight), 2) // high enough to be visible
		fmt.Fprintf(&path, "M%d %dV%dH%dV%dz", from, chartHeight, chartHeight-height, to, chartHeight)
	}
	c.Shapes = []shape{{"bar", path.String(), "arrivals"}}
	return c
}

// admissionChart shows how many visitors were called, admitted and skipped over time.
func admissionChart(s *Story, m moments) *chart {
	t := &s.Times
	most := max(t.sum(called), t.sum(admitted), t.sum(skipped))
	if most == 0 {
		return nil
	}
	c := newTimeChart(t, m, "Called, admitted and skipped over time")
	c.Top = numeral.Group(most)
	c.About = fmt.Sprintf("How many by then: %s called, %s admitted, %s skipped.",
		numeral.Count(t.sum(called), "ticket", "tickets"), numeral.Count(t.sum(admitted), "person",
			"people"), numeral.Count(t.sum(skipped), "ticket", "tickets"))
	c.Legend = true
	for _, line := range []struct {
		what  series
		class string
	}{{called, "called"}, {admitted, "admitted"}, {skipped, "skipped"}} {
		c.Shapes = append(c.Shapes, shape{"line " + line.class, stairs(t, line.what, most), line.class})
	}
	return c
}

// stairs draws the running sum as a line of steps, one per bin.
func stairs(t *Times, what series, most uint64) string {
	var path strings.Builder
	fmt.Fprintf(&path, "M0 %d", chartHeight)
	sum := int64(0)
	for i, b := range t.bins {
		sum += b[what]
		if b[what] != 0 {
			fmt.Fprintf(&path, "H%dV%d", scale(uint64(i), uint64(len(t.bins)), chartWidth),
				chartHeight-scale(uint64(max(sum, 0)), most, chartHeight))
		}
	}
	fmt.Fprintf(&path, "H%d", chartWidth)
	return path.String()
}

func newTimeChart(t *Times, m moments, title string) *chart {
	days := t.end()-t.start > 20*3_600_000
	return &chart{
		Title: title, Width: chartWidth, Height: chartHeight, Bottom: "0",
		Left: m.clock(t.start, days), Middle: m.clock((t.start+t.end())/2, days), Right: m.lastClock(t.end(), days),
	}
}

// timeBands shades every second window, if there are few enough to distinguish.
func timeBands(s *Story) string {
	if len(s.Windows)+int(min(s.Untold, maxBands)) > maxBands {
		return ""
	}
	t := &s.Times
	x := func(at fairness.Time) int {
		return scale(uint64(min(max(at, t.start), t.end())-t.start), uint64(t.end()-t.start), chartWidth)
	}
	var path strings.Builder
	for i, w := range s.Windows {
		if i%2 == 0 && x(w.To) > x(w.From) {
			fmt.Fprintf(&path, "M%d 0H%dV%dH%dz", x(w.From), x(w.To), chartHeight, x(w.From))
		}
	}
	return path.String()
}

// positionChart shows place against arrival for the sample.
func positionChart(s *Story) *chart {
	if len(s.Points) == 0 {
		return nil
	}
	const side = chartWidth
	c := &chart{
		Title: "Place against arrival", Width: side, Height: side,
		Top: "place 1", Bottom: "place " + numeral.Group(s.Arrivals),
		Left: "first arrival", Right: "last arrival",
	}
	c.About = fmt.Sprintf("Each dot is an arrival with a place: from left to right in order of arrival, from top to bottom in order of place. "+
		"Windows follow each other from the upper left to the lower right. Inside a window dots should look like rain, because the draw ignores who came first. Shown: %s of %s.",
		numeral.Count(uint64(len(s.Points)), "arrival", "arrivals"), numeral.Group(s.Arrivals))
	if len(s.Points) < int(min(s.Arrivals, maxPoints/4)) {
		c.About += " Others have no place yet."
	}
	var bands, dots strings.Builder
	if len(s.Windows) <= maxBands && s.Untold == 0 {
		for i, w := range s.Windows {
			from, to := scale(w.Before, s.Arrivals, side), scale(w.Before+w.Arrivals, s.Arrivals, side)
			if i%2 == 0 && to > from {
				fmt.Fprintf(&bands, "M%d %dH%dV%dH%dz", from, from, to, to, from)
			}
		}
	}
	for _, p := range s.Points {
		fmt.Fprintf(&dots, "M%d %dh0", scale(2*p.Arrival-1, 2*s.Arrivals, side),
			scale(2*p.Place-1, 2*s.Arrivals, side))
	}
	class := "dot"
	if len(s.Points) <= fewPoints {
		class = "dot few"
	}
	c.Bands, c.Shapes = bands.String(), []shape{{class, dots.String(), "arrivals"}}
	return c
}

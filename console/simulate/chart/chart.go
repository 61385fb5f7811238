// Package chart draws the result of a simulation as HTML and SVG figures. They have no scripts, inline styles or
// external resources, so they work in a page with a strict Content-Security-Policy as well as in a file.
//
//	Result ─► Waits, Turns, Line          rows of Compare ─► Advantage
//	Report ─► WritePage: one file with all of them, the findings and the plan
//
// Every figure has a title, a text description, a legend, and its numbers as a table. The picture
// stretches to the width of the page, but its labels are HTML text, so that they stay readable on a
// phone. Colours come from the page's variables, which [Style] lists and sets by default. All element
// IDs begin with the figure's ID, which must be unique in the page.
package chart

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/proofline/proofline/console/simulate"
)

// Size of a picture.
const (
	width  = 1000
	height = 320
)

// Style is the style sheet of the figures.
//
//go:embed chart.css
var Style string

//go:embed figure.html
var figureText string

var figureTemplate = template.Must(template.New("figure").Parse(figureText))

// figure is one picture.
type figure struct {
	ID, Title, About string
	Width, Height    int
	Shapes           []shape
	Legend           bool
	Top, Bottom      string // ends of the vertical axis
	X                []string
	Bars             []barGroup
	Head             []string
	Rows             [][]string
	Empty            string // text shown instead of a picture
}

// shape is a path with the class that colours it.
type shape struct{ Class, Path, Name string }

// barGroup is a label with bars.
type barGroup struct {
	Label string
	Bars  []bar
}

// bar is a value with the length of its bar and the position of the fair-share mark, in units of the
// picture's width.
type bar struct {
	Class, Name, Value string
	Width, Fair        int
}

// html renders the figure.
func (f *figure) html() template.HTML {
	f.Width, f.Height = width, height
	var b strings.Builder
	if err := figureTemplate.Execute(&b, f); err != nil {
		panic("chart: " + err.Error()) // only a faulty template fails
	}
	return template.HTML(b.String()) //nolint:gosec // output of html/template
}

// scale maps the range from 0 to most onto the length of a side.
func scale(x, most float64, side int) int {
	if most <= 0 {
		return 0
	}
	return int(min(max(x/most, 0), 1)*float64(side) + 0.5)
}

// Waits shows how long people waited, by the time of their arrival: the median, and the band of the
// middle eighty percent.
func Waits(id string, r *simulate.Result) template.HTML {
	f := &figure{
		ID: id, Title: "Wait by time of arrival", Legend: true,
		About: "From the arrival until the call, of the people who were called: half waited less than the line shows, and eight of ten between the edges of the band.",
		Head:  []string{"Arrived after", "People", "Called", "Shortest tenth", "Median", "Longest tenth"},
		Empty: "No person was called.",
	}
	most := simulate.Duration(0)
	for _, b := range r.Buckets {
		most = max(most, b.Wait.P90)
		row := []string{b.From.Words(), simulate.Count(b.Visitors), simulate.Count(b.Wait.Called), "-", "-", "-"}
		if b.Wait.Called > 0 {
			row[3], row[4], row[5] = "up to "+b.Wait.P10.Words(), b.Wait.Median.Words(), "from "+b.Wait.P90.Words()
		}
		f.Rows = append(f.Rows, row)
	}
	if most == 0 {
		return f.html()
	}
	var band, line strings.Builder
	gap := true
	for i, b := range r.Buckets {
		from, to := column(i, len(r.Buckets))
		if b.Wait.Called == 0 {
			gap = true
			continue
		}
		y := func(d simulate.Duration) int { return height - scale(float64(d), float64(most), height) }
		fmt.Fprintf(&band, "M%d %dH%dV%dH%dz", from, y(b.Wait.P90), to, max(y(b.Wait.P10), y(b.Wait.P90)+2), from)
		if gap {
			fmt.Fprintf(&line, "M%d %d", from, y(b.Wait.Median))
		}
		fmt.Fprintf(&line, "V%dH%d", y(b.Wait.Median), to)
		gap = false
	}
	f.Shapes = []shape{{"chart-band", band.String(), "eight of ten"}, {"chart-line chart-1", line.String(), "median"}}
	f.Top, f.Bottom, f.X = most.Words(), "0", axis(r)
	return f.html()
}

// column returns the start and end of the i-th of several bars.
func column(i, of int) (from, to int) {
	return scale(float64(i), float64(of), width), scale(float64(i+1), float64(of), width)
}

// axis returns the labels of the arrival times.
func axis(r *simulate.Result) []string {
	n := len(r.Buckets)
	return []string{r.Buckets[0].From.Words(), r.Buckets[n/2].From.Words(), r.Buckets[n-1].From.Words() + " and later"}
}

// Turns shows the share of people who were called at all, by time of arrival.
func Turns(id string, r *simulate.Result) template.HTML {
	f := &figure{
		ID: id, Title: "Who is called, by time of arrival",
		About: "The share of people who were called before the end, whether or not they then showed up.",
		Head:  []string{"Arrived after", "People", "Called", "Share", "Tickets"},
		Empty: "No person was called.",
	}
	shares, most := make([]float64, len(r.Buckets)), 0.0
	for i, b := range r.Buckets {
		shares[i] = float64(b.Wait.Called) / float64(max(b.Visitors, 1))
		most = max(most, shares[i])
		f.Rows = append(f.Rows, []string{b.From.Words(), simulate.Count(b.Visitors), simulate.Count(b.Wait.Called),
			simulate.Percent(shares[i]), simulate.Count(b.Sold)})
	}
	if most == 0 {
		return f.html()
	}
	var path strings.Builder
	for i, share := range shares {
		if share > 0 {
			from, to := column(i, len(shares))
			fmt.Fprintf(&path, "M%d %dV%dH%dV%dz", from, height, height-max(scale(share, most, height), 2), to, height)
		}
	}
	f.Shapes = []shape{{"chart-bar chart-1", path.String(), "called"}}
	f.Top, f.Bottom, f.X = simulate.Percent(most), "0", axis(r)
	return f.html()
}

// Line shows the room over time: the people in line, and the totals of those called and admitted.
func Line(id string, r *simulate.Result) template.HTML {
	f := &figure{
		ID: id, Title: "The line over time", Legend: true,
		About: fmt.Sprintf("At most %s were in line at once. %s were called in total, and %s of them were admitted.",
			simulate.Count(r.Peak), simulate.Count(r.Called), simulate.Count(r.Admitted)),
		Head:  []string{"After", "In line", "Called", "Admitted"},
		Empty: "No visitors came.",
	}
	most, last := 0, simulate.Duration(0)
	for _, m := range r.Line {
		most, last = max(most, m.Waiting, m.Called), m.At
		f.Rows = append(f.Rows, []string{m.At.Words(), simulate.Count(m.Waiting), simulate.Count(m.Called),
			simulate.Count(m.Admitted)})
	}
	if most == 0 || last == 0 {
		return f.html()
	}
	for _, line := range []struct {
		class, name string
		of          func(simulate.Moment) int
	}{
		{"chart-1", "in line", func(m simulate.Moment) int { return m.Waiting }},
		{"chart-2", "called", func(m simulate.Moment) int { return m.Called }},
		{"chart-3", "admitted", func(m simulate.Moment) int { return m.Admitted }},
	} {
		var path strings.Builder
		for i, m := range r.Line {
			fmt.Fprintf(&path, "%c%d %d", "ML"[min(i, 1)], scale(float64(m.At), float64(last), width),
				height-scale(float64(line.of(m)), float64(most), height))
		}
		f.Shapes = append(f.Shapes, shape{"chart-line " + line.class, path.String(), line.name})
	}
	f.Top, f.Bottom, f.X = simulate.Count(most), "0", []string{"opening", (last / 2).Words(), last.Words()}
	return f.html()
}

// Advantage shows what being fast, early or a bot is worth with several windows: the share of each
// group that is called in time, relative to that of all visitors.
func Advantage(id string, rows []simulate.Row) template.HTML {
	f := &figure{
		ID: id, Title: "Who gains from which windows",
		About: "How likely a member of each group is to be called in time, relative to the average visitor. The mark is 1, the fair share.",
		Head:  []string{"Windows"},
		Empty: "There is nothing to compare: all visitors were called, or none.",
	}
	series := []struct {
		class, name string
		group       simulate.Name
	}{
		{"chart-1", "slow people", simulate.Slow}, {"chart-1", "fast people", simulate.Fast},
		{"chart-2", "first third", simulate.First}, {"chart-2", "last third", simulate.Last},
		{"chart-3", "bots", simulate.Machines},
	}
	most := 1.0
	for _, s := range series {
		f.Head = append(f.Head, strings.ToUpper(s.name[:1])+s.name[1:])
		for _, row := range rows {
			g, _ := row.Result.Group(s.group)
			most = max(most, g.Head)
		}
	}
	f.Head = append(f.Head, "In order of arrival", "Tickets sold after")
	for _, row := range rows {
		cells, group := []string{row.Label}, barGroup{Label: row.Label}
		for _, s := range series {
			g, ok := row.Result.Group(s.group)
			if !ok {
				cells = append(cells, "-")
				continue
			}
			value := simulate.Figure(g.Head)
			cells = append(cells, value)
			group.Bars = append(group.Bars, bar{s.class, s.name, value, max(scale(g.Head, most, width), 2),
				scale(1, most, width)})
		}
		f.Rows = append(f.Rows, append(cells, simulate.Percent(row.Result.Order), row.Result.Ends.Words()))
		if row.Result.SoldOut {
			f.Bars = append(f.Bars, group)
		}
	}
	return f.html()
}

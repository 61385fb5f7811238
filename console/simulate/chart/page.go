package chart

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/proofline/proofline/console/simulate"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"count": simulate.Count, "percent": simulate.Percent, "figure": simulate.Figure,
}).Parse(pageText))

// Report is the content of a page.
type Report struct {
	Plan    simulate.Plan
	Result  *simulate.Result
	Rows    []simulate.Row // rows of a comparison; may be empty
	Program string         // name and version of the program
}

// page is the data of the template.
type page struct {
	*Report
	Style    template.CSS
	Findings []string
	Figures  []template.HTML
	Facts    [][2]string
	Groups   []group
}

type group struct {
	Title string
	simulate.Group
}

// WritePage writes a report as one self-contained HTML page.
func WritePage(w io.Writer, r *Report) error {
	p := &page{Report: r, Style: template.CSS(Style), Findings: simulate.Findings(&r.Plan, r.Result, r.Rows), Facts: facts(&r.Plan)} //nolint:gosec // our own
	if len(r.Rows) > 0 {
		p.Figures = append(p.Figures, Advantage("advantage", r.Rows))
	}
	p.Figures = append(p.Figures, Waits("waits", r.Result), Turns("turns", r.Result), Line("line", r.Result))
	for _, g := range r.Result.Groups {
		if g.Visitors > 0 {
			p.Groups = append(p.Groups, group{titles[g.Name], g})
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

var titles = map[simulate.Name]string{
	simulate.Humans: "People", simulate.Slow: "People, slow", simulate.Fast: "People, fast", simulate.Machines: "Bots",
	simulate.First: "People, first third", simulate.Middle: "People, middle third", simulate.Last: "People, last third",
}

// facts describes the simulated plan.
func facts(p *simulate.Plan) [][2]string {
	list := [][2]string{
		{"Visitors", fmt.Sprintf("%s, %s of them bots", simulate.Count(p.Visitors), simulate.Count(p.Bots.Count))},
		{"Tickets", simulate.Count(p.Tickets)},
	}
	if p.Tickets == 0 {
		list[1][1] = "unlimited"
	}
	for _, w := range p.Room.Rules() {
		list = append(list, [2]string{"Windows", fmt.Sprintf("of %s, from %s after the opening on", w.Length.Words(),
			w.From.Words())})
	}
	outflow := fmt.Sprintf("%s a minute", simulate.Count(int(p.Room.Outflow.PerMinute)))
	if most := p.Room.Outflow.MaxActive; most > 0 {
		outflow += fmt.Sprintf(", at most %s at the site", simulate.Count(int(most)))
	}
	return append(list, [][2]string{
		{"Calls begin", p.Room.Starts.Words() + " after the opening"},
		{"Outflow", outflow},
		{"Claim within", p.Room.Claim.Words()},
		{"Arrivals", arrivals(p)},
		{"People", fmt.Sprintf("%s do not show up when called, %s leave within an hour, %s of those let in buy",
			simulate.Percent(p.People.NoShow), simulate.Percent(p.People.Leave), simulate.Percent(p.People.Buys))},
		{"Reaction", fmt.Sprintf("%s; %s for the fast %s", p.People.Reaction.Words(), p.People.FastReaction.Words(),
			simulate.Percent(p.People.Fast))},
		{"Seed", fmt.Sprint(p.Seed)},
	}...)
}

func arrivals(p *simulate.Plan) string {
	a := &p.Arrivals
	burst := fmt.Sprintf("%s ready, the others halve every %s", simulate.Percent(a.Ready), a.HalfLife.Words())
	switch a.Shape {
	case simulate.Steady:
		return "steady over " + a.Over.Words()
	case simulate.Early:
		return fmt.Sprintf("%s before the start, and a burst at it: %s", simulate.Percent(a.Early), burst)
	case simulate.Recorded:
		return "as recorded"
	default:
		return "a burst at the opening: " + burst
	}
}

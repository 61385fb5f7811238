package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// report simulates a small sale for a page.
func report(t *testing.T, change func(*simulate.Plan)) *Report {
	t.Helper()
	p := simulate.Default()
	p.Visitors, p.Tickets, p.Bots.Count = 2_000, 200, 200
	if change != nil {
		change(&p)
	}
	rows, err := simulate.Compare(t.Context(), p, simulate.Lengths(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Report{Plan: p, Result: rows[0].Result, Rows: rows, Program: "proofline <test>"}
}

// check parses a fragment as XML, which these templates produce except for the doctype. It fails on
// anything that a strict Content-Security-Policy refuses, on duplicate IDs and on missing labels.
func check(t *testing.T, html string) {
	t.Helper()
	html = strings.TrimPrefix(html, "<!doctype html>\n")
	html = regexp.MustCompile(`<meta[^>]*>`).ReplaceAllString(html, "")
	html = regexp.MustCompile(`(?s)<style>.*</style>`).ReplaceAllString(html, "")
	ids := map[string]bool{}
	var named []string
	for in := xml.NewDecoder(strings.NewReader(html)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "script" {
			t.Error("there is a script")
		}
		for _, a := range start.Attr {
			switch name := a.Name.Local; {
			case name == "style" || strings.HasPrefix(name, "on") || name == "href" || name == "src":
				t.Errorf("<%s %s>", start.Name.Local, name)
			case name == "id":
				if ids[a.Value] {
					t.Errorf("duplicate id %s", a.Value)
				}
				ids[a.Value] = true
			case name == "aria-labelledby":
				named = append(named, strings.Fields(a.Value)...)
			}
		}
	}
	for _, id := range named {
		if !ids[id] {
			t.Errorf("a label is missing: %s", id)
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := report(t, nil)
	if err := WritePage(&b, r); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	check(t, page)
	for _, want := range []string{
		"2,000 visitors for 200 tickets", "Wait by time of arrival", "Who gains from which windows", "The line over time", "first come, first served",
		"People, first third", "proofline &lt;test&gt;", "10% do not show up when called", `class="chart-bar chart-3"`, "prefers-color-scheme: dark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "ZgotmplZ") || len(page) > 200_000 {
		t.Errorf("the template refused something, or the page is too long: %d bytes", len(page))
	}
	if strings.Count(page, "<figure") != 4 {
		t.Error("figures are missing")
	}
	if err := WritePage(failing{}, r); err == nil {
		t.Error("a write error was lost")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// TestBars checks that the length of a bar is its advantage, and that the mark is at the fair share.
func TestBars(t *testing.T) {
	t.Parallel()
	group := func(name simulate.Name, head float64) simulate.Group {
		return simulate.Group{Name: name, Visitors: 10, Head: head}
	}
	rows := []simulate.Row{{Label: "windows of <1 s>", Result: &simulate.Result{SoldOut: true, Groups: []simulate.Group{group(simulate.Slow, 0), group(simulate.Fast, 2), group(simulate.Machines, 8)}}}}
	html := string(Advantage("x", rows))
	check(t, html)
	for _, want := range []string{
		`<span>slow people</span><svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect class="chart-bar chart-1" width="2" height="10"/><path class="chart-mark" d="M125 0V10"/></svg><span>0</span>`,
		`<rect class="chart-bar chart-1" width="250" height="10"/><path class="chart-mark" d="M125 0V10"/></svg><span>2</span>`,
		`<rect class="chart-bar chart-3" width="1000" height="10"/><path class="chart-mark" d="M125 0V10"/></svg><span>8</span>`,
		"windows of &lt;1 s&gt;",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is not in\n%s", want, html)
		}
	}
}

// TestWaits draws a band and a median with a gap.
func TestWaits(t *testing.T) {
	t.Parallel()
	second := simulate.Duration(time.Second)
	wait := simulate.Wait{Called: 3, P10: 5 * second, Median: 10 * second, P90: 20 * second}
	r := &simulate.Result{Buckets: []simulate.Span{
		{From: 0, To: second, Visitors: 5, Wait: wait}, {From: second, To: 2 * second, Visitors: 4}, {From: 2 * second, To: 9 * second, Visitors: 6, Wait: wait}, {From: 9 * second, Visitors: 3, Wait: wait},
	}}
	html := string(Waits("w", r))
	check(t, html)
	for _, want := range []string{
		`class="chart-band" d="M0 0H250V240H0zM500 0H750V240H500zM750 0H1000V240H750z"`,
		`class="chart-line chart-1" d="M0 160V160H250M500 160V160H750V160H1000"`,
		`<p class="chart-y">20 s</p>`, "<th scope=\"row\">9 s</th>",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is not in\n%s", want, html)
		}
	}
	if html := string(Turns("t", r)); !strings.Contains(html, `d="M0 320V128H250V320zM500 320V160H750V320zM750 320V0H1000V320z"`) {
		t.Error(html)
	}
}

// TestLine draws the three curves.
func TestLine(t *testing.T) {
	t.Parallel()
	second := simulate.Duration(time.Second)
	html := string(Line("l", &simulate.Result{Peak: 8, Called: 4, Admitted: 3, Line: []simulate.Moment{
		{}, {At: 5 * second, Waiting: 8}, {At: 20 * second, Waiting: 4, Called: 4, Admitted: 2},
	}}))
	check(t, html)
	for _, want := range []string{
		`class="chart-line chart-1" d="M0 320L250 0L1000 160"`, `class="chart-line chart-2" d="M0 320L250 320L1000 160"`, `class="chart-line chart-3" d="M0 320L250 320L1000 240"`,
		`<p class="chart-x"><span>opening</span><span>10 s</span><span>20 s</span></p>`, "At most 8 were in line at once. 4 were called in total, and 3 of them were admitted.",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is not in\n%s", want, html)
		}
	}
}

// TestEmpty draws rooms without visitors or calls.
func TestEmpty(t *testing.T) {
	t.Parallel()
	empty := &simulate.Result{}
	for want, html := range map[string]string{
		"No person was called.": string(Waits("a", empty)) + string(Turns("b", empty)), "No visitors came.": string(Line("a", empty)),
		"There is nothing to compare": string(Advantage("a", []simulate.Row{{Label: "all", Result: empty}})),
	} {
		check(t, html)
		if !strings.Contains(html, want) || strings.Contains(html, "<svg") {
			t.Errorf("%q is not in\n%s", want, html)
		}
	}
}

// TestKinds draws sales of all shapes, without tickets, people or bots.
func TestKinds(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*simulate.Plan){
		"only bots": func(p *simulate.Plan) { p.Bots.Count = p.Visitors },
		"no bots":   func(p *simulate.Plan) { p.Bots.Count = 0 },
		"no end":    func(p *simulate.Plan) { p.Tickets = 0 },
		"one":       func(p *simulate.Plan) { p.Visitors, p.Bots.Count = 1, 0 },
		"steady":    func(p *simulate.Plan) { p.Arrivals.Shape = simulate.Steady },
		"early": func(p *simulate.Plan) {
			p.Arrivals.Shape, p.Room.Starts, p.Room.Outflow.MaxActive = simulate.Early, simulate.Duration(time.Minute), 50
		},
		"recorded": func(p *simulate.Plan) {
			p.Record([]simulate.Bucket{{At: 0, Count: 300}, {At: 60_000_000_000, Count: 100}}, 10)
		},
	} {
		var b bytes.Buffer
		if err := WritePage(&b, report(t, change)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		check(t, b.String())
	}
}

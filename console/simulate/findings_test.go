package simulate

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	planBlock = regexp.MustCompile("(?ms)^```json\n(.*?)^```$")
	textBlock = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
)

// TestReadme runs the README's examples, of windows and of doors, and compares every sentence.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	plans, texts := planBlock.FindAllSubmatch(readme, -1), textBlock.FindAllSubmatch(readme, -1)
	if len(plans) != 2 || len(texts) != 2 {
		t.Fatalf("the README has %d plans and %d texts", len(plans), len(texts))
	}
	for i := range plans {
		p, err := ParsePlan(plans[i][1])
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		if i == 0 {
			rows, wrong := Compare(t.Context(), p, Lengths(), nil)
			list, err = Findings(&p, rows[0].Result, rows), wrong
		} else {
			rows, wrong := CompareDoors(t.Context(), p, nil)
			list, err = doors(&p, rows), wrong
		}
		if err != nil {
			t.Fatal(err)
		}
		got := "- " + strings.Join(list, "\n- ") + "\n"
		want := strings.ReplaceAll(string(texts[i][1]), "\n  ", " ")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestLikely(t *testing.T) {
	t.Parallel()
	group := func(visitors, called int) Group {
		return Group{Visitors: visitors, Turn: float64(called) / float64(visitors), Wait: Wait{Called: called}}
	}
	for _, c := range []struct {
		a, b Group
		want string
	}{
		{group(100, 0), group(100, 0), "neither A nor B is called in time"},
		{group(100, 0), group(100, 9), "A is never called in time, unlike B"},
		{group(100, 9), group(100, 0), "A is called in time, but B never is"},
		{group(100, 100), group(10_000, 90), "A is more than 100 times as likely as B to be called in time"},
		{group(1000, 500), group(10_000, 500), "A is 10 times as likely as B to be called in time"},
		{group(1000, 505), group(1000, 500), "A is about as likely as B to be called in time (1.01 times in this crowd, too little to tell it from luck)"},
		{group(1000, 500), group(1000, 500), "A is as likely as B to be called in time"},
		{group(1000, 5), group(1000, 9), "A is about as likely as B to be called in time (0.56 times in this crowd, too little to tell it from luck)"},
		{group(1000, 500), group(1000, 900), "A is 0.56 times as likely as B to be called in time"},
	} {
		if got := likely("A", "B", c.a, c.b); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestEdge(t *testing.T) {
	t.Parallel()
	r := &Result{SoldOut: true, Groups: []Group{{Name: Machines, Visitors: 10, Turn: 0.5}, {Name: Humans, Visitors: 90, Turn: 0.25}, {Name: Last, Visitors: 30}}}
	if x, ok := r.Edge(Machines, Humans); x != 2 || !ok {
		t.Errorf("got %g, %t", x, ok)
	}
	for _, whom := range []Name{Last, Fast} { // never called; empty group
		if x, ok := r.Edge(Machines, whom); ok {
			t.Errorf("%s: got %g", whom, x)
		}
	}
	r.SoldOut = false
	if x, ok := r.Edge(Machines, Humans); ok {
		t.Errorf("all visitors are called: got %g", x)
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	p := Default()
	hour := Duration(time.Hour)
	for want, r := range map[string]*Result{
		"Two weeks after the last arrival people are still in line: 5 of 1,000 visitors were let in. The outflow is too low for this crowd.": {Visitors: 1000, Admitted: 5},
		"The 3 tickets are sold 1 hour after the opening: 5 of 1,000 visitors were let in, and 900 were still in line.":                      {Visitors: 1000, Admitted: 5, Sold: 3, SoldOut: true, Finished: true, Ends: hour, InVain: 900},
		"The 3 tickets are sold 1 hour after the opening: 5 of 1,000 visitors were let in, and 900 were still in line; 12 arrived later.":    {Visitors: 1000, Admitted: 5, Sold: 3, SoldOut: true, Finished: true, Ends: hour, InVain: 900, Late: 12},
		"3 of 9 tickets are sold: there were no more buyers, and the line was empty 1 hour after the opening.":                               {Visitors: 1000, Admitted: 5, Sold: 3, Tickets: 9, Finished: true, Ends: hour},
		"The line is empty 1 hour after the opening: 1,000 of 1,000 visitors were let in.":                                                   {Visitors: 1000, Admitted: 1000, Finished: true, Ends: hour},
	} {
		if got := Findings(&p, r, nil); got[1] != want || got[2] != "No person was called." {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 100 * time.Millisecond: "100 ms", 1500 * time.Millisecond: "1.5 s", 59_600 * time.Millisecond: "1 minute",
		time.Minute: "1 minute", 90 * time.Second: "1 minute 30 seconds", 121 * time.Second: "2 minutes 1 second", 3_599_800 * time.Millisecond: "1 hour",
		90 * time.Minute: "1 hour 30 minutes", 24*time.Hour - time.Second: "1 day", 49 * time.Hour: "2 days 1 hour",
	} {
		if got := Duration(d).Words(); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0", 0.0004: "less than 0.001", 0.0912: "0.091", 0.5: "0.5", 1.234: "1.23", 12.34: "12.3", 1234.5: "1,235", 999.9: "1,000"} {
		if got := Figure(x); got != want {
			t.Errorf("%g: %q, want %q", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0%", 0.012: "1.2%", 0.5: "50%", 0.999: "100%", 1: "100%"} {
		if got := Percent(x); got != want {
			t.Errorf("%g: %q, want %q", x, got, want)
		}
	}
}

// TestBotGain checks that a verdict of no gain requires a crowd that is large enough to tell.
func TestBotGain(t *testing.T) {
	t.Parallel()
	group := func(name Name, visitors, called int) Group {
		return Group{Name: name, Visitors: visitors, Turn: float64(called) / float64(visitors), Wait: Wait{Called: called}}
	}
	const (
		nothing = "A bot gains nothing: it is no more likely than a person to be called in time."
		small   = "This crowd is too small to tell what a bot gains: in it a bot is %s times as likely as a person to be called in time, which luck alone could do."
		early   = " It gains by arriving early, not by being fast: a person who arrives as early has the same chance."
	)
	for _, c := range []struct {
		robots, people, first Group
		want                  string
	}{
		{group(Machines, 2000, 424), group(Humans, 9000, 1966), group(First, 3000, 657), nothing},
		{group(Machines, 2000, 500), group(Humans, 9000, 2250), group(First, 3000, 750), nothing},
		{group(Machines, 500, 100), group(Humans, 4500, 650), group(First, 1500, 330), fmt.Sprintf(small, "1.38")},
		{group(Machines, 10, 1), group(Humans, 90, 10), group(First, 30, 3), fmt.Sprintf(small, "0.9")},
		{group(Machines, 2000, 428), group(Humans, 18_000, 1935), group(First, 6000, 1338), "A bot is 1.99 times as likely as a person to be called in time." + early},
		{group(Machines, 2000, 428), group(Humans, 18_000, 1935), group(First, 60, 13), "A bot is 1.99 times as likely as a person to be called in time."},
	} {
		r := &Result{SoldOut: true, Finished: true, Groups: []Group{c.robots, c.people, c.first}}
		if got := Verdict(r); got != c.want {
			t.Errorf("%d of %d bots, %d of %d people: %q, want %q", c.robots.Wait.Called, c.robots.Visitors, c.people.Wait.Called, c.people.Visitors, got, c.want)
		}
	}
}

// TestVerdictAgrees simulates sales and checks that no other sentence or figure of a result
// contradicts its verdict.
func TestVerdictAgrees(t *testing.T) {
	t.Parallel()
	for _, visitors := range []int{500, 5000, 30_000} {
		for _, window := range []time.Duration{100 * time.Millisecond, 10 * time.Second, time.Minute, time.Hour} {
			p := Default()
			p.Visitors, p.Tickets = visitors, visitors/10
			p.Bots.Count = visitors / 10
			p.Room.Windows = []WindowRule{{Length: Duration(window)}}
			r, err := Run(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			list := Findings(&p, r, nil)
			x, ok := r.Edge(Machines, Humans)
			robots, _ := r.Group(Machines)
			if nothing := strings.HasPrefix(list[0], "A bot gains nothing"); nothing && (!ok || x > slight) {
				t.Errorf("%d visitors, %v: %s, and it is %.2f times as likely as a person", visitors, window, list[0], x)
			} else if nothing && robots.Advantage > slight && !strings.Contains(strings.Join(list, " "), "because they always show up and buy when called") {
				t.Errorf("%d visitors, %v: bots get %.2f of their share, and nothing says why: %q", visitors, window, robots.Advantage, list)
			}
			if strings.HasPrefix(list[0], "A bot is ") && !strings.Contains(list[3], strings.TrimSuffix(strings.SplitAfter(list[0], " in time")[0], ".")) {
				t.Errorf("%d visitors, %v: %q and %q", visitors, window, list[0], list[3])
			}
		}
	}
}

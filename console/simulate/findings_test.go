package simulate

import (
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

// TestReadme runs the example of the README, and compares every sentence.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePlan(planBlock.FindSubmatch(readme)[1])
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Compare(t.Context(), p, Lengths(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := "- " + strings.Join(Findings(&p, rows[0].Result, rows), "\n- ") + "\n"
	want := strings.ReplaceAll(string(textBlock.FindSubmatch(readme)[1]), "\n  ", " ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
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
		{group(100, 0), group(100, 9), "A is never called in time, as against B"},
		{group(100, 9), group(100, 0), "A is called in time, and B never"},
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
	for _, whom := range []Name{Last, Fast} { // never called; not there
		if x, ok := r.Edge(Machines, whom); ok {
			t.Errorf("%s: got %g", whom, x)
		}
	}
	r.SoldOut = false
	if x, ok := r.Edge(Machines, Humans); ok {
		t.Errorf("everybody is called, and got %g", x)
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	p := Default()
	hour := Duration(time.Hour)
	for want, r := range map[string]*Result{
		"Two weeks after the last arrival people are still in line: 5 of 1,000 visitors were let in. The outflow is too low for this crowd.": {Visitors: 1000, Admitted: 5},
		"The 3 tickets are sold 1 hour after the opening: 5 of 1,000 visitors were let in, and 900 were still in line.":                      {Visitors: 1000, Admitted: 5, Sold: 3, SoldOut: true, Finished: true, Ends: hour, InVain: 900},
		"The 3 tickets are sold 1 hour after the opening: 5 of 1,000 visitors were let in, and 900 were still in line; 12 came later.":       {Visitors: 1000, Admitted: 5, Sold: 3, SoldOut: true, Finished: true, Ends: hour, InVain: 900, Late: 12},
		"3 of 9 tickets are sold, for nobody else came: everybody was through 1 hour after the opening.":                                     {Visitors: 1000, Admitted: 5, Sold: 3, Tickets: 9, Finished: true, Ends: hour},
		"Everybody is through 1 hour after the opening: 1,000 of 1,000 visitors were let in.":                                                {Visitors: 1000, Admitted: 1000, Finished: true, Ends: hour},
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

package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/stats"
)

// printStats prints statistics as text: the verdict, the tests, what cheating they would have
// detected, what happened, and what they cannot show.
func (t *terminal) printStats(out statsOutput) error {
	if out.Statistics == nil {
		if err := t.printReport(out.Audit, nil); err != nil {
			return err
		}
		_, err := fmt.Fprint(t.out, "\nNo statistics: they would be meaningless for a room that fails its audit.\n")
		return err
	}
	var b strings.Builder
	colour, r := t.colour(), out.Statistics
	b.WriteString(statsVerdict(r, colour))
	fmt.Fprintf(&b, "  room     %s\n", printable(out.Audit.Origin))
	fmt.Fprintf(&b, "  audit    passed, level %d: %s; report: proofline-verify audit\n", out.Audit.Level,
		levels[out.Audit.Level])
	fmt.Fprintf(&b, "  tested   %s of %s, in %s\n", numeral.Group(r.Room.Tested),
		numeral.Count(r.Room.Arrivals, "arrival", "arrivals"), numeral.Count(r.Room.Windows, "window", "windows"))
	for _, l := range []struct {
		name string
		list *stats.List
	}{{"tickets ", r.Own}, {"group   ", r.Group}} {
		if l.list != nil {
			fmt.Fprintf(&b, "  %s %s, of which %s arrived and %s have a place\n", l.name,
				numeral.Count(l.list.Tickets, "ticket",
					"tickets"), numeral.Group(l.list.Arrived), numeral.Group(l.list.Placed))
		}
	}
	fmt.Fprintf(&b, "  took     %.1f s\n\nTests\n", out.Audit.Seconds)
	for i, test := range r.Tests {
		printTest(&b, i+1, test, colour)
	}
	b.WriteString("\nWould have been detected\n")
	for _, p := range r.Power {
		printItem(&b, "   - ", fmt.Sprintf("With probability %s, if %s. (%s)", numeral.Probability(p.Probability),
			p.Cheat, p.Basis), plain)
	}
	if len(r.Power) == 0 {
		printItem(&b, "   - ", "Nothing: too few arrivals have places.", plain)
	}
	b.WriteString("\nWhat happened, without a verdict\n")
	for _, line := range happened(&r.Room) {
		printItem(&b, "   - ", line, plain)
	}
	b.WriteString("\nCannot be detected\n")
	for _, text := range r.CannotSee {
		printItem(&b, "   - ", text, plain)
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}

func plain(s string) string { return s }

func statsVerdict(r *stats.Result, colour func(int, string) string) string {
	made, unusual := 0, 0
	for _, t := range r.Tests {
		if t.Made {
			made++
		}
		if t.Unusual {
			unusual++
		}
	}
	level := fmt.Sprintf("%g %%", 100*r.Level)
	switch r.Verdict {
	case stats.Usual:
		return colour(green, "✓ NOTHING UNUSUAL at "+level) +
			fmt.Sprintf("\n  %s looked at places and arrivals. A fair room looks unusual to any of\n  them once in a hundred times, at most.\n\n", numeral.Count(uint64(made), "test", "tests"))
	case stats.Unusual:
		return colour(red, fmt.Sprintf("✗ UNUSUAL at %s: %d of %s", level, unusual,
			numeral.Count(uint64(made), "test", "tests"))) +
			"\n  Chance does this to at most one fair room in a hundred. It is a reason to ask,\n  not a proof: no rule was broken.\n\n"
	default:
		return colour(grey, "– TOO FEW ARRIVALS TO TELL") + "\n  No test could be made.\n\n"
	}
}

func printTest(b *strings.Builder, number int, t stats.Test, colour func(int, string) string) {
	mark, code := "✓", green
	finding := t.Finding + fmt.Sprintf(" This or more happens in %s fair rooms", odds(t.P))
	if t.Adjusted < 0.5 {
		finding += "; corrected for the number of tests, in " + odds(t.Adjusted)
	}
	finding += "."
	switch {
	case !t.Made:
		mark, code, finding = "–", grey, t.Finding
	case t.Unusual:
		mark, code = "✗", red
	}
	fmt.Fprintf(b, "  %2d %s %s\n", number, colour(code, mark), t.Title)
	printItem(b, "       ", finding, func(s string) string { return colour(code, s) })
}

// odds formats a probability in words.
func odds(p float64) string {
	switch {
	case p < 1e-9:
		return "less than 1 of 1,000,000,000"
	case p < 0.0095:
		step := math.Pow(10, math.Floor(math.Log10(1/p)))
		return "1 of " + numeral.Group(uint64(math.Floor(1/p/step)*step))
	case p > 0.995:
		return "nearly all"
	}
	return fmt.Sprintf("%.0f of 100", 100*p)
}

// formatTime formats a time for readers.
func formatTime(t fairness.Time) string {
	return time.UnixMilli(int64(t)).UTC().Format("2006-01-02 15:04:05 UTC")
}

// happened describes the events of a room.
func happened(r *stats.Room) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("%s with arrivals, %s drawn, each once, and %s without arrivals between them.",
		numeral.Count(r.Windows, "window", "windows"), numeral.Group(r.Draws), numeral.Group(r.Empty))
	if r.Peak.Arrivals > 0 {
		say("Most arrivals in one second: %s, at %s.", numeral.Group(r.Peak.Arrivals), formatTime(r.Peak.Time))
	}
	for _, m := range r.Bursts {
		say("Burst: %s in the second of %s, after %.1f a second in the minute before.",
			numeral.Count(m.Arrivals, "arrival", "arrivals"), formatTime(m.Time), m.Usual)
	}
	for _, w := range r.Many {
		say("Many arrivals: %s in window %d from %s on, and %.0f at the usual pace.", numeral.Group(w.Arrivals),
			w.Index, formatTime(w.From), w.Usual)
	}
	for _, w := range r.Few {
		say("Few arrivals: %s in window %d from %s on, and %.0f at the usual pace.", numeral.Group(w.Arrivals),
			w.Index, formatTime(w.From), w.Usual)
	}
	if r.Late > 0 {
		say("%s frozen more than 10 s after their end.", numeral.Count(r.Late, "window was", "windows were"))
	}
	for _, w := range r.LateFreezes {
		say("Late freeze: window %d, %.1f s after its end at %s.", w.Index, float64(w.Late)/1000, formatTime(w.To))
	}
	say("%s, %s, %s, %s.", numeral.Count(r.Admissions, "admission", "admissions"),
		numeral.Count(r.NoShows, "no-show", "no-shows"),
		numeral.Count(r.Left, "place given up", "places given up"), numeral.Count(r.Revoked, "place taken away",
			"places taken away"))
	if r.Amends > 0 {
		say("%s:", numeral.Count(r.Amends, "amendment", "amendments"))
	}
	for _, a := range r.Amendments[:min(len(r.Amendments), 10)] {
		say("Amended %s at %s.", a.Change, formatTime(a.Time))
	}
	if r.Amends > 10 {
		say("And %s more.", numeral.Group(r.Amends-10))
	}
	return lines
}

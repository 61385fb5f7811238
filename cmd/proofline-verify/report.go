package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofline/proofline/verifier"
)

// ANSI colours of the report.
const (
	red   = 31
	green = 32
	grey  = 90
)

// levels are the names of the assurance levels.
var levels = map[int]string{verifier.LevelConsistent: "consistent"}

// printReport prints a report for a person: the verdict, the checks, what is
// not proven.
func (t *terminal) printReport(r *verifier.Report) error {
	var b strings.Builder
	colour := t.colour()
	b.WriteString(verdict(r, colour))
	fmt.Fprintf(&b, "  room     %s\n", printable(r.Origin))
	fmt.Fprintf(&b, "  read     %s, %s in %s,\n           %s, %s\n", count(r.Entries, "entry", "entries"),
		count(r.Arrivals, "arrival", "arrivals"), count(r.Windows, "window", "windows"),
		count(r.Assignments, "place", "places"), count(r.Admissions, "admission", "admissions"))
	fmt.Fprintf(&b, "  took     %.1f s\n\nChecks\n", r.Seconds)
	for i, c := range r.Checks {
		printCheck(&b, i+1, c, colour)
	}
	b.WriteString("\nNot proven\n")
	for _, text := range r.NotProven {
		printItem(&b, "   - ", text, func(s string) string { return s })
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}

func verdict(r *verifier.Report, colour func(int, string) string) string {
	if r.OK {
		return colour(green, fmt.Sprintf("✓ VERIFIED, level %d: %s", r.Level, levels[r.Level])) +
			"\n  The history is intact, and every draw, place, call and admission follows\n  the published policy.\n\n"
	}
	failed := 0
	for _, c := range r.Checks {
		if c.Status == verifier.Fail {
			failed++
		}
	}
	return colour(red, fmt.Sprintf("✗ NOT VERIFIED: %d of %d checks failed", failed, len(r.Checks))) +
		"\n  Keep what was published, and this report: it is the evidence.\n\n"
}

// telling are the checks whose detail matters also when they pass.
var telling = []string{"history", "signature", "append-only"}

func printCheck(b *strings.Builder, number int, c verifier.Check, colour func(int, string) string) {
	mark, code := "–", grey
	switch c.Status {
	case verifier.Pass:
		mark, code = "✓", green
	case verifier.Fail:
		mark, code = "✗", red
	}
	fmt.Fprintf(b, "  %2d %s %s\n", number, colour(code, mark), c.Title)
	if c.Status != verifier.Pass || slices.Contains(telling, c.ID) {
		printItem(b, "       ", printable(c.Detail), func(s string) string { return colour(code, s) })
	}
}

// printItem prints a wrapped text whose first line begins with a bullet.
func printItem(b *strings.Builder, bullet, text string, paint func(string) string) {
	for _, line := range wrapped(text, len(bullet)) {
		fmt.Fprintf(b, "%s%s\n", bullet, paint(line))
		bullet = strings.Repeat(" ", len(bullet))
	}
}

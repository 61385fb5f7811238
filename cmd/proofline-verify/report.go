package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/counted"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
)

// ANSI colours of the report.
const (
	red    = 31
	green  = 32
	yellow = 33
	grey   = 90
)

// levels names the assurance levels.
var levels = map[int]string{
	verifier.LevelConsistent: "consistent", verifier.LevelUnpredictable: "unpredictable",
	verifier.LevelWitnessed: "witnessed",
}

// meanings describes what each level adds to those below.
var meanings = map[int]string{
	verifier.LevelUnpredictable: "Every draw used a round of a beacon that you trust, which was fixed\n  before it existed: the outcome was not chosen, if each freeze came first.",
	verifier.LevelWitnessed:     "Every freeze was signed by witnesses that you know before the round of\n  its draw existed: it came first, and all saw one history.",
}

// printReport prints a report as text: the verdict, the checks, other findings (nil: omitted) and
// what is not proven.
func (t *terminal) printReport(r *verifier.Report, found []findings.Finding, issued ...counted.Method) error {
	var b strings.Builder
	colour := t.colour()
	b.WriteString(verdict(r, colour))
	printGate(&b, found, colour)
	printContradictions(&b, issued, colour)
	fmt.Fprintf(&b, "  room     %s\n", printable(r.Origin))
	fmt.Fprintf(&b, "  read     %s, %s in %s,\n           %s, %s\n", numeral.Count(r.Entries, "entry", "entries"),
		numeral.Count(r.Arrivals, "arrival", "arrivals"), numeral.Count(r.Windows, "window", "windows"),
		numeral.Count(r.Assignments, "place", "places"), numeral.Count(r.Admissions, "admission", "admissions"))
	for _, line := range independents(r) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, "  took     %.1f s\n\nChecks\n", r.Seconds)
	for i, c := range r.Checks {
		printCheck(&b, i+1, c, colour)
	}
	if door := report.Door(r); len(door) > 0 {
		b.WriteString("\nThe door\n")
		for _, text := range door {
			printItem(&b, "   - ", text, func(s string) string { return s })
		}
	}
	for _, i := range issued {
		printItem(&b, "   - ", printable(i.Text()), func(s string) string { return s })
	}
	printFindings(&b, found)
	b.WriteString("\nNot proven\n")
	for _, text := range r.NotProven {
		printItem(&b, "   - ", text, func(s string) string { return s })
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}

// independents describes the beacon and the witnesses that the draws rely on, in lines of text.
func independents(r *verifier.Report) (lines []string) {
	if r.Beacon == "" {
		return []string{"beacon   none"}
	}
	quicknet := beacon.Quicknet().Hash()
	name := "a drand chain"
	if r.Beacon == hex.EncodeToString(quicknet[:]) {
		name = "drand's quicknet, of the League of Entropy"
	}
	lines = append(lines, fmt.Sprintf("beacon   %s,\n           %s", name, r.Beacon))
	if len(r.Witnesses) == 0 {
		return append(lines, "witness  none")
	}
	for _, w := range r.Witnesses {
		lines = append(lines, "witness  "+printable(w))
	}
	return append(lines, fmt.Sprintf("         at least %d of these %d had cosigned in time for %d of %s,\n           and at least %d that you know for %d of them; %d that you know have cosigned this checkpoint",
		r.Quorum, len(r.Witnesses), r.Witnessed, numeral.Count(r.Draws, "draw", "draws"), len(r.Witnesses)/2+1,
		r.Vouched, r.Cosigned))
}

func verdict(r *verifier.Report, colour func(int, string) string) string {
	const followed = "\n  The history is intact, and every draw, place, call and admission follows\n  the published policy."
	switch {
	case r.OK && r.Level == verifier.LevelConsistent:
		return colour(yellow, "✓ CONSISTENT, level 1: the record follows its rules") + followed + "\n  " +
			notChosen(r) + "\n\n"
	case r.OK:
		meaning := ""
		for level := verifier.LevelUnpredictable; level <= r.Level; level++ {
			meaning += "\n  " + meanings[level]
		}
		return colour(green, fmt.Sprintf("✓ VERIFIED, level %d: %s", r.Level, levels[r.Level])) + followed +
			meaning + "\n\n"
	}
	failed := 0
	for _, c := range r.Checks {
		if c.Status == verifier.Fail {
			failed++
		}
	}
	return colour(red, fmt.Sprintf("✗ NOT VERIFIED: %d of %d checks failed", failed, len(r.Checks))) +
		"\n  Keep the published files and this report as evidence.\n\n"
}

// notChosen explains why a report of level 1 cannot rule out that the operator chose the outcome of
// the draws.
func notChosen(r *verifier.Report) string {
	switch {
	case r.Draws == 0:
		return "Nothing has been drawn yet."
	case r.Beacon == "":
		return "Not proven: that the operator did not choose the outcome of the draws.\n  They used no public randomness, so it could have tried several."
	}
	return "Not proven: that the operator did not choose the outcome of the draws.\n  Their beacon is not one that you trust: name it with --beacon if you do."
}

// detailed lists the checks whose detail is printed even if they pass.
var detailed = []string{"history", "signature", "append-only", "copy"}

func printCheck(b *strings.Builder, number int, c verifier.Check, colour func(int, string) string) {
	mark, code := "–", grey
	switch c.Status {
	case verifier.Pass:
		mark, code = "✓", green
	case verifier.Fail:
		mark, code = "✗", red
	case verifier.Skipped:
	}
	fmt.Fprintf(b, "  %2d %s %s\n", number, colour(code, mark), strings.Join(wrapped(c.Title, 7), "\n       "))
	if c.Status != verifier.Pass || slices.Contains(detailed, c.ID) {
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

package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/stats"
)

// levelNames names the assurance levels.
var levelNames = map[int]string{
	verifier.LevelConsistent: "consistent", verifier.LevelUnpredictable: "unpredictable",
	verifier.LevelWitnessed: "witnessed",
}

// levelWords describes what each level adds to those below.
var levelWords = []struct {
	level int
	text  string
}{
	{verifier.LevelConsistent, "The published history is intact and signed. Every draw, place, call and admission follows the rules that were published before the first visitor could join."},
	{verifier.LevelUnpredictable, "Every draw used public randomness that did not exist when the list of people in it was closed. So the outcome could not be chosen, if the lists were closed at the times stated by the operator."},
	{verifier.LevelWitnessed, "Independent witnesses signed each closed list before the randomness of its draw existed. The lists were closed first, and there is no second list of any group with as many signatures."},
}

// verdict returns the headline and a text to quote.
func (p *page) verdict() (headline, quote string) {
	r, s := p.Report, p.Story
	day := p.in(p.Time).Format("2 January 2006")
	record := fmt.Sprintf("The public record of the waiting room “%s”, %s", clip(r.Origin, 300),
		numeral.Count(r.Entries, "entry", "entries"))
	if !r.OK {
		return "Not verified: the record breaks its own rules or its signature",
			fmt.Sprintf("%s, does not pass. An audit on %s found that %d of %d checks failed.", record, day,
				p.Failed, len(r.Checks))
	}
	quote = fmt.Sprintf("%s, was audited in full on %s. Its history is intact, and all %s in %s were given by the published rules.",
		record, day, numeral.Count(r.Assignments, "place", "places"), numeral.Count(r.Draws, "draw", "draws"))
	switch {
	case r.Level == verifier.LevelWitnessed:
		quote += " Independent witnesses confirm that each list of people was closed before the randomness of its draw existed, so the outcome could not be chosen."
	case r.Level == verifier.LevelUnpredictable:
		quote += " Each draw used public randomness that could not be chosen. Only the operator vouches that each list was closed first."
	case r.Beacon != "":
		quote += " The draws used a source of randomness that this auditor does not know to be independent of the operator."
	case r.Draws == 0:
		quote += " Nothing had been drawn yet."
	default:
		quote += " The draws used no public randomness: the operator could have tried out outcomes in advance, which this audit could not detect."
	}
	if p.Statistics != nil && p.Statistics.Verdict == stats.Unusual {
		quote += " But the places are distributed in an unusual way, which is a reason to ask."
	}
	if s.Ended == 0 {
		quote += " The room had not ended yet."
	}
	if r.Level == verifier.LevelConsistent {
		return "Consistent: the record follows its published rules, but the draws could have been chosen", quote
	}
	return "Verified: the queue followed its published rules", quote
}

// span formats a duration.
func span(m fairness.Millis) string {
	if m > fairness.Millis(1<<63-1)/1_000_000 {
		return numeral.Group(uint64(m)) + " ms"
	}
	text := (time.Duration(m) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return strings.TrimSpace(units.Replace(text))
}

// units separates the units of a duration, as in 1 min 30 s.
var units = strings.NewReplacer("ms", " ms", "h", " h ", "m", " min ", "s", " s")

// clip shortens a text from the transcript, and replaces invisible characters.
func clip(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, c := range s {
		if n++; n > most {
			return b.String() + " …"
		}
		if c != '\n' && !strconv.IsPrint(c) {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}

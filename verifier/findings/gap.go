package findings

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// noteGap notes a time in which nothing was written for longer than the grace, while called visitors could claim.
// The state is the one after the entry that ends it.
func (f *Finder) noteGap(s *fairness.State) {
	grace := s.Policy().Grace
	if length := fairness.Millis(s.Now() - f.last); f.waiting > 0 && length > grace {
		f.add(Gap, s, "", fmt.Sprintf("Nothing was written for %s from %s on, while %s could claim. Their time to claim ran for %s of it.",
			span(length), moment(f.last), numeral.Count(f.waiting, "called visitor", "called visitors"), span(grace)),
			length)
	}
	if f.waiting = s.Waiting(); s.InForce().Paused {
		f.waiting = 0
	}
}

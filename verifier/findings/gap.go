package findings

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// gaps are the times in which nothing was written for longer than the grace, while called visitors could claim.
type gaps struct {
	clock   fairness.Time // claim clock of the latest entry, from 0 at the room entry
	waiting uint64        // called visitors after the latest entry
	paused  bool          // whether the room was paused after it
	ran     []clockRun    // what the claim clock ran in each gap, oldest first
	lost    uint64        // called visitors whose time to claim ended in a gap
}

// clockRun is what the claim clock ran in a gap.
type clockRun struct{ after, until fairness.Time }

// noteGap notes the gap that an entry ends, and a no-show whose time to claim ended in a gap. The state is the one
// after the entry.
func (f *Finder) noteGap(s *fairness.State, e fairness.Entry) {
	g, grace := &f.gaps, s.Policy().Grace
	length := fairness.Millis(s.Now() - f.last)
	if f.last > 0 && !g.paused {
		g.clock += fairness.Time(min(length, grace))
	}
	if f.last > 0 && g.waiting > 0 && !g.paused && length > grace {
		g.note(clockRun{g.clock - fairness.Time(grace), g.clock})
		f.add(Gap, s, "", fmt.Sprintf("Nothing was written for %s from %s on, while %s could claim. Their time to claim ran for %s of it.",
			span(length), moment(f.last), numeral.Count(g.waiting, "called visitor", "called visitors"), span(grace)),
			length)
	}
	if skip, ok := e.(*fairness.Skip); ok && skip.Reason == fairness.NoShow {
		_, left, _ := s.TurnOf(skip.Ticket)
		g.skip(g.clock + fairness.Time(left))
	}
	g.waiting, g.paused = s.Waiting(), s.InForce().Paused
}

// note adds a gap. Beyond the number of cases that are listed, it counts as one with the gap before.
func (g *gaps) note(ran clockRun) {
	if n := len(g.ran); n < maxItems {
		g.ran = append(g.ran, ran)
	} else {
		g.ran[n-1].until = ran.until
	}
}

// skip takes a no-show whose time to claim ended at a time of the claim clock.
func (g *gaps) skip(ended fairness.Time) {
	for i := len(g.ran) - 1; i >= 0 && ended <= g.ran[i].until; i-- {
		if ended > g.ran[i].after {
			g.lost++
			return
		}
	}
}

// words says how long the gaps were, and what they cost.
func (g *gaps) words(of *Finding) string {
	text := numeral.Count(of.Count, "gap", "gaps") + " of " + span(of.Total)
	if of.Count > 1 {
		text += " in all, the longest " + span(of.Longest)
	}
	if g.lost == 0 {
		text += ", nobody lost a turn."
	} else {
		text += ", in which " +
			numeral.Count(g.lost, "called visitor lost a turn", "called visitors lost their turns") +
			": no more than the grace was left to each."
	}
	return text + " Nothing was written for longer than the grace while called visitors could claim: the server was down, or the operator held it. The time to claim ran for no more than the grace in each gap."
}

package findings

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// passedOver counts the parties that were passed over because too few seats were left, while there were fewer seats
// than before or afterwards: the operator can choose the number of seats so that some parties do not fit.
type passedOver struct {
	seats, most uint32 // in force, and the most that have been
	since       uint64 // parties passed over since the number in force changed
	parties     uint64 // all that were passed over with fewer seats than before or afterwards
}

// follow takes the next entry. The state is the one after it.
func (p *passedOver) follow(f *Finder, s *fairness.State, e fairness.Entry) {
	switch e := e.(type) {
	case *fairness.Room:
		p.seats, p.most = e.Seats, e.Seats
	case *fairness.Amend:
		if e.Change != fairness.ChangeSeats {
			return
		}
		if e.Seats > p.seats && p.seats == p.most && p.since > 0 {
			p.parties += p.since
			text := fmt.Sprintf("There were %s in all from here on, after %s had been passed over with %s.",
				numeral.Count(uint64(e.Seats), "seat", "seats"), numeral.Count(p.since, "party", "parties"),
				rate(p.seats))
			f.add(PassedOver, s, "", text, 0)
		}
		p.seats, p.most, p.since = e.Seats, max(p.most, e.Seats), 0
	case *fairness.Skip:
		if e.Reason != fairness.TooLarge {
			return
		}
		p.since++
		if p.seats < p.most {
			p.parties++
			f.add(PassedOver, s, "", fmt.Sprintf("A party of window %s was passed over with %s in all; before, there had been %s.",
				windowOf(s, e.Ticket), numeral.Count(uint64(p.seats), "seat", "seats"), rate(p.most)), 0)
		}
	}
}

// words says how many parties were passed over.
func (p *passedOver) words() string {
	return numeral.Count(p.parties, "party was", "parties were") + " passed over for want of seats, while there were fewer seats than " +
		"before or afterwards. The operator chose the number of seats, and so could let those behind them go first. Who is passed over as too large does not get the place back."
}

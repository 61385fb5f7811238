package findings

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// maxRevoked is the maximum number of revoked tickets whose time is kept.
const maxRevoked = 1 << 16

// restored adds up the tickets that got their place back.
type restored struct {
	revoked map[fairness.Ticket]fairness.Time // when tickets were revoked that are not restored
	waiting uint64                            // called tickets after the latest entry
	atOnce  uint64                            // restored tickets that were called at once
}

// revoke notes when a ticket was revoked.
func (r *restored) revoke(e *fairness.Skip) {
	if !e.Reason.IsRevoked() || len(r.revoked) == maxRevoked {
		return
	}
	if r.revoked == nil {
		r.revoked = map[fairness.Ticket]fairness.Time{}
	}
	r.revoked[e.Ticket] = e.Time
}

// restore adds a restored ticket. The state is the one after the entry.
func (f *Finder) restore(s *fairness.State, e *fairness.Restore) {
	r, text := &f.restored, "A ticket of window "+windowOf(s, e.Ticket)+" got its place back"
	if since, ok := r.revoked[e.Ticket]; ok {
		text += ", " + span(fairness.Millis(e.Time-since)) + " after it was revoked"
		delete(r.revoked, e.Ticket)
	}
	if s.Waiting() > r.waiting {
		r.atOnce++
		text += ". Its turn had come, so it was called at once"
	}
	f.add(Restored, s, "", text+".", 0)
}

// words says how many tickets were restored.
func (r *restored) words(n uint64) string {
	return fmt.Sprintf("%s back a place that had been taken away, each once; %s called at once, within the pace, because the line had passed the place. No place changed, but the operator decided which tickets to restore, and when.",
		numeral.Count(n, "ticket got", "tickets got"), numeral.Count(r.atOnce, "was", "were"))
}

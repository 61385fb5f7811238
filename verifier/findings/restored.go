package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// maxRevoked is the maximum number of revoked tickets whose time and reason are kept.
const maxRevoked = 1 << 16

// restored adds up the tickets that got their place back.
type restored struct {
	revoked map[fairness.Ticket]revocation // of tickets that are not restored
	reasons map[fairness.Reason]uint64     // of the revocations of restored tickets
	waiting uint64                         // called tickets after the latest entry
	atOnce  uint64                         // restored tickets that were called at once
}

// revocation is when and why a ticket was revoked.
type revocation struct {
	at  fairness.Time
	why fairness.Reason
}

// revoke notes when and why a ticket was revoked.
func (r *restored) revoke(e *fairness.Skip) {
	if !e.Reason.IsRevoked() || len(r.revoked) == maxRevoked {
		return
	}
	if r.revoked == nil {
		r.revoked, r.reasons = map[fairness.Ticket]revocation{}, map[fairness.Reason]uint64{}
	}
	r.revoked[e.Ticket] = revocation{e.Time, e.Reason}
}

// restore adds a restored ticket. The state is the one after the entry.
func (f *Finder) restore(s *fairness.State, e *fairness.Restore) {
	r, text := &f.restored, "A ticket of window "+windowOf(s, e.Ticket)+" got its place back"
	if was, ok := r.revoked[e.Ticket]; ok {
		text += ", " + span(fairness.Millis(e.Time-was.at)) + " after it was revoked " + whyWords[was.why]
		delete(r.revoked, e.Ticket)
		r.reasons[was.why]++
	}
	if s.Waiting() > r.waiting {
		r.atOnce++
		text += ". Its turn had come, so it was called at once"
	}
	f.add(Restored, s, "", text+".", 0)
}

// whyWords say why a ticket was revoked, as the operator claims.
var whyWords = map[fairness.Reason]string{
	fairness.Revoked:          "without a reason",
	fairness.RevokedBot:       "as a bot's",
	fairness.RevokedDuplicate: "as one of several",
	fairness.RevokedFraud:     "for fraud",
	fairness.RevokedRequest:   "at the visitor's request",
}

// words says how many tickets were restored.
func (r *restored) words(n uint64) string {
	text := fmt.Sprintf("%s back a place that had been taken away, each once; %s called at once, within the pace, because the line had passed the place. No place changed, but the operator decided which tickets to restore, and when.",
		numeral.Count(n, "ticket got", "tickets got"), numeral.Count(r.atOnce, "was", "were"))
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(r.reasons)) {
		reasons = append(reasons, fmt.Sprintf("%s (%s)", whyWords[why], number(r.reasons[why])))
	}
	if reasons != nil {
		text += " They had been revoked " + strings.Join(reasons, ", ") + "."
	}
	return text
}

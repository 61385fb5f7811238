package room

import (
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness"
)

// TestWithdrawn names the latest tickets that the organizer took away, and no
// others that were passed over.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	var l live
	var want []string
	for i := range byte(keptWithdrawn + 5) {
		ticket := fairness.NewTicket("x", [fairness.SecretSize]byte{i})
		l.noteWithdrawn(&fairness.Skip{Ticket: ticket, Reason: fairness.RevokedBot})
		l.noteWithdrawn(&fairness.Skip{Ticket: fairness.NewTicket("y", [fairness.SecretSize]byte{i}), Reason: fairness.Left})
		want = append(want, ticket.String()[:8])
	}
	if want = want[5:]; !slices.Equal(l.withdrawn, want) {
		t.Errorf("withdrawn are %v, want %v", l.withdrawn, want)
	}
}

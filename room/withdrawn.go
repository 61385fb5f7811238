package room

import "github.com/proofline/proofline/fairness"

const (
	// keptWithdrawn is the number of latest withdrawn tickets that a room publishes.
	keptWithdrawn = 32
	// withdrawnDigits is the length of the published prefix of each: visitors rarely share it, and one who
	// does only asks once more often.
	withdrawnDigits = 8
)

// noteWithdrawn records a ticket that the organizer withdrew.
func (l *live) noteWithdrawn(e *fairness.Skip) {
	if !e.Reason.IsRevoked() {
		return
	}
	l.withdrawn = append(l.withdrawn, e.Ticket.String()[:withdrawnDigits])
	if len(l.withdrawn) > keptWithdrawn {
		l.withdrawn = l.withdrawn[1:]
	}
}

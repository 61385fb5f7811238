package room

import "github.com/proofline/proofline/fairness"

const (
	// keptWithdrawn is how many of the latest withdrawn tickets a room names.
	keptWithdrawn = 32
	// withdrawnDigits is how much of each it names: two visitors rarely share it,
	// and one who does only asks once more often.
	withdrawnDigits = 8
)

// noteWithdrawn remembers a ticket that the organizer took away.
func (l *live) noteWithdrawn(e *fairness.Skip) {
	if !e.Reason.IsRevoked() {
		return
	}
	l.withdrawn = append(l.withdrawn, e.Ticket.String()[:withdrawnDigits])
	if len(l.withdrawn) > keptWithdrawn {
		l.withdrawn = l.withdrawn[1:]
	}
}

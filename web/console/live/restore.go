package live

import (
	"errors"
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

func (h *controls) askRestore(x *shell.Request, r *room.Room) (shell.Question, error) {
	t, err := ticketIn(x)
	if err != nil {
		return shell.Question{}, err
	}
	st, err := r.Place(x.Request().Context(), t)
	if err != nil {
		return shell.Question{}, err
	}
	if why := whyNotRestored(r, st); why != "" {
		return shell.Question{}, invalid.Field("ticket", why)
	}
	return shell.Question{
		Title: "Give this place back?", Button: "Give the place back",
		Changes: []shell.Change{
			shell.Shown("Ticket", t.String()),
			shell.Changed("Place", standingWords(st), restoredWords(r, st)),
		},
		Notes: []string{"A place can be given back once. The visitor's page shows it within minutes.", recorded},
	}, nil
}

func (h *controls) restoreTicket(x *shell.Request, r *room.Room) error {
	t, err := ticketIn(x)
	if err != nil {
		return err
	}
	_, err = h.rooms.Restore(x.Request().Context(), x.Actor, r.Slug, t)
	return err
}

// isPassed reports whether the line has passed the place of a ticket, so that a restored one is called at once.
func isPassed(r *room.Room, st fairness.Standing) bool {
	return st.Position > 0 && uint64(st.Position) <= r.Snapshot().Lane(st.Lane).Counts.Called
}

// whyNotRestored says why a ticket cannot get its place back; empty: nothing is known that prevents it.
func whyNotRestored(r *room.Room, st fairness.Standing) string {
	switch {
	case st.Status != fairness.StatusSkipped:
		return "This visitor has the place, so there is nothing to give back."
	case !st.Reason.IsRevoked():
		return "This place was not revoked. Only a revoked place can be given back."
	case st.Restored:
		return "This place was given back before, which is possible only once."
	case r.Snapshot().Ended:
		return "The room has ended. A place can no longer be given back."
	case r.Snapshot().Paused && isPassed(r, st):
		return wouldCall + "but calls are paused. Resume the line first."
	}
	return ""
}

const wouldCall = "The line has passed this place, so the visitor would be called at once, "

// restoreWords describes why the rules refuse to give a place back now.
func restoreWords(err error) error {
	refused, isRefused := errors.AsType[*fairness.Violation](err)
	switch {
	case errors.Is(err, room.ErrDrawing):
		return invalid.Field("ticket", "The places of this visitor's group are being drawn. Try again after the draw.")
	case !isRefused:
		return err
	case refused.Rule == fairness.RuleSeats:
		return invalid.Field("ticket", wouldCall+
			"but fewer seats are left than the visitor joined for. Raise the number of seats first.")
	case refused.Rule == fairness.RuleOutflow:
		return invalid.Field("ticket", wouldCall+
			"but the pace has no call to spare at this moment. Try again, or raise the outflow for a moment.")
	}
	return invalid.Field("ticket", "This place cannot be given back now. Look up the ticket to see where it stands.")
}

// restoredWords describes the place that a revoked ticket gets back.
func restoredWords(r *room.Room, st fairness.Standing) string {
	switch {
	case st.Position == 0:
		return "not drawn yet"
	case isPassed(r, st):
		return fmt.Sprintf("place %s, called at once", format.Number(uint64(st.Position)))
	}
	return "place " + format.Number(uint64(st.Position))
}

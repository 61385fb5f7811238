package room

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/proofline/proofline/fairness"
)

// Leave gives the place of a ticket up, for whoever shows its secret. Leaving
// again is no error. Errors: [ErrSecret], [ErrTicketUnknown], [ErrSettled],
// [ErrBusy], [ErrStopping], [*StaleError], and that of ctx.
func (r *Room) Leave(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte) error {
	r.touch()
	if own := fairness.NewTicket(r.Origin, secret); subtle.ConstantTimeCompare(own[:], t[:]) != 1 {
		return ErrSecret
	}
	return r.skip(ctx, t, fairness.Left)
}

// Revoke takes the place of a ticket away, by the organizer's decision, for a
// reason that [fairness.Reason.IsRevoked]. Again is no error, whatever the reason
// was then. Errors: [ErrTicketUnknown], [ErrSettled], [ErrBusy], [ErrStopping],
// [*StaleError], [*InvalidError] for another reason, and that of ctx.
func (r *Room) Revoke(ctx context.Context, t fairness.Ticket, reason fairness.Reason) error {
	r.touch()
	if !reason.IsRevoked() {
		return &InvalidError{[]fairness.Problem{{Field: "reason", Detail: wantReason}}}
	}
	return r.skip(ctx, t, reason)
}

const wantReason = "must be revoked, revoked-bot, revoked-duplicate, revoked-fraud or revoked-request"

// skip passes a ticket over that can still be called or claimed.
func (r *Room) skip(ctx context.Context, t fairness.Ticket, reason fairness.Reason) error {
	st, err := r.Place(ctx, t)
	if err != nil {
		return err
	}
	if isPending(st) {
		err := r.act(ctx, func(_ *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
			return []fairness.Entry{&fairness.Skip{Time: now, Ticket: t, Reason: reason}}, nil
		})
		// A refusal is another request for the same ticket that was quicker, or
		// the end of the room: the standing says which.
		if _, refused := errors.AsType[*fairness.Violation](err); err != nil && !refused {
			return err
		}
		st, _ = r.Standing(t)
	}
	if st.Status == fairness.StatusSkipped && (st.Reason == reason || st.Reason.IsRevoked() && reason.IsRevoked()) {
		return nil
	}
	return ErrSettled
}

// isPending tells whether a ticket can still be called or claimed.
func isPending(st fairness.Standing) bool {
	return st.Status != fairness.StatusAdmitted && st.Status != fairness.StatusSkipped
}

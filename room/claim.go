package room

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/revocation"
	"github.com/proofline/proofline/room/session"
)

// Claim issues the pass of a called ticket to the caller that knows its secret. Claiming again returns the
// same pass until the session ends. Errors: [ErrSecret], [ErrTicketUnknown], [ErrNotCalled], [ErrClaimsFrozen],
// [ErrExpired], [ErrStopping], [*StaleError], and that of ctx.
func (r *Room) Claim(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte) (session.Pass, error) {
	r.touch()
	if !isSecretOf(t, secret, r.Origin) {
		return session.Pass{}, ErrSecret
	}
	st, err := r.Place(ctx, t)
	if err != nil {
		return session.Pass{}, err
	}
	if st.Status == fairness.StatusCalled && r.Snapshot().ClaimsFrozen {
		return session.Pass{}, ErrClaimsFrozen
	}
	// The pass of an imported room came from the server that admitted the visitor.
	if st.Status == fairness.StatusAdmitted && (r.isImported || !r.Sessions.IsIn(ctx, st)) {
		return session.Pass{}, ErrExpired
	}
	if st.Status == fairness.StatusCalled && st.Left > 0 {
		err := r.sequencer.Do(ctx, func(_ *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
			return []fairness.Entry{&fairness.Admit{Time: now, Ticket: t, Pass: fairness.NewPassID(r.Origin, t)}}, nil
		})
		// The rules refuse the entry after another claim of the same ticket, or when the time to claim
		// has just ended: the standing says which.
		if _, refused := errors.AsType[*fairness.Violation](err); err != nil && !refused {
			return session.Pass{}, err
		}
		st, _ = r.Standing(t)
	}
	switch called := st.Status == fairness.StatusCalled; {
	case st.Status == fairness.StatusAdmitted:
		pass, err := r.Sessions.Issue(st)
		if err == nil && !pass.Expires.After(r.clock.Now()) {
			return session.Pass{}, ErrExpired
		}
		return pass, err
	case st.Status == fairness.StatusSkipped, called && st.Left <= 0, r.Snapshot().Ended:
		return session.Pass{}, ErrExpired
	case called && r.Snapshot().ClaimsFrozen: // frozen since the check above
		return session.Pass{}, ErrClaimsFrozen
	case called: // expired by the database's clock, though not yet by this node's
		return session.Pass{}, ErrBusy
	}
	return session.Pass{}, ErrNotCalled
}

// isSecretOf reports whether a ticket of the origin belongs to a secret, in constant time.
func isSecretOf(t fairness.Ticket, secret [fairness.SecretSize]byte, origin string) bool {
	own := fairness.NewTicket(origin, secret)
	return subtle.ConstantTimeCompare(own[:], t[:]) == 1
}

// Leave gives up the place of a ticket for a caller that knows its secret. Leaving again is not an error. Errors:
// [ErrSecret], [ErrTicketUnknown], [ErrSettled], [ErrBusy], [ErrStopping], [*StaleError], and that of ctx.
func (r *Room) Leave(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte) error {
	r.touch()
	if !isSecretOf(t, secret, r.Origin) {
		return ErrSecret
	}
	return r.skip(ctx, t, fairness.Left)
}

// Extend gives a called ticket more time to claim, once, for a caller that knows its secret. Extending again gives no
// more, and is not an error. Errors: [ErrSecret], [ErrTicketUnknown], [ErrNotCalled], [ErrClaimsFrozen], [ErrSettled],
// [ErrExpired], [ErrBusy], [ErrStopping], [*StaleError], that of ctx, and a [*fairness.Violation] in a room without
// extensions.
func (r *Room) Extend(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte) error {
	r.touch()
	if !isSecretOf(t, secret, r.Origin) {
		return ErrSecret
	}
	st, err := r.Place(ctx, t)
	switch {
	case err != nil:
		return err
	case !isPending(st):
		return ErrSettled
	case st.Status != fairness.StatusCalled:
		return ErrNotCalled
	case st.Extended:
		return nil
	case st.Left <= 0:
		return ErrExpired
	case r.Snapshot().ClaimsFrozen:
		return ErrClaimsFrozen
	}
	err = r.sequencer.Do(ctx, func(_ *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		return []fairness.Entry{&fairness.Extend{Time: now, Ticket: t}}, nil
	})
	if now, _ := r.Standing(t); now.Extended { // perhaps by a quicker request, which makes the rules refuse this one
		return nil
	}
	return err
}

// Revoke withdraws a ticket by the organizer's decision; the reason must satisfy [fairness.Reason.IsRevoked].
// Revoking again is not an error, even for another reason. Errors: [ErrTicketUnknown], [ErrDrawing],
// [ErrSettled], [ErrBusy], [ErrStopping], [*StaleError], [*invalid.Error] for another reason, and that of ctx.
func (r *Room) Revoke(ctx context.Context, t fairness.Ticket, reason fairness.Reason) error {
	r.touch()
	if !reason.IsRevoked() {
		return invalid.Field("reason", revocation.WantReason)
	}
	return r.skip(ctx, t, reason)
}

// skip skips a ticket that can still be called or claimed.
func (r *Room) skip(ctx context.Context, t fairness.Ticket, reason fairness.Reason) error {
	st, err := r.Place(ctx, t)
	if err != nil {
		return err
	}
	if isPending(st) {
		err := r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
			if reason.IsRevoked() && p.AwaitsDraw(t) {
				return nil, ErrDrawing
			}
			return []fairness.Entry{&fairness.Skip{Time: now, Ticket: t, Reason: reason}}, nil
		})
		// The rules refuse the entry after a quicker request for the same ticket, or after the end of the room: the
		// standing says which.
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

// Restore gives a revoked ticket its place back, once; a place that the line has passed is called at once. Errors:
// [ErrTicketUnknown], [ErrDrawing], [ErrBusy], [ErrStopping], [*StaleError], that of ctx, and a [*fairness.Violation]
// for a ticket that is not revoked or was restored before, and for a passed place that cannot be called now.
func (r *Room) Restore(ctx context.Context, t fairness.Ticket) error {
	r.touch()
	if _, err := r.Place(ctx, t); err != nil {
		return err
	}
	return r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		if p.AwaitsDraw(t) {
			return nil, ErrDrawing
		}
		return []fairness.Entry{&fairness.Restore{Time: now, Ticket: t}}, nil
	})
}

// isPending reports whether a ticket can still be called or claimed.
func isPending(st fairness.Standing) bool {
	return st.Status != fairness.StatusAdmitted && st.Status != fairness.StatusSkipped
}

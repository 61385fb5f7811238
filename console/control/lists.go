package control

import (
	"context"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/revocation"
)

// Lists revokes and restores many tickets with one request.
type Lists struct{ rooms *Rooms }

// Check counts the tickets of a selection, and changes nothing. Errors: those of [Rooms.Room] and
// [revocation.Lists.Check].
func (l *Lists) Check(ctx context.Context, actor account.Actor, slug string, s revocation.Selection,
	since uint64) (revocation.Tally, error) {
	r, err := l.rooms.room(ctx, actor, account.Operate, slug)
	if err != nil {
		return revocation.Tally{}, err
	}
	return r.Lists.Check(ctx, s, since)
}

// Revoke revokes the tickets of a selection, all or none. Errors: those of [Rooms.Room] and [revocation.Lists.Revoke].
func (l *Lists) Revoke(ctx context.Context, actor account.Actor, slug string, s revocation.Selection,
	reason fairness.Reason) (done revocation.Revoked, err error) {
	detail := describe(s)
	detail["reason"] = reason
	_, err = l.rooms.control(ctx, actor, account.Operate, "room.revoke-list", slug, detail, func(r *room.Room) error {
		done, err = r.Lists.Revoke(ctx, s, reason)
		return err
	})
	return done, err
}

// Restore gives revoked tickets of a selection their places back. Errors: those of [Rooms.Room] and
// [revocation.Lists.Restore].
func (l *Lists) Restore(ctx context.Context, actor account.Actor, slug string, s revocation.Selection,
	since uint64) (done revocation.Restored, err error) {
	detail := describe(s)
	_, err = l.rooms.control(ctx, actor, account.Operate, "room.restore-list", slug, detail, func(r *room.Room) error {
		done, err = r.Lists.Restore(ctx, s, since)
		return err
	})
	return done, err
}

// describe returns the activity-log detail of a selection. The transcript has the tickets.
func describe(s revocation.Selection) map[string]any {
	switch {
	case s.Method == "":
		return map[string]any{"tickets": len(s.Tickets)}
	case s.Nullifiers == nil:
		return map[string]any{"method": s.Method}
	}
	return map[string]any{"method": s.Method, "nullifiers": len(s.Nullifiers)}
}

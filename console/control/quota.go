package control

import (
	"context"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/quota"
)

// Quotas shows and sets what organizations may use.
type Quotas struct{ rooms *Rooms }

// Usage returns the quota of the actor's organization, and its use.
func (q *Quotas) Usage(ctx context.Context, actor account.Actor) (quota.Usage, error) {
	if !actor.May(account.Read) {
		return quota.Usage{}, account.ErrForbidden
	}
	return q.share(actor).Usage(ctx)
}

// Set sets the quota of the organization that the server's administrator acts in. Nobody else may.
func (q *Quotas) Set(ctx context.Context, actor account.Actor, most pgroom.Quota) (quota.Usage, error) {
	if actor.Kind != account.Server {
		return quota.Usage{}, account.ErrForbidden
	}
	detail := map[string]any{
		"rooms": most.Rooms, "waiting": most.Waiting, "streams": most.Streams, "entries": most.Entries,
	}
	err := q.rooms.Activity.Do(ctx, actor, "organization.quota", "", detail, func() error { return q.share(actor).Set(ctx, most) })
	if err != nil {
		return quota.Usage{}, err
	}
	return q.Usage(ctx, actor)
}

func (q *Quotas) share(actor account.Actor) *quota.Share { return q.rooms.Rooms.Quotas.Of(actor.Org) }

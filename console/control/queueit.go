package control

import (
	"context"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/queueit"
)

// SetQueueIt makes a room compatible with Queue-it connectors; see [queueit.Connection.Set]. The secret
// key is not recorded in the activity log. Errors: [account.ErrForbidden], [room.ErrNotFound],
// [*invalid.Error].
func (rs *Rooms) SetQueueIt(ctx context.Context, actor account.Actor, slug string, q queueit.Config,
	secretKey string) (*room.Room, error) {
	detail := map[string]any{"customer_id": q.CustomerID, "extend": q.Extend, "with_pass": q.WithPass}
	if secretKey != "" {
		detail["secret_key"] = "new"
	}
	return rs.control(ctx, actor, account.Operate, "room.queue-it", slug, detail, func(r *room.Room) error {
		return r.QueueIt.Set(ctx, q, secretKey)
	})
}

// ClearQueueIt ends a room's compatibility with Queue-it connectors.
func (rs *Rooms) ClearQueueIt(ctx context.Context, actor account.Actor, slug string) error {
	_, err := rs.control(ctx, actor, account.Operate, "room.queue-it", slug, map[string]any{"ended": true},
		func(r *room.Room) error { return r.QueueIt.Clear(ctx) })
	return err
}

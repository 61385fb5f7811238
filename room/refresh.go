package room

import (
	"context"

	"github.com/proofline/proofline/fairness"
)

// Refresh reads other nodes' changes of a room, so that its configuration is at least as recent as the call.
func (rs *Rooms) Refresh(ctx context.Context, r *Room) error {
	before := r.title.Load()
	record, err := rs.Options.Rooms.Get(ctx, r.Slug)
	if err != nil {
		return err
	}
	r.takeTitle(before, record.Title)
	if err := r.readSettings(ctx, record.SettingsVersion); err != nil {
		return err
	}
	return r.act(ctx, func(*fairness.State, fairness.Time) ([]fairness.Entry, error) { return nil, nil })
}

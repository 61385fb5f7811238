package room

import (
	"context"

	"github.com/proofline/proofline/fairness"
)

// Hold holds everybody: nobody is called, as in a pause, and nobody who was
// called is let in. In a pause the time to claim a place stands still, so
// nobody loses one by it. Other nodes know within half a second. Holding again
// is no error.
func (r *Room) Hold(ctx context.Context) error {
	if err := r.Pause(ctx); err != nil {
		return err
	}
	return r.setHeld(ctx, true)
}

// Resume lets calls and claims go on.
func (r *Room) Resume(ctx context.Context) error {
	if err := r.setHeld(ctx, false); err != nil {
		return err
	}
	return r.change(ctx, fairness.ChangeResume)
}

// setHeld stores it even when this node knows it to be so: another may have
// changed it a moment ago.
func (r *Room) setHeld(ctx context.Context, held bool) error {
	if err := r.flow.store.SetHeld(ctx, r.ID, held); err != nil {
		return err
	}
	r.setFlag(&r.flow.held, held, r.flow.change)
	return nil
}

// IsHeld tells whether called visitors wait outside. That is only in a pause.
func (r *Room) IsHeld() bool { return r.flow.held.Load() && r.Snapshot().Paused }

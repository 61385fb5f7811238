package room

import (
	"context"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// Pause stops calls; visitors can still join and claim. If claims are frozen, it unfreezes them. Pausing again is
// not an error.
func (r *Room) Pause(ctx context.Context) error { return r.pause(ctx, false) }

// FreezeClaims stops calls and freezes claims: called visitors cannot enter, and their time to claim stands still.
// Freezing again is not an error.
func (r *Room) FreezeClaims(ctx context.Context) error { return r.pause(ctx, true) }

func (r *Room) pause(ctx context.Context, claims bool) error {
	return r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		if p.InForce().Paused && p.InForce().ClaimsPaused == claims {
			return nil, nil
		}
		return []fairness.Entry{&fairness.Amend{Time: now, Change: fairness.ChangePause, Claims: claims}}, nil
	})
}

// Resume continues calls and claims. Resuming again is not an error.
func (r *Room) Resume(ctx context.Context) error {
	return r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		if !p.InForce().Paused {
			return nil, nil
		}
		return []fairness.Entry{&fairness.Amend{Time: now, Change: fairness.ChangeResume}}, nil
	})
}

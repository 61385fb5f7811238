package room

import (
	"context"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// MaxPull is the largest number of visitors in one pull.
const MaxPull = 10_000

// Pulled is the result of a pull.
type Pulled struct {
	Called  uint64            // visitors called by this pull
	UpTo    fairness.Position // the new serving pointer; with several lanes, the sum of theirs
	Waiting uint64            // called visitors whose claim is still open
	Active  uint64            // Waiting, plus live sessions
}

// SetPull selects who calls visitors from now on: a backend that pulls, or the clock at the pace of the
// outflow. Other nodes follow within half a second.
func (r *Room) SetPull(ctx context.Context, pull bool) error {
	if err := r.pull.SetPull(ctx, r.ID, pull); err != nil {
		return err
	}
	if r.controls.Pull.Set(pull) {
		r.sequencer.Wake() // to take a new snapshot
	}
	return nil
}

// IsPull reports whether visitors are called only when a backend pulls them.
func (r *Room) IsPull() bool { return r.controls.Pull.IsOn() }

// Pull calls n visitors, from 1 to [MaxPull], or as many as drawn places, max_active and the credit of the
// published outflow allow: the rules apply to pulls, too. Before the start, during a pause and after the end it
// calls none. Errors: [ErrNotPull], [ErrBusy], [ErrStopping], and that of ctx.
func (r *Room) Pull(ctx context.Context, n uint64) (Pulled, error) {
	r.touch()
	if !r.IsPull() {
		return Pulled{}, ErrNotPull
	}
	var pulled Pulled
	err := r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		call, people := p.NextPull(now, min(n, MaxPull))
		counts := p.Counts()
		pulled = Pulled{Called: people, UpTo: fairness.Position(counts.Called),
			Waiting: counts.Waiting + people, Active: p.Active(now) + people}
		if call == nil {
			return nil, nil
		}
		pulled.UpTo = call.Places()
		return []fairness.Entry{call}, nil
	})
	if err != nil {
		return Pulled{}, err
	}
	return pulled, nil
}

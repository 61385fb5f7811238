package room

import (
	"context"
	"sort"

	"github.com/proofline/proofline/fairness"
)

// MaxPull is the largest number of visitors in one pull.
const MaxPull = 10_000

// Pulled is the result of a pull.
type Pulled struct {
	Called  uint64            // visitors called by this pull
	UpTo    fairness.Position // the new serving pointer
	Waiting uint64            // called visitors whose claim is still open
	Active  uint64            // Waiting, plus live sessions
}

// SetPull selects who calls visitors from now on: a backend that pulls, or the clock at the pace of the
// outflow. Other nodes follow within half a second.
func (r *Room) SetPull(ctx context.Context, pull bool) error {
	if err := r.flow.store.SetPull(ctx, r.ID, pull); err != nil {
		return err
	}
	r.takePull(pull, r.flow.change)
	return nil
}

// IsPull reports whether visitors are called only when a backend pulls them.
func (r *Room) IsPull() bool { return r.flow.isPull() }

// Pull calls n visitors, from 1 to [MaxPull], or as many as drawn places, max_active and the credit of the
// published outflow allow: the rules apply to pulls, too. Before the start, in a pause and after the end it
// calls nobody. Errors: [ErrNotPull], [ErrBusy], [ErrStopping], and that of ctx.
func (r *Room) Pull(ctx context.Context, n uint64) (Pulled, error) {
	r.touch()
	if !r.IsPull() {
		return Pulled{}, ErrNotPull
	}
	var p Pulled
	err := r.act(ctx, func(_ *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		l := r.live // by the sequencer, under its lock
		upTo, people, ok := l.pull(now, min(n, MaxPull))
		counts := l.Counts()
		p = Pulled{Called: people, UpTo: max(upTo, fairness.Position(counts.Called)),
			Waiting: counts.Waiting + people, Active: l.active(now) + people}
		if !ok {
			return nil, nil
		}
		return []fairness.Entry{&fairness.Call{Time: now, Lane: fairness.General, UpTo: upTo}}, nil
	})
	if err != nil {
		return Pulled{}, err
	}
	return p, nil
}

// pull returns the serving pointer after calling at most n visitors, and their number: places that were given
// up are skipped.
func (l *live) pull(now fairness.Time, n uint64) (upTo fairness.Position, people uint64, ok bool) {
	n = min(n, l.capacity(now))
	if n == 0 {
		return 0, 0, false
	}
	if upTo, ok = l.CallLimit(now, n); !ok {
		return 0, 0, false
	}
	least := sort.Search(int(n), func(k int) bool { //nolint:gosec // at most MaxPull
		to, _ := l.CallLimit(now, uint64(k)) //nolint:gosec // not negative
		return to == upTo
	})
	return upTo, uint64(least), true //nolint:gosec // not negative
}

package room

import (
	"context"
	"sort"

	"github.com/proofline/proofline/fairness"
)

// MaxPull is how many people may be pulled at once.
const MaxPull = 10_000

// Pulled is what came of a pull.
type Pulled struct {
	Called  uint64            // people, by this pull
	UpTo    fairness.Position // the serving pointer now
	Waiting uint64            // people called, not admitted yet and expected
	Active  uint64            // these, and those whose session goes on
}

// SetPull says who calls from now on: a backend that pulls, or again the clock
// at the pace of the outflow. Other nodes know within half a second.
func (r *Room) SetPull(ctx context.Context, pull bool) error {
	if err := r.flow.store.SetPull(ctx, r.ID, pull); err != nil {
		return err
	}
	r.takePull(pull, r.flow.change)
	return nil
}

// IsPull tells whether people are called only when a backend pulls them.
func (r *Room) IsPull() bool { return r.flow.isPull() }

// Pull calls n people, from 1 to [MaxPull], or as many as there are places
// drawn, as max_active leaves, and as the published outflow has credit for:
// pulled or not, a call keeps to the rules. Before the start, in a pause and
// after the end that is nobody. Errors: [ErrNotPull], [ErrBusy],
// [ErrStopping], and that of ctx.
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
		p = Pulled{Called: people, UpTo: max(upTo, fairness.Position(counts.Called)), Waiting: counts.Waiting + people, Active: l.active(now) + people}
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

// pull returns how far the serving pointer goes for at most n people, and how
// many that is: places whose tickets are given up are passed over.
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

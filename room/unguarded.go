package room

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Bounds of what is said about times in which a site was unguarded.
const (
	unguardedMost    = 60 // entries in an hour
	unguardedJoined  = 10_000
	mostRequests     = 1<<53 - 1        // in an entry, a number that every reader can hold
	unguardedTimeout = 20 * time.Second // well before somebody else takes the reports on
)

// takeUnguarded stores unguarded times and has them recorded, and returns those
// that are. After the end of a room nothing can be: then they are kept, and
// count as recorded.
func (r *Room) takeUnguarded(ctx context.Context, list []pgroom.Unguarded) ([]uuid.UUID, error) {
	recorded, err := r.flow.store.AddUnguarded(ctx, r.ID, list)
	if err == nil && len(recorded) < len(list) {
		if err = r.recordUnguarded(ctx); err == nil {
			recorded, err = r.flow.store.AddUnguarded(ctx, r.ID, list)
		}
	}
	if err != nil {
		return nil, err
	}
	var ids []uuid.UUID
	for _, u := range list {
		if recorded[u.ID] {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// recordUnguarded puts reports that wait into the transcript, as many as an hour
// may have: each as one entry, and what is too much for the hour together as the
// last one. Several nodes may do so at once: who has claimed reports has them.
func (r *Room) recordUnguarded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, unguardedTimeout)
	defer cancel()
	for {
		most := 1
		switch left := r.unguardedLeft(); {
		case r.Snapshot().Ended || left == 1:
			most = unguardedJoined
		case left <= 0:
			return nil
		}
		claim, err := r.flow.store.ClaimUnguarded(ctx, r.ID, most)
		if err != nil || len(claim.Reports) == 0 {
			return err
		}
		if err := r.recordClaim(ctx, claim); err != nil {
			return err
		}
	}
}

// errUnguardedMost is returned when an hour has as many entries as it may.
var errUnguardedMost = errors.New("the hour has as many entries about unguarded times as it may")

// recordClaim puts one claim into the transcript. What was done before, as far
// as the transcript says, is not done again.
func (r *Room) recordClaim(ctx context.Context, c pgroom.Claim) error {
	e, again := joined(c.Reports), c.IsAgain
	err := r.act(ctx, func(s *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		l := r.live // by the sequencer, under its lock
		switch {
		case s.Ended(), again && l.passed.has(e):
			return nil, nil
		case l.passed.lately(now) >= unguardedMost:
			return nil, errUnguardedMost
		}
		again = true // the batch may be stored though it seems to have failed
		e.Time = now
		return []fairness.Entry{&e}, nil
	})
	switch {
	case err == nil:
		return r.flow.store.MarkRecorded(ctx, r.ID, c.ID)
	case errors.Is(err, errUnguardedMost):
		return r.flow.store.Unclaim(ctx, r.ID, c.ID)
	}
	return err // somebody else takes them on, if it was not done
}

// joined returns the entry of reports: from the first moment until the last.
func joined(list []pgroom.Unguarded) fairness.Amend {
	e := fairness.Amend{Change: fairness.ChangeUnguarded}
	for i, u := range list {
		from, until := fairness.Time(u.From), fairness.Time(u.Until)
		if i == 0 || from < e.From {
			e.From = from
		}
		e.Until = max(e.Until, until)
		e.Requests = min(e.Requests+uint64(u.Requests), mostRequests) //nolint:gosec // not negative
	}
	return e
}

// has tells whether the latest entries have one of the same content.
func (p *passed) has(e fairness.Amend) bool {
	want := Unguarded{From: timeOf(e.From), Until: timeOf(e.Until), Requests: e.Requests}
	return slices.ContainsFunc(p.unguarded, func(u Unguarded) bool {
		return u.From.Equal(want.From) && u.Until.Equal(want.Until) && u.Requests == want.Requests
	})
}

// lately returns how many entries the last hour has.
func (p *passed) lately(now fairness.Time) (n int) {
	for _, u := range p.unguarded {
		if fromTime(u.At)+fairness.Time(time.Hour.Milliseconds()) > now {
			n++
		}
	}
	return n
}

// unguardedLeft returns how many entries the hour may still have.
func (r *Room) unguardedLeft() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return unguardedMost - r.live.passed.lately(max(fromTime(r.clock.Now()), r.live.Now()))
}

// How often what waits is looked at, what is over is deleted, and how long that
// was kept: sessions for reports that come again.
const (
	tendEvery       = time.Minute
	forgetFree      = 10 * time.Minute
	forgetUnguarded = 7 * 24 * time.Hour
)

// tend records unguarded times that wait, and deletes what is over.
func (rs *Rooms) tend(ctx context.Context) {
	rooms, _ := rs.watched()
	ids := make([]uuid.UUID, 0, len(rooms))
	for id := range rooms {
		ids = append(ids, id)
	}
	waiting, err := rs.Options.Rooms.WaitingUnguarded(ctx, ids)
	for _, id := range waiting {
		err = errors.Join(err, rooms[id].recordUnguarded(ctx))
	}
	err = errors.Join(err, rs.Options.Rooms.ForgetFree(ctx, forgetFree, forgetUnguarded))
	if err != nil && ctx.Err() == nil {
		rs.Log.Warn("what connectors told is not tended to", "err", err)
	}
}

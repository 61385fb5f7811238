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

// Limits of fail-open reports.
const (
	failOpenMost    = 60 // entries an hour
	failOpenJoined  = 10_000
	mostRequests    = 1<<53 - 1        // in one entry; the largest integer that every JSON reader can represent
	failOpenTimeout = 20 * time.Second // shorter than the time after which another node takes the reports over
)

// takeFailOpen stores fail-open intervals, has them recorded in the transcript, and returns the ids of those
// recorded. A room that has ended only stores them, and counts them as recorded.
func (r *Room) takeFailOpen(ctx context.Context, list []pgroom.FailOpen) ([]uuid.UUID, error) {
	recorded, err := r.flow.store.AddFailOpen(ctx, r.ID, list)
	if err == nil && len(recorded) < len(list) {
		if err = r.recordFailOpen(ctx); err == nil {
			recorded, err = r.flow.store.AddFailOpen(ctx, r.ID, list)
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

// recordFailOpen records stored reports in the transcript, within the hour's limit: each as one entry, and
// the surplus of the hour joined in the last one. Several nodes may do so at once: each claims its reports
// first.
func (r *Room) recordFailOpen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, failOpenTimeout)
	defer cancel()
	for {
		most := 1
		switch left := r.failOpenLeft(); {
		case r.Snapshot().Ended || left == 1:
			most = failOpenJoined
		case left <= 0:
			return nil
		}
		claim, err := r.flow.store.ClaimFailOpen(ctx, r.ID, most)
		if err != nil || len(claim.Reports) == 0 {
			return err
		}
		if err := r.recordClaim(ctx, claim); err != nil {
			return err
		}
	}
}

// errFailOpenMost is returned when the hour's limit of entries is reached.
var errFailOpenMost = errors.New("limit of fail-open entries in an hour reached")

// recordClaim records one claim in the transcript, unless the transcript already has it.
func (r *Room) recordClaim(ctx context.Context, c pgroom.Claim) error {
	e, again := joined(c.Reports), c.IsAgain
	err := r.act(ctx, func(s *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		l := r.live // by the sequencer, under its lock
		switch {
		case s.Ended(), again && l.passed.has(e):
			return nil, nil
		case l.passed.lately(now) >= failOpenMost:
			return nil, errFailOpenMost
		}
		again = true // the append may be stored although it seems to have failed
		e.Time = now
		return []fairness.Entry{&e}, nil
	})
	switch {
	case err == nil:
		return r.flow.store.MarkRecorded(ctx, r.ID, c.ID)
	case errors.Is(err, errFailOpenMost):
		return r.flow.store.Unclaim(ctx, r.ID, c.ID)
	}
	return err // if it was not recorded, another node takes the claim over
}

// joined returns one entry for several reports, from the earliest start to the latest end.
func joined(list []pgroom.FailOpen) fairness.Amend {
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

// has reports whether a recent entry has the same content.
func (p *passed) has(e fairness.Amend) bool {
	want := FailOpen{From: timeOf(e.From), Until: timeOf(e.Until), Requests: e.Requests}
	return slices.ContainsFunc(p.failOpen, func(u FailOpen) bool {
		return u.From.Equal(want.From) && u.Until.Equal(want.Until) && u.Requests == want.Requests
	})
}

// lately returns the number of entries in the last hour.
func (p *passed) lately(now fairness.Time) (n int) {
	for _, u := range p.failOpen {
		if fromTime(u.At)+fairness.Time(time.Hour.Milliseconds()) > now {
			n++
		}
	}
	return n
}

// failOpenLeft returns how many more entries the hour may have.
func (r *Room) failOpenLeft() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return failOpenMost - r.live.passed.lately(max(fromTime(r.clock.Now()), r.live.Now()))
}

// How often waiting reports are recorded and expired rows deleted, and how long rows are kept: sessions in
// case reports are repeated.
const (
	tendEvery      = time.Minute
	forgetFree     = 10 * time.Minute
	forgetFailOpen = 7 * 24 * time.Hour
)

// tend records waiting fail-open reports, and deletes expired rows.
func (rs *Rooms) tend(ctx context.Context) {
	rooms, _ := rs.watched()
	ids := make([]uuid.UUID, 0, len(rooms))
	for id := range rooms {
		ids = append(ids, id)
	}
	waiting, err := rs.Options.Rooms.WaitingFailOpen(ctx, ids)
	for _, id := range waiting {
		err = errors.Join(err, rooms[id].recordFailOpen(ctx))
	}
	err = errors.Join(err, rs.Options.Rooms.ForgetFree(ctx, forgetFree, forgetFailOpen))
	if err != nil && ctx.Err() == nil {
		rs.Log.Warn("cannot process connector reports", "err", err)
	}
}

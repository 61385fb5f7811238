package safetynet

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
)

// Limits of fail-open reports.
const (
	maxJoined     = 10_000           // reports in one entry
	maxRequests   = 1<<53 - 1        // in one entry; the largest integer that every JSON reader can represent
	recordTimeout = 20 * time.Second // shorter than the time after which another node takes the reports over
)

// takeFailOpen stores fail-open intervals, records them in the transcript, and returns the ids of those recorded.
// A room that has ended only stores them, and counts them as recorded.
func (n *Net) takeFailOpen(ctx context.Context, list []pgroom.FailOpen) ([]uuid.UUID, error) {
	recorded, err := n.o.Store.AddFailOpen(ctx, n.o.Room, list)
	if err == nil && len(recorded) < len(list) {
		if err = n.RecordFailOpen(ctx); err == nil {
			recorded, err = n.o.Store.AddFailOpen(ctx, n.o.Room, list)
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

// RecordFailOpen records stored reports in the transcript, within the hour's limit: each as one entry, and those
// beyond the limit merged into the last one. Several nodes may do so at once: each claims its reports first.
func (n *Net) RecordFailOpen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	for {
		limit := 1
		switch left := n.failOpenLeft(); {
		case n.o.Status().IsEnded || left == 1:
			limit = maxJoined
		case left <= 0:
			return nil
		}
		claim, err := n.o.Store.ClaimFailOpen(ctx, n.o.Room, limit)
		if err != nil || len(claim.Reports) == 0 {
			return err
		}
		if err := n.recordClaim(ctx, claim); err != nil {
			return err
		}
	}
}

// errMaxFailOpen is returned when the hour's limit of entries is reached.
var errMaxFailOpen = errors.New("limit of fail-open entries in an hour reached")

// recordClaim records one claim in the transcript, unless the transcript already has it.
func (n *Net) recordClaim(ctx context.Context, c pgroom.Claim) error {
	e, again := joined(c.Reports), c.IsAgain
	err := n.o.Transcript.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		switch {
		case p.Ended(), again && p.HasFailOpen(e):
			return nil, nil
		case p.FailOpenLeft(now) <= 0:
			return nil, errMaxFailOpen
		}
		again = true // the append may be stored although it seems to have failed
		e.Time = now
		return []fairness.Entry{&e}, nil
	})
	switch {
	case err == nil:
		return n.o.Store.MarkRecorded(ctx, n.o.Room, c.ID)
	case errors.Is(err, errMaxFailOpen):
		return n.o.Store.Unclaim(ctx, n.o.Room, c.ID)
	}
	return err // if it was not recorded, another node takes the claim over
}

// joined merges several reports into one entry, from the earliest start to the latest end.
func joined(list []pgroom.FailOpen) fairness.Tell {
	e := fairness.Tell{Subject: fairness.TellUnguarded}
	for i, u := range list {
		from, until := fairness.Time(u.From), fairness.Time(u.Until)
		if i == 0 || from < e.From {
			e.From = from
		}
		e.Until = max(e.Until, until)
		e.Count = min(e.Count+uint64(u.Requests), maxRequests) //nolint:gosec // not negative
	}
	return e
}

// failOpenLeft returns how many more entries may be recorded this hour.
func (n *Net) failOpenLeft() (left int) {
	now := millis.Of(n.o.Clock.Now())
	n.o.Transcript.View().Read(func(p *projection.Projection, _ uint64) { left = p.FailOpenLeft(max(now, p.Now())) })
	return left
}

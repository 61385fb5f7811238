package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
)

// MaxChanges is the maximum number of sessions in one request.
const MaxChanges = 500

// Outcome is the result of the change of one session.
type Outcome string

// Outcomes of changes.
const (
	OutcomeOK         Outcome = "ok"
	OutcomeOver       Outcome = "over"       // the session expired or was released
	OutcomeUnredeemed Outcome = "unredeemed" // a touch of a pass that was never redeemed
	OutcomeInvalid    Outcome = "invalid"    // not a pass of the room
)

// Change touches some sessions and releases others, given by their passes, at most [MaxChanges] in
// total, as [Sessions.Touch] and [Sessions.Release] do for one. The outcomes are in the order of the passes. Errors:
// [*invalid.Error] for too many, and those of the database and the sequencer.
func (s *Sessions) Change(ctx context.Context, touch, release []string) (touched, released []Outcome, err error) {
	if n := len(touch) + len(release); n > MaxChanges {
		return nil, nil, invalid.Field("", fmt.Sprintf("has %d passes: send at most %d at once", n,
			MaxChanges))
	}
	found, err := s.admissions(ctx, append(touch[:len(touch):len(touch)], release...))
	if err != nil {
		return nil, nil, err
	}
	toTouch, toRelease := found[:len(touch)], found[len(touch):]
	done, err := s.changeAll(ctx, known(toTouch), known(toRelease))
	if err != nil {
		return nil, nil, err
	}
	return outcomes(toTouch, done.Touched, done.Unredeemed), outcomes(toRelease, done.Released, nil), nil
}

// changeAll changes sessions in the database, one batch per room at a time: the batches of a room would wait
// for each other in the database, each using up a connection that others need.
func (s *Sessions) changeAll(ctx context.Context, touch, release []pgroom.Admission) (pgroom.Changed, error) {
	if len(touch)+len(release) == 0 {
		return pgroom.Changed{}, nil
	}
	if s.clock.Step() != 0 {
		return pgroom.Changed{}, clock.ErrStep
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	length := s.length().Milliseconds()
	more := MaxLengths*length - int64(projection.PassLife(s.policy))
	return s.store.ChangeAll(ctx, s.room.ID, pgroom.Changes{Touch: touch, Release: release, Length: length, More: more})
}

// known returns the admissions that were found.
func known(found []*pgroom.Admission) (list []pgroom.Admission) {
	for _, a := range found {
		if a != nil {
			list = append(list, *a)
		}
	}
	return list
}

func outcomes(found []*pgroom.Admission, done, unredeemed map[uuid.UUID]bool) []Outcome {
	list := make([]Outcome, len(found))
	for i, a := range found {
		switch {
		case a == nil:
			list[i] = OutcomeInvalid
		case done[a.Pass]:
			list[i] = OutcomeOK
		case unredeemed[a.Pass]:
			list[i] = OutcomeUnredeemed
		default:
			list[i] = OutcomeOver
		}
	}
	return list
}

// admissions returns the admissions of passes; nil for an invalid pass. It reads the log at most once, for
// visitors that another node has just admitted.
func (s *Sessions) admissions(ctx context.Context, tokens []string) ([]*pgroom.Admission, error) {
	passes, found := make([]*signedPass, len(tokens)), make([]*pgroom.Admission, len(tokens))
	isBehind, verified := false, make(map[string]*signedPass, len(tokens))
	for i, token := range tokens {
		if pass, ok := verified[token]; ok { // a repeated pass is verified once
			passes[i] = pass
			continue
		}
		verified[token] = nil
		pass, err := s.read(ctx, token, s.maxLife())
		if errors.Is(err, ErrPass) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st, ok := s.transcript.Standing(pass.ticket)
		isBehind = isBehind || !ok || st.Status != fairness.StatusAdmitted
		passes[i], verified[token] = &pass, &pass
	}
	if isBehind {
		if err := s.transcript.ReadLatest(ctx); err != nil {
			return nil, err
		}
	}
	for i, pass := range passes {
		if pass == nil {
			continue
		}
		st, ok := s.transcript.Standing(pass.ticket)
		if ok && st.Status == fairness.StatusAdmitted && s.compare(*pass, st) == nil {
			a := s.record(st)
			found[i] = &a
		}
	}
	return found, nil
}

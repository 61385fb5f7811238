package room

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// MaxChanges is how many sessions may be changed at once.
const MaxChanges = 500

// Outcome is what came of the change of one session.
type Outcome string

// The outcomes of changes.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeOver    Outcome = "over"    // the session ran out or was released
	OutcomeInvalid Outcome = "invalid" // not a pass of the room
)

// ChangeSessions touches sessions and then releases others, given by their
// passes, together at most [MaxChanges]: what [Room.Touch] and [Room.Release] do
// to one. The outcomes are in the order of the passes. Errors: [*InvalidError]
// for too many, [ErrBusy], [ErrStopping], and those of the database.
func (r *Room) ChangeSessions(ctx context.Context, touch, release []string) (touched, released []Outcome, err error) {
	r.touch()
	if n := len(touch) + len(release); n > MaxChanges {
		return nil, nil, &InvalidError{[]fairness.Problem{{Detail: fmt.Sprintf("has %d passes, and at most %d are taken at once", n, MaxChanges)}}}
	}
	found, err := r.admissions(ctx, append(touch[:len(touch):len(touch)], release...))
	if err != nil {
		return nil, nil, err
	}
	toTouch, toRelease := found[:len(touch)], found[len(touch):]
	on, off, err := r.changeAll(ctx, known(toTouch), known(toRelease))
	if err != nil {
		return nil, nil, err
	}
	return outcomes(toTouch, on), outcomes(toRelease, off), nil
}

// changeAll has the database change sessions, for one caller after the other:
// anybody may send batches, and those of a room wait for each other there, each
// with a connection that others need.
func (r *Room) changeAll(ctx context.Context, touch, release []pgroom.Admission) (touched, released map[uuid.UUID]bool, err error) {
	if len(touch)+len(release) == 0 {
		return nil, nil, nil
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	length := r.session().Milliseconds()
	return r.flow.store.ChangeAll(ctx, r.ID, pgroom.Changes{Touch: touch, Release: release, Length: length, More: (SessionsMost - 1) * length})
}

// known returns the admissions that there are.
func known(found []*pgroom.Admission) (list []pgroom.Admission) {
	for _, a := range found {
		if a != nil {
			list = append(list, *a)
		}
	}
	return list
}

func outcomes(found []*pgroom.Admission, done map[uuid.UUID]bool) []Outcome {
	list := make([]Outcome, len(found))
	for i, a := range found {
		switch {
		case a == nil:
			list[i] = OutcomeInvalid
		case done[a.Pass]:
			list[i] = OutcomeOK
		default:
			list[i] = OutcomeOver
		}
	}
	return list
}

// admissions returns whose passes these are, nil for what is none. The log is
// read at most once for people whom another node admitted just now.
func (r *Room) admissions(ctx context.Context, tokens []string) ([]*pgroom.Admission, error) {
	passes, found := make([]*shown, len(tokens)), make([]*pgroom.Admission, len(tokens))
	isBehind := false
	for i, token := range tokens {
		s, err := r.readPass(ctx, token, SessionsMost*r.session()+maxRounding)
		if errors.Is(err, ErrPass) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st, ok := r.Standing(s.ticket)
		isBehind = isBehind || !ok || st.Status != fairness.StatusAdmitted
		passes[i] = &s
	}
	if isBehind {
		if err := r.readLatest(ctx); err != nil {
			return nil, err
		}
	}
	for i, s := range passes {
		if s == nil {
			continue
		}
		st, ok := r.Standing(s.ticket)
		if ok && st.Status == fairness.StatusAdmitted && r.compare(*s, st) == nil {
			a := r.record(st)
			found[i] = &a
		}
	}
	return found, nil
}

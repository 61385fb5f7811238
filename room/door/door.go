// Package door checks credentials before a request takes a room's lock: whether a ticket shows what its lane needs, and
// whether its credentials verify.
//
//	join ──► Check ──► sequencer ──► Allow ──► State.Apply
//	         state, then signatures    state     the rules, which have the last word
//
// [Allow] compares credentials with the state alone: methods, limits, nullifiers. It takes a microsecond and says what
// is wrong in words for the visitor. [Check] also verifies what [Allow] allows, without a lock, which takes 15 to 100
// microseconds each. What it has verified goes with the request, so that the rules need not verify it again.
package door

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/projection"
)

// MalformedError is returned for credentials that no method takes: another spelling or length, or a method twice.
type MalformedError struct{ Problems error } // an [*invalid.Error]

// Error implements error.
func (e *MalformedError) Error() string { return e.Problems.Error() }

// Unwrap returns the problems by field.
func (e *MalformedError) Unwrap() error { return e.Problems }

// UnknownMethodError is returned for a credential of a method that the room does not have.
type UnknownMethodError struct {
	Method string
	Known  []string
}

// Error implements error.
func (e *UnknownMethodError) Error() string {
	if len(e.Known) == 0 {
		return "the room takes no credentials"
	}
	return fmt.Sprintf("the room has no method %q, only %s", e.Method, strings.Join(e.Known, ", "))
}

// MissingError is returned when a ticket does not show all methods that its lane needs.
type MissingError struct {
	Lane    fairness.Lane
	Methods []string // those that are missing, in the order of the policy
}

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("lane %s needs a credential of %s", e.Lane, strings.Join(e.Methods, " and "))
}

// InvalidError is returned for a credential that does not verify for this ticket in this lane of this room.
type InvalidError struct {
	Method string
	err    error
}

// Error implements error.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("the credential is not good for this ticket in this lane of this room: %v", e.err)
}

// UsedError is returned for a nullifier that the room has taken.
type UsedError struct{ Method string }

// Error implements error.
func (e *UsedError) Error() string {
	return fmt.Sprintf("this account has used its credential of method %s in this room", e.Method)
}

// FullError is returned when a method has taken as many credentials as its limit.
type FullError struct {
	Method string
	Limit  uint32
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("the room has taken %d credentials of method %s, its limit", e.Limit, e.Method)
}

// WorkError is returned while the round that work is done for is not in the transcript.
type WorkError struct {
	Round uint64
	Wait  time.Duration // until the round is due; 0: it is due already
}

// Error implements error.
func (e *WorkError) Error() string {
	return fmt.Sprintf("work is done for beacon round %d, which is not in the transcript yet", e.Round)
}

// Methods returns the methods that an error of this package is about; nil for other errors.
func Methods(err error) []string {
	var missing *MissingError
	var unknown *UnknownMethodError
	var wrong *InvalidError
	var used *UsedError
	var full *FullError
	switch {
	case errors.As(err, &missing):
		return missing.Methods
	case errors.As(err, &unknown):
		return []string{unknown.Method}
	case errors.As(err, &wrong):
		return []string{wrong.Method}
	case errors.As(err, &used):
		return []string{used.Method}
	case errors.As(err, &full):
		return []string{full.Method}
	}
	return nil
}

// ErrLate is returned for a credential of a ticket whose window is over, or that was admitted or skipped, and of any
// ticket once the room has ended.
var ErrLate = errors.New("the ticket's window or the room is over, and the ticket takes no more credentials")

// View shows the state of a room; [sequence.View] implements it.
type View interface {
	Read(do func(p *projection.Projection, durable uint64))
}

// Request is what a ticket shows in a lane of the policy.
type Request struct {
	Ticket      fairness.Ticket
	Lane        fairness.Lane
	Credentials []credential.Credential
	IsMerit     bool // the ticket has joined the lane before
}

// Check returns the credentials of a request, verified and in the order of the policy, if the room would take them now.
// If the ticket's join or merit is being stored, it refuses no credential: the sequencer answers a repeated request
// when that is done, and has the last word if it fails. Errors are those of this package.
func Check(v View, r Request, now fairness.Time) (list []projection.Verified, err error) {
	var subject credential.Subject
	var methods []credential.Method
	verifiers := make([]*credential.Verifier, len(r.Credentials))
	isRepeated := false
	v.Read(func(p *projection.Projection, _ uint64) {
		subject, methods = p.Subject(r.Lane, r.Ticket), p.Policy().Methods
		for i, c := range r.Credentials {
			verifiers[i] = fairness.DoorOf(p.State).Verifier(c.Method)
		}
		if isRepeated = r.isIn(p); !isRepeated {
			err = Allow(p.State, r, max(now, p.Now()))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, verifier := range verifiers {
		if verifier == nil {
			continue // of a repeated request, which may show anything
		}
		verified, wrong := projection.Verify(verifier, subject, r.Credentials[i])
		switch {
		case wrong == nil:
			list = append(list, verified)
		case !isRepeated:
			return nil, r.explain(i, wrong)
		}
	}
	place := func(v projection.Verified) int {
		return slices.IndexFunc(methods, func(m credential.Method) bool { return m.Name == v.Method() })
	}
	slices.SortFunc(list, func(a, b projection.Verified) int { return cmp.Compare(place(a), place(b)) })
	return list, nil
}

// isIn reports whether the join or the merit that is requested has been appended.
func (r *Request) isIn(p *projection.Projection) bool {
	if !r.IsMerit {
		return p.Knows(r.Ticket)
	}
	return fairness.DoorOf(p.State).HasShown(r.Ticket, r.Credentials[0].Method)
}

// field returns the name of a field of a credential in the request.
func (r *Request) field(i int, name string) string {
	if r.IsMerit {
		return name
	}
	return fmt.Sprintf("%s[%d].%s", field, i, name)
}

// explain returns the error of this package for the verdict on a credential.
func (r *Request) explain(i int, err error) error {
	method := r.Credentials[i].Method
	switch {
	case errors.Is(err, credential.ErrNullifier):
		return Malformed(r.field(i, "nullifier"), "must be 32 bytes for a method of kind signed, and missing for others")
	case errors.Is(err, credential.ErrSize):
		return Malformed(r.field(i, "evidence"), "has the wrong length for method "+method)
	}
	return &InvalidError{method, err}
}

// Malformed returns a [*MalformedError] with one problem.
func Malformed(field, detail string) error { return &MalformedError{invalid.Field(field, detail)} }

// Allow compares a request with the state of the room; it verifies nothing. Errors are those of this package.
func Allow(s *fairness.State, r Request, now fairness.Time) error {
	if r.IsMerit {
		st, ok := s.Standing(r.Ticket, s.Size(), now)
		if s.Ended() || ok && (st.Settled != 0 || now >= st.Window.To) {
			return ErrLate
		}
	}
	for i, c := range r.Credentials {
		isTwice := func(b credential.Credential) bool { return b.Method == c.Method }
		if slices.ContainsFunc(r.Credentials[:i], isTwice) {
			return Malformed(r.field(i, "method"), "must be shown once")
		}
		if err := allowOne(s, c, now); err != nil {
			return err
		}
	}
	var missing []string
	for _, l := range s.Policy().Lanes {
		for _, name := range l.Needs {
			isIt := func(c credential.Credential) bool { return c.Method == name }
			if l.Name == r.Lane && !r.IsMerit && !slices.ContainsFunc(r.Credentials, isIt) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return &MissingError{r.Lane, missing}
	}
	return nil
}

// allowOne compares one credential with the state of the room.
func allowOne(s *fairness.State, c credential.Credential, now fairness.Time) error {
	methods := s.Policy().Methods
	at := slices.IndexFunc(methods, func(m credential.Method) bool { return m.Name == c.Method })
	if at < 0 {
		unknown := &UnknownMethodError{Method: c.Method}
		for _, m := range methods {
			unknown.Known = append(unknown.Known, m.Name)
		}
		return unknown
	}
	if m := methods[at]; m.Limit > 0 && s.Shown()[at] >= m.Limit {
		return &FullError{m.Name, m.Limit}
	}
	if fairness.DoorOf(s).IsUsed(c.Method, c.Nullifier) {
		return &UsedError{c.Method}
	}
	if round, due, awaits := fairness.DoorOf(s).AwaitsWorkRound(); awaits && methods[at].Kind == credential.Work {
		return &WorkError{round, max(0, millis.Time(due).Sub(millis.Time(now)))}
	}
	return nil
}

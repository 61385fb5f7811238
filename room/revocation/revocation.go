// Package revocation revokes and restores many tickets of a room with one request: those of a list, or those that have
// shown a credential that failed later.
//
//	list, or method ─► tickets ─► Tally (a preview) ─► entries of one append, all of them or none
//
// Each ticket gets its own entry in the transcript, as if it had been revoked alone. A request is bounded by [Most], so
// that joins wait no longer than for one batch of them; longer lists are several requests.
package revocation

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/sequence"
)

// Most is the maximum number of tickets or nullifiers of one request.
const Most = 10_000

var (
	// ErrDrawing is returned when a ticket is revoked or restored while its window is frozen but not drawn: its outcome
	// may be known to the operator and not to the visitors.
	ErrDrawing = errors.New("the draw of this ticket's group is under way")
	// ErrEnded is returned when a room has ended, so that its transcript takes no more entries.
	ErrEnded = errors.New("the room has ended: its places can no longer be revoked or given back")
)

// WantReason describes the reasons that revoke a ticket.
const WantReason = "must be revoked, revoked-bot, revoked-duplicate, revoked-fraud or revoked-request"

// Nullifier is a value that an issuer gives to one account in a room.
type Nullifier = [credential.NullifierSize]byte

// ParseNullifier parses the 64 lower-case hex digits of a nullifier.
func ParseNullifier(text string) (n Nullifier, err error) {
	b, err := hex.DecodeString(text)
	if copy(n[:], b) != len(n) || len(text) != 2*len(n) || strings.ToLower(text) != text || err != nil {
		return n, errors.New("must be 64 lower-case hex digits")
	}
	return n, nil
}

// Selection names tickets of a room: those of a list or, with a method, those that have shown it.
type Selection struct {
	Tickets []fairness.Ticket
	// SkipUnknown leaves out tickets that have not joined the room; otherwise they are an error.
	SkipUnknown bool

	Method     string      // has been shown, at the join or later; empty: the list counts
	Nullifiers []Nullifier // of the method; nil: all that have shown it
	// From continues where an earlier request for all tickets of a method stopped, which is its [Tally.Next].
	From uint32
}

// Tally counts the tickets of a selection by where they stand.
type Tally struct {
	Waiting  int // in line, and not called
	Called   int // called, and not admitted
	Drawing  int // in line, but in a draw that is under way
	Admitted int
	Gone     int // left, did not come, or wanted more seats than were left
	Revoked  int // revoked, and never given back
	Again    int // revoked for the second time
	Unknown  int // tickets or nullifiers that are not in the room
	Repeated int // named more than once, and counted once

	Passed int    // of those revoked, how many would be called at once if they were restored
	Next   uint32 // continues a selection of all tickets of a method; 0: it is complete
}

// Pending returns how many tickets have a place that can be revoked.
func (t Tally) Pending() int { return t.Waiting + t.Called }

// Add adds the tally of another part of a list.
func (t *Tally) Add(o Tally) {
	t.Waiting += o.Waiting
	t.Called += o.Called
	t.Drawing += o.Drawing
	t.Admitted += o.Admitted
	t.Gone += o.Gone
	t.Revoked += o.Revoked
	t.Again += o.Again
	t.Unknown += o.Unknown
	t.Repeated += o.Repeated
	t.Passed += o.Passed
}

// Lists revokes and restores the tickets of one room. It is safe for concurrent use.
type Lists struct{ room *sequence.Sequencer }

// New returns the lists of a room.
func New(room *sequence.Sequencer) *Lists { return &Lists{room} }

// Check counts the tickets of a selection, and changes nothing. Tickets whose revocation is an entry before since are
// not counted. Errors: [*invalid.Error], and those of [sequence.Sequencer.ReadLatest].
func (l *Lists) Check(ctx context.Context, s Selection, since uint64) (tally Tally, err error) {
	if err := l.room.ReadLatest(ctx); err != nil {
		return tally, err
	}
	l.room.View().Read(func(p *projection.Projection, size uint64) {
		var list []place
		list, tally, err = s.places(p, size, p.Now())
		tally.count(p, list, since)
	})
	return tally, err
}

// Revoked is the result of a revocation.
type Revoked struct {
	Tally         // before it
	First  uint64 // index of the first entry
	Length int    // number of entries
}

// Revoke revokes all tickets of a selection that wait or are called, for a reason that satisfies
// [fairness.Reason.IsRevoked], or none of them; others stay as they are. Errors: [*invalid.Error], [ErrDrawing],
// [ErrEnded], and those of [sequence.Sequencer.Do].
func (l *Lists) Revoke(ctx context.Context, s Selection, reason fairness.Reason) (done Revoked, err error) {
	if !reason.IsRevoked() {
		return done, invalid.Field("reason", WantReason)
	}
	err = l.room.Do(ctx, func(p *projection.Projection, now fairness.Time) (entries []fairness.Entry, err error) {
		if p.Ended() {
			return nil, ErrEnded
		}
		list, tally, err := s.places(p, p.Size(), now)
		if err != nil {
			return nil, err
		}
		tally.count(p, list, 0)
		if tally.Drawing > 0 {
			return nil, ErrDrawing
		}
		for _, one := range list {
			if one.isPending() {
				entries = append(entries, &fairness.Skip{Time: now, Ticket: one.Ticket, Reason: reason})
			}
		}
		done = Revoked{tally, p.Size(), len(entries)}
		return entries, nil
	})
	return done, err
}

// place is the standing of a ticket.
type place struct {
	fairness.Standing
	drawing bool // its window is frozen but not drawn
}

func (p place) isPending() bool {
	return p.Status != fairness.StatusAdmitted && p.Status != fairness.StatusSkipped
}

// places returns the standings of a selection's tickets when the transcript had size entries.
func (s *Selection) places(p *projection.Projection, size uint64, now fairness.Time) (list []place,
	tally Tally, err error) {
	tickets, err := s.tickets(p, &tally)
	if err != nil {
		return nil, tally, err
	}
	var problems invalid.List
	seen := make(map[fairness.Ticket]bool, len(tickets))
	for i, t := range tickets {
		if seen[t] {
			tally.Repeated++
			continue
		}
		seen[t] = true
		st, ok := p.Standing(t, size, now)
		if !ok {
			tally.Unknown++
			problems.Check(s.SkipUnknown || s.Method != "" || len(problems) >= invalid.Max,
				fmt.Sprintf("tickets[%d]", i), t.String()+" has not joined this room")
			continue
		}
		list = append(list, place{st, p.AwaitsDraw(t)})
	}
	return list, tally, problems.Err()
}

// tickets returns the tickets of a selection, and counts the nullifiers that no ticket has shown.
func (s *Selection) tickets(p *projection.Projection, tally *Tally) (list []fairness.Ticket, err error) {
	if s.Method == "" {
		return s.Tickets, many("tickets", len(s.Tickets))
	}
	v := fairness.DoorOf(p.State).Verifier(s.Method)
	if v == nil {
		return nil, invalid.Field("method", "must be the name of a method of this room")
	}
	if s.Nullifiers == nil {
		list, tally.Next = fairness.DoorOf(p.State).Holders(s.Method, s.From, Most)
		return list, nil
	}
	for _, m := range p.Policy().Methods {
		if m.Name == s.Method && m.Kind != credential.Signed {
			return nil, invalid.Field("method", "has no nullifiers, because its kind is "+string(m.Kind)+
				": name all of its tickets instead")
		}
	}
	for _, n := range s.Nullifiers {
		if t, ok := fairness.DoorOf(p.State).Holder(s.Method, n[:]); ok {
			list = append(list, t)
		} else {
			tally.Unknown++
		}
	}
	return list, many("nullifiers", len(s.Nullifiers))
}

// many returns an error unless the length of a list is one that a request may have.
func many(field string, length int) error {
	if length == 0 || length > Most {
		return invalid.Field(field, fmt.Sprintf("must be a list of 1 to %d", Most))
	}
	return nil
}

// count counts standings, of revoked tickets only those whose revocation is the entry since or a later one.
func (t *Tally) count(p *projection.Projection, list []place, since uint64) {
	passed := passedBy(p)
	for _, one := range list {
		switch {
		case one.Status == fairness.StatusAdmitted:
			t.Admitted++
		case one.Status != fairness.StatusSkipped && one.drawing:
			t.Drawing++
		case one.Status == fairness.StatusCalled:
			t.Called++
		case one.Status != fairness.StatusSkipped:
			t.Waiting++
		case !one.Reason.IsRevoked():
			t.Gone++
		case uint64(one.SettledIndex) < since:
		case one.Restored:
			t.Again++
		default:
			t.Revoked++
			if passed(one) {
				t.Passed++
			}
		}
	}
}

// passedBy returns a function that reports whether the line has passed a place.
func passedBy(p *projection.Projection) func(place) bool {
	called := map[fairness.Lane]uint64{}
	for i, n := range p.LaneCounts() {
		called[p.Policy().Lanes[i].Name] = n.Called
	}
	return func(one place) bool {
		return one.Position > 0 && uint64(one.Position) <= called[one.Lane]
	}
}

package room

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/sequence"
)

// Limits of the time after which a visitor retries when the node is out of date, and the number of retries per
// second that a line is spread over.
const (
	minStaleWait = 2 * time.Second
	maxStaleWait = 15 * time.Second
	staleRate    = 10_000
)

// Joined is the answer to a join.
type Joined struct {
	sequence.Arrived
	room *Room
}

// AppendReceipt appends the tlog-proof of the arrive entry to dst, against a
// checkpoint that contains it.
func (j *Joined) AppendReceipt(ctx context.Context, dst []byte) ([]byte, error) {
	index := uint64(j.Index)
	if j.Batch != nil && index >= j.Batch.Start() {
		return j.Batch.AppendReceipt(dst, index)
	}
	receipt, err := j.room.Transcript.receipt(ctx, index)
	return append(dst, receipt...), err
}

// Receipt returns the tlog-proof of a ticket's arrive entry against the newest
// checkpoint. Errors: [ErrTicketUnknown], [*StaleError], and those of the
// database.
func (r *Room) Receipt(ctx context.Context, t fairness.Ticket) ([]byte, error) {
	st, err := r.Place(ctx, t)
	if err != nil {
		return nil, err
	}
	return r.Transcript.receipt(ctx, uint64(st.Index))
}

// Join joins the first lane for one seat; see [Room.JoinLane].
func (r *Room) Join(ctx context.Context, t fairness.Ticket) (Joined, error) {
	return r.JoinLane(ctx, t, "", 1)
}

// JoinLane appends a join of a lane for a number of seats, with the credentials that the ticket shows, and returns once
// it is durable. An empty name is the first lane. The same ticket gets the same arrival again, whatever it shows.
// Errors: [*invalid.Error] for a lane or a number of seats that the room does not have, [*EarlyError], [ErrClosed],
// [ErrFull], [*LimitError], those of package door, [ErrBusy], [ErrStopping], and that of ctx.
func (r *Room) JoinLane(ctx context.Context, t fairness.Ticket, name fairness.Lane, seats uint32,
	shown ...credential.Credential) (joined Joined, err error) {
	r.touch()
	defer func() { r.Refused.note(err) }()
	if st, ok := r.Standing(t); ok {
		return Joined{sequence.Arrived{Standing: st, Again: true}, r}, nil
	}
	lane, err := r.lane(name)
	if err != nil {
		return Joined{}, err
	}
	if most := max(r.policy.Party, 1); seats < 1 || seats > most {
		return Joined{}, invalid.Field("seats", fmt.Sprintf("must be between 1 and %d", most))
	}
	if err := r.openFor(r.Now()); err != nil {
		return Joined{}, err
	}
	settings, _ := r.Settings()
	if err := r.pace.take(r.Now(), settings.JoinsPerMinute); err != nil {
		return Joined{}, err
	}
	defer func() {
		if isUnsure := ctx.Err() != nil; joined.Again || err != nil && !isUnsure {
			r.pace.giveBack(settings.JoinsPerMinute)
		}
	}()
	var verified []projection.Verified
	if len(r.policy.Methods) > 0 || len(shown) > 0 {
		request := door.Request{Ticket: t, Lane: lane, Credentials: shown}
		if verified, err = door.Check(r.view, request, millis.Of(r.Now())); err != nil {
			return Joined{}, err
		}
	}
	j, err := r.sequencer.Join(ctx, t, lane, seats, verified)
	return Joined{j, r}, err
}

// Merit is the answer to a credential that a ticket shows after its arrival.
type Merit struct {
	fairness.Standing
	Again bool   // the ticket had shown the method before
	Entry uint64 // index of the merit entry, or of the arrive entry if that shows the method
	room  *Room
}

// AppendReceipt appends the tlog-proof of the entry to dst, against the newest checkpoint.
func (m *Merit) AppendReceipt(ctx context.Context, dst []byte) ([]byte, error) {
	receipt, err := m.room.Transcript.receipt(ctx, m.Entry)
	return append(dst, receipt...), err
}

// Show appends a credential of a ticket that has joined, for a caller that knows its secret, until the ticket's window
// ends. A method that the ticket has shown before is not shown again. Errors: [ErrSecret], [ErrTicketUnknown], those of
// package door, [ErrBusy], [ErrStopping], [*StaleError], and that of ctx.
func (r *Room) Show(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte,
	shown credential.Credential) (Merit, error) {
	r.touch()
	if !isSecretOf(t, secret, r.Origin) {
		return Merit{}, ErrSecret
	}
	st, err := r.Place(ctx, t)
	if err != nil {
		return Merit{}, err
	}
	m := Merit{Standing: st, room: r}
	r.view.Read(func(p *projection.Projection, durable uint64) {
		if p.Size() <= durable {
			m.again(p, shown.Method)
		}
	})
	if m.Again {
		return m, nil
	}
	request := door.Request{Ticket: t, Lane: st.Lane, Credentials: []credential.Credential{shown}, IsMerit: true}
	verified, err := door.Check(r.view, request, millis.Of(r.Now()))
	if err != nil {
		return Merit{}, err
	}
	err = r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		if m.again(p, shown.Method); m.Again {
			return nil, nil
		}
		if err := door.Allow(p.State, request, now); err != nil {
			return nil, err
		}
		p.Vouch(verified)
		m.Entry = p.Size()
		e, _ := fairness.DoorOf(p.State).NextMerit(now, t, shown) // its window is open, as Allow has checked
		return []fairness.Entry{&e}, nil
	})
	if err != nil { // the change may still be under way
		return Merit{}, err
	}
	return m, nil
}

// again takes note of a method that the ticket has shown before.
func (m *Merit) again(p *projection.Projection, method string) {
	if m.Again = fairness.DoorOf(p.State).HasShown(m.Ticket, method); !m.Again {
		return
	}
	m.Entry = uint64(m.Index)
	for _, one := range p.Merits(m.Ticket, p.Size()) {
		if one.Method == method {
			m.Entry = one.Index
		}
	}
}

// lane returns the lane with a name; without one, the first.
func (r *Room) lane(name fairness.Lane) (fairness.Lane, error) {
	var names []string
	for _, l := range r.policy.Lanes {
		if name == "" || l.Name == name {
			return l.Name, nil
		}
		names = append(names, string(l.Name))
	}
	return "", invalid.Field("lane", "must be one of "+strings.Join(names, ", "))
}

// openFor refuses joins that the rules would refuse, without a query to the database. It accepts a join if the
// time is so close to a limit that only the database's clock can decide, or if this node is out of date.
func (r *Room) openFor(now time.Time) error {
	const slack = 500 * time.Millisecond // a slow answer of the database makes the estimate worse
	if r.isStale() {
		return nil
	}
	if wait := millis.Time(r.policy.Opens).Sub(now); wait > slack {
		return &EarlyError{Wait: wait}
	}
	s := r.snapshot.Load()
	if s.Ended || s.Closes != nil && now.Sub(*s.Closes) > slack {
		return ErrClosed
	}
	if r.IsFull() {
		return ErrFull
	}
	return nil
}

// IsFull reports whether the organizer's limit stops visitors from joining for now. On a node that is out of
// date it is false.
func (r *Room) IsFull() bool { return r.details.IsFull(r.Snapshot().Counts) && !r.isStale() }

// Standing returns a ticket's standing as of the durable transcript.
func (r *Room) Standing(t fairness.Ticket) (fairness.Standing, bool) {
	return r.view.Standing(t, millis.Of(r.Now()))
}

// Lots returns the number of lots that a ticket has in its draw, and the methods that give it one more each.
func (r *Room) Lots(t fairness.Ticket) (n int, more []string) {
	n = 1
	r.view.Read(func(p *projection.Projection, _ uint64) {
		for _, method := range r.policy.Lots {
			if fairness.DoorOf(p.State).HasShown(t, method) {
				n++
			} else {
				more = append(more, method)
			}
		}
	})
	return n, more
}

// isStale reports whether other nodes may have changed the room without this node's knowledge. A room that
// has ended does not change.
func (r *Room) isStale() bool { return r.view.Age() > sequence.StaleAfter && !r.Snapshot().Ended }

// stale returns a [*StaleError] with the time to wait, which grows with the line.
func stale(n fairness.Counts) error {
	wait := time.Duration(n.Unsettled()) * time.Second / staleRate //nolint:gosec // at most fairness.MaxArrivals
	return &StaleError{min(max(wait, minStaleWait), maxStaleWait)}
}

// Place returns a ticket's standing if this node can vouch for it. An unknown ticket may just have joined
// through another node, so Place first reads everything stored by now. Errors: [ErrTicketUnknown], and
// [*StaleError] when the database does not answer.
func (r *Room) Place(ctx context.Context, t fairness.Ticket) (fairness.Standing, error) {
	asked := time.Now()
	st, ok := r.Standing(t)
	switch {
	case ok && (!isPending(st) || !r.isStale()): // a settled ticket does not change
		return st, nil
	case ok, !r.Snapshot().Ended && !r.view.WaitFor(ctx, asked):
		return st, stale(r.Snapshot().Counts)
	}
	if st, ok = r.Standing(t); !ok {
		return st, ErrTicketUnknown
	}
	return st, nil
}

package sequence

import (
	"errors"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/projection"
)

// Limits of the work due in one append, so that joins are not delayed.
const (
	maxDraws = 32 // each verifies a round, which takes 3 ms
	maxSkips = 1_000
)

// filler builds one batch under the view's lock. Every entry passes State.Apply; refused ones are left out of the
// batch. A request gets the refusal as its error. A refused duty means a bug, or wrong room keys, and must not
// keep visitors from joining.
type filler struct {
	keys       *keys.Keys
	evidence   Evidence
	isFull     func(fairness.Counts) bool
	projection *projection.Projection
	batch      *pglog.Batch
	now        fairness.Time
	chunk      int  // maximum number of assignments
	isPartial  bool // there are more assignments than chunk
	root       func() audit.Hash
	text       []byte
	done       meter.Append // what it has added
	trace      *traced
}

// fill appends the entries that are due and those that w requests. The order matters: windows that are over are
// frozen before joins enter the next one, the round of work comes before joins that show work, no-shows make room for
// calls, and assignments fill up the batch. The error is that of failed duties.
func (f *filler) fill(w *work) error {
	undone := errors.Join(f.draws(), f.workRound())
	for _, j := range w.joins {
		f.join(j)
	}
	for _, c := range w.commands {
		f.command(c)
	}
	if w.duties {
		undone = errors.Join(undone, f.serve())
	}
	return errors.Join(undone, f.tellRefused(false), f.assigns())
}

// emit applies an entry and adds it to the batch, or does neither. The end comes after all that this node has to state.
func (f *filler) emit(e fairness.Entry) error {
	if _, isEnd := e.(*fairness.End); isEnd {
		if err := f.tellRefused(true); err != nil {
			return err
		}
	}
	f.text = fairness.AppendEntry(f.text[:0], e)
	if len(f.text) > audit.MaxEntrySize {
		return audit.ErrEntrySize
	}
	if err := f.projection.Apply(e, f.root); err != nil {
		return err
	}
	if f.projection.Ended() {
		f.batch.Publish() // so that those who are told of the end can audit it at once
	}
	f.done.Entries++
	return f.batch.Add(f.text)
}

// draws freezes and draws the windows that are over.
func (f *filler) draws() error {
	if err := f.freeze(); err != nil {
		return err
	}
	for range maxDraws {
		draw, ok := f.projection.NextDraw(f.now)
		if !ok || f.projection.Ended() {
			break
		}
		next := f.projection.Pending()[0]
		span := f.trace.window("draw", draw.Window)
		err := f.emit(draw)
		traces.End(span, err == nil)
		if err != nil {
			if v, ok := errors.AsType[*fairness.Violation](err); ok && v.Rule == fairness.RuleWitness {
				f.evidence.Refuse(next)
			}
			return fmt.Errorf("draw window %d: %w", draw.Window, err)
		}
		f.done.Draws = append(f.done.Draws, millis.Time(f.now).Sub(millis.Time(max(next.Due, next.Frozen))))
	}
	return nil
}

// freeze freezes the window that is over, if it has arrivals. The rules accept no other entry before that.
func (f *filler) freeze() error {
	due, ok := f.projection.FreezeDue()
	if !ok || f.projection.Ended() || f.now < due {
		return nil
	}
	freeze, alpha, _ := f.projection.NextFreeze(f.now, f.batch.Root())
	span := f.trace.window("freeze", freeze.Window)
	proof, _ := f.keys.VRF.Prove(alpha)
	copy(freeze.Proof[:], proof)
	err := f.emit(freeze)
	traces.End(span, err == nil)
	if err != nil {
		return fmt.Errorf("freeze window %d: %w", freeze.Window, err)
	}
	f.done.Freezes = append(f.done.Freezes, millis.Time(f.now).Sub(millis.Time(due)))
	f.batch.Publish()
	return nil
}

// workRound writes the beat with the beacon round that work is done for.
func (f *filler) workRound() error {
	beat := f.projection.NextWork(f.now)
	if beat == nil || f.projection.Ended() {
		return nil
	}
	if err := f.emit(beat); err != nil {
		return fmt.Errorf("write the round of work: %w", err)
	}
	f.batch.Publish() // devices wait for it
	return nil
}

// join records one arrival, or finds the earlier one of the same ticket.
func (f *filler) join(j *join) {
	j.result, j.err = Arrived{}, j.ctx.Err()
	if j.err != nil {
		return // the caller no longer waits
	}
	j.result.Again = f.projection.Knows(j.ticket) && !j.tried
	if !f.projection.Knows(j.ticket) {
		if j.err = f.arrive(j); j.err != nil {
			return
		}
		j.tried = true
	}
	j.result.Standing, _ = f.projection.Standing(j.ticket, f.projection.Size(), f.now)
}

// arrive appends the arrival of a new ticket.
func (f *filler) arrive(j *join) error {
	if f.isFull(f.projection.Counts()) {
		return ErrFull
	}
	arrive, ok := f.projection.NextArrive(f.now, j.ticket, j.lane)
	if !ok {
		if opens := f.projection.Schedule().Opens(); f.now < opens && !f.projection.Ended() {
			return &EarlyError{millis.Time(opens).Sub(millis.Time(f.now))}
		}
		return ErrClosed
	}
	if j.seats > 1 {
		arrive.Seats = j.seats
	}
	if len(f.projection.Policy().Methods) > 0 {
		arrive.Credentials = projection.Credentials(j.shown)
		r := door.Request{Ticket: j.ticket, Lane: j.lane, Credentials: arrive.Credentials}
		if err := door.Allow(f.projection.State, r, f.now); err != nil {
			return err
		}
		f.projection.Vouch(j.shown)
	}
	if err := f.emit(&arrive); err != nil {
		return fmt.Errorf("arrive %v: %w: %s", j.ticket, ErrRefused, err.Error())
	}
	return nil
}

// command appends a request's entries until the rules refuse one; the refusal becomes the error of the request,
// not of the batch.
func (f *filler) command(c *command) {
	c.err = c.ctx.Err()
	if c.err != nil {
		return
	}
	entries, err := c.change(f.projection, f.now)
	for _, e := range entries {
		if err == nil {
			err = f.emit(e)
		}
	}
	c.err = err
}

// serve skips no-shows and parties too large for the seats left, calls the next visitors, switches the gate, writes
// a beat, and ends a finished room.
func (f *filler) serve() (undone error) {
	if f.projection.Ended() {
		return nil
	}
	for _, t := range f.projection.NoShows(f.now, maxSkips) {
		if err := f.emit(&fairness.Skip{Time: f.now, Ticket: t, Reason: fairness.NoShow}); err != nil {
			undone = fmt.Errorf("skip %v: %w", t, err)
		}
	}
	for range maxSkips {
		ticket, ok := f.projection.TooLarge()
		if !ok {
			break
		}
		if err := f.emit(&fairness.Skip{Time: f.now, Ticket: ticket, Reason: fairness.TooLarge}); err != nil {
			undone = errors.Join(undone, fmt.Errorf("skip %v: %w", ticket, err))
			break
		}
	}
	if call, _ := f.projection.NextCall(f.now); call != nil {
		if err := f.emit(call); err != nil {
			undone = errors.Join(undone, fmt.Errorf("call up to %d: %w", call.UpTo, err))
		}
	}
	if err := f.switchGate(); err != nil {
		undone = errors.Join(undone, fmt.Errorf("switch the gate: %w", err))
	}
	if f.projection.IsBeatDue(f.now) {
		undone = errors.Join(undone, f.emit(&fairness.Beat{Time: f.now}))
	}
	if f.projection.IsFinished(f.now) {
		undone = errors.Join(undone, f.emit(&fairness.End{Time: f.now}))
	}
	return undone
}

// switchGate appends the gate switch that is due.
func (f *filler) switchGate() error {
	change, ok := f.projection.NextSwitch(f.now)
	if !ok {
		return nil
	}
	err := f.emit(&fairness.Amend{Time: f.now, Change: change})
	if err == nil {
		f.projection.Switched()
	}
	return err
}

// tellRefused states the joins that this node refused: those of a minute that is over, or all.
func (f *filler) tellRefused(all bool) error {
	for _, e := range f.projection.NextRefused(f.now, all) {
		if err := f.emit(&e); err != nil {
			return fmt.Errorf("state refused joins: %w", err)
		}
	}
	return nil
}

// assigns records drawn positions, up to the filler's chunk.
func (f *filler) assigns() error {
	for range f.chunk {
		assign, ok := f.projection.NextAssign()
		if !ok || f.projection.Ended() {
			return nil
		}
		if err := f.emit(&assign); err != nil {
			return fmt.Errorf("assign %d: %w", assign.Position, err)
		}
	}
	f.isPartial = true
	return nil
}

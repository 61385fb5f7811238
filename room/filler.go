package room

import (
	"errors"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/vrf"
)

// Limits of the clock's work in one append, so that joins are not delayed.
const (
	maxFreezes = 32
	maxDraws   = 32 // each verifies a round, which takes 3 ms
	maxSkips   = 1_000
)

// filler builds one batch under the room's lock. Every entry passes State.Apply; those that it refuses are
// left out, and the rest continues. A request gets the refusal as its error. A refused duty means a bug, or
// wrong room keys, and must not keep visitors from joining.
type filler struct {
	room  *Room
	live  *live
	batch *pglog.Batch
	root  func() audit.Hash
	now   fairness.Time
	text  []byte
}

func newFiller(r *Room, l *live, b *pglog.Batch) *filler {
	return &filler{room: r, live: l, batch: b, root: b.Root, now: fairness.Time(b.Now)}
}

// fill appends the entries that are due and those that w asks for. The order matters: windows that are over
// are frozen before joins enter the next one, no-shows make room for calls, and assignments fill up the
// batch. The error is about failed duties.
func (f *filler) fill(w *work) error {
	if w.publish {
		f.batch.Publish()
	}
	undone := f.draws()
	for _, j := range w.joins {
		f.join(j)
	}
	for _, a := range w.acts {
		f.act(a)
	}
	if w.duties {
		undone = errors.Join(undone, f.serve())
	}
	return errors.Join(undone, f.assigns())
}

// emit applies an entry and adds it to the batch, or does neither.
func (f *filler) emit(e fairness.Entry) error {
	f.text = e.AppendEntry(f.text[:0])
	if len(f.text) > audit.MaxEntrySize {
		return audit.ErrEntrySize
	}
	if err := f.live.apply(e, f.root); err != nil {
		return err
	}
	return f.batch.Add(f.text)
}

// draws freezes and draws the windows that are over.
func (f *filler) draws() error {
	for range maxFreezes {
		if due, ok := f.live.FreezeDue(); !ok || f.live.Ended() || f.now < due {
			break
		}
		freeze, alpha, _ := f.live.NextFreeze(f.now, f.batch.Root())
		proof, _ := f.room.keys.VRF.Prove(alpha)
		copy(freeze.Proof[:], proof)
		if err := f.emit(freeze); err != nil {
			return fmt.Errorf("freeze window %d: %w", freeze.Window, err)
		}
		f.batch.Publish()
	}
	for range maxDraws {
		draw, ok := f.live.nextDraw(f.now)
		if !ok || f.live.Ended() {
			break
		}
		if err := f.emit(draw); err != nil {
			if v, ok := errors.AsType[*fairness.Violation](err); ok && v.Rule == fairness.RuleWitness {
				f.live.evidence.refuse(f.live.Pending()[0])
			}
			return fmt.Errorf("draw window %d: %w", draw.Window, err)
		}
	}
	return nil
}

// join records one arrival, or finds the earlier one of the same ticket.
func (f *filler) join(j *join) {
	j.result, j.err = Joined{}, j.ctx.Err()
	if j.err != nil {
		return // the request has ended
	}
	j.result.Again = f.live.Knows(j.ticket) && !j.tried
	if !f.live.Knows(j.ticket) {
		if j.err = f.arrive(j.ticket); j.err != nil {
			return
		}
		j.tried = true
	}
	j.result.Standing, _ = f.live.Standing(j.ticket, f.live.Size(), f.now)
}

// arrive appends the arrival of a new ticket.
func (f *filler) arrive(t fairness.Ticket) error {
	if counts := f.live.Counts(); f.room.isFull(&counts) {
		return ErrFull
	}
	arrive, ok := f.live.NextArrive(f.now, t)
	if !ok {
		if opens := f.live.Schedule().Opens(); f.now < opens && !f.live.Ended() {
			return &EarlyError{timeOf(opens).Sub(timeOf(f.now))}
		}
		return ErrClosed
	}
	if err := f.emit(&arrive); err != nil {
		return fmt.Errorf("arrive %v: %w: %s", t, errRefused, err.Error())
	}
	return nil
}

// act appends a request's entries until the rules refuse one; the refusal becomes the error of the request,
// not of the batch.
func (f *filler) act(a *act) {
	a.err = a.ctx.Err()
	if a.err != nil {
		return
	}
	entries, err := a.entries(f.live.State, f.now)
	for _, e := range entries {
		if err == nil {
			err = f.emit(e)
		}
	}
	a.err = err
}

// serve skips no-shows, calls the next visitors, switches the gate, and ends a finished room.
func (f *filler) serve() (undone error) {
	if f.live.Ended() {
		return nil
	}
	var late []fairness.Ticket
	late, f.live.noShows = f.live.NoShows(nil, f.live.noShows, f.now, maxSkips)
	for _, t := range late {
		if err := f.emit(&fairness.Skip{Time: f.now, Ticket: t, Reason: fairness.NoShow}); err != nil {
			undone = fmt.Errorf("skip %v: %w", t, err)
		}
	}
	if upTo, ok := f.live.nextCall(f.now); ok {
		if err := f.emit(&fairness.Call{Time: f.now, Lane: fairness.General, UpTo: upTo}); err != nil {
			undone = errors.Join(undone, fmt.Errorf("call up to %d: %w", upTo, err))
		}
	}
	if err := f.switches(); err != nil {
		undone = errors.Join(undone, fmt.Errorf("switch the gate: %w", err))
	}
	if f.live.finished(f.now) {
		undone = errors.Join(undone, f.emit(&fairness.End{Time: f.now}))
	}
	return undone
}

// assigns records drawn positions, up to the room's chunk.
func (f *filler) assigns() error {
	for range f.room.chunk {
		assign, ok := f.live.NextAssign()
		if !ok || f.live.Ended() {
			return nil
		}
		if err := f.emit(&assign); err != nil {
			return fmt.Errorf("assign %d: %w", assign.Position, err)
		}
	}
	f.room.queue.duties() // more to do, after the requests that wait by now
	return nil
}

func verifyVRF(key [fairness.PublicKeySize]byte, alpha []byte,
	proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	k, err := vrf.NewPublicKey(key[:])
	if err != nil {
		return [fairness.BetaSize]byte{}, err
	}
	return k.Verify(alpha, proof[:])
}

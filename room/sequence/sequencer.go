package sequence

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/regression"
)

// appendTimeout limits one query; a database that takes longer is treated as unavailable. Appends have their own
// limits.
const appendTimeout = 10 * time.Second

// Limits of the assignments in one append.
const (
	minChunk   = 256
	maxChunk   = 8_192
	slowAppend = 40 * time.Millisecond
)

// Limits of the pauses between attempts while the database is unavailable.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = time.Second
)

// Run appends until the sequencer is stopped and its queue is empty, or ctx ends. It must be called once, after
// Load.
func (s *Sequencer) Run(ctx context.Context) {
	defer close(s.done)
	defer func() { s.release() }()
	for !s.queue.isDone() {
		select {
		case <-s.queue.wake:
		case <-ctx.Done():
			s.queue.abandon(ErrStopping)
			return
		}
		w := s.queue.take()
		switch {
		case !w.isEmpty():
			s.perform(ctx, w)
		case !s.queue.isDone():
			s.catchUp(ctx)
		}
	}
}

// perform appends w and answers its requests. It retries while the database is unavailable, but not when the
// log is broken: then it reports the error to the requests.
func (s *Sequencer) perform(ctx context.Context, w work) {
	s.backlog.begin()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		began := time.Now()
		appended, err := s.append(ctx, &w)
		switch {
		case err == nil:
			if !s.isUndone {
				s.backlog.end()
			}
			s.settle(ctx, began)
			w.answer(appended)
			return
		case s.o.Guard.Regression() != nil:
			w.fail(s.o.Guard.Regression())
			return
		case errors.Is(err, clock.ErrStep): // the clock is settled shortly
		case wait == firstRetry:
			s.o.Log.Warn("append failed and may or may not be stored; retrying", "room", s.o.Slug, "err", err)
		case isBroken(err): // still broken after a reload
			s.o.Log.Error("room does not match its transcript", "room", s.o.Slug, "err", err)
			w.fail(err)
			timing.Sleep(ctx, lastRetry) // a reload is expensive, and may fail again
			return
		}
		if !s.rest(ctx, wait) {
			w.fail(ErrStopping)
			return
		}
	}
}

// Retry ends the pause before the next attempt, because the database answers again.
func (s *Sequencer) Retry() {
	select {
	case s.retry <- struct{}{}:
	default:
	}
}

// rest waits before the next attempt, and returns false when ctx has ended.
func (s *Sequencer) rest(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
	case <-s.retry:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// isBroken reports whether an error concerns the contents of the log, so that retrying does not help.
func isBroken(err error) bool {
	return errors.Is(err, pglog.ErrCorrupt) || errors.Is(err, pglog.ErrNotFound) || errors.Is(err, pglog.ErrHeld)
}

// append stores the entries that w requests, and those that are due.
func (s *Sequencer) append(ctx context.Context, w *work) (*pglog.Appended, error) {
	err := s.o.Guard.Err()
	if err == nil {
		err = s.restore(ctx)
	}
	if err != nil {
		s.release()
		return nil, err
	}
	began := time.Now()
	var undone error
	var done meter.Append
	var before *projection.Mark // without the batch
	p := s.view.projection
	t := s.trace(ctx, w)
	appended, err := s.entries.Append(ctx, s.readLocked, func(b *pglog.Batch) error {
		s.view.mu.Lock()
		defer s.view.mu.Unlock()
		t.part("lock")
		before = p.Mark()
		f := filler{keys: s.o.Keys, evidence: s.o.Evidence, isFull: s.o.IsFull, projection: p, batch: b,
			now: fairness.Time(b.Now), chunk: s.chunk, root: b.Root, trace: t}
		undone = f.fill(w)
		done = f.done
		t.part("apply")
		if f.isPartial {
			s.queue.duties() // more is due, to be appended after the requests already waiting
		}
		return nil
	})
	if err == nil && appended == nil {
		err = s.confirm(ctx)
	}
	if s.isLost = isBroken(err); err != nil && before != nil {
		s.view.mu.Lock()
		p.Undo(before)
		s.view.mu.Unlock()
	}
	if err == nil {
		p.ToldRefused()
	}
	t.end(done.Entries, appended != nil, err)
	took := time.Since(began)
	s.resize(took)
	s.took.Store(int64(took))
	if appended != nil {
		done.Took = took
		s.o.Meter.Appended(done)
	}
	if w.duties {
		s.report(undone)
	}
	return appended, err
}

// report logs failed duties, once rather than at every tick.
func (s *Sequencer) report(undone error) {
	if undone != nil && !s.isUndone {
		s.o.Log.Error("cannot append the entries that are due", "room", s.o.Slug, "err", undone)
	}
	s.isUndone = undone != nil
}

// restore reloads the room after its log turned out to differ from what this node has read.
func (s *Sequencer) restore(ctx context.Context) error {
	if !s.isLost {
		return nil
	}
	err := s.Load(ctx)
	s.isLost = err != nil
	return err
}

// confirm waits until the entries that this node has read from other nodes are as durable as its own.
func (s *Sequencer) confirm(ctx context.Context) error {
	if s.view.projection.Size() == s.view.Size() {
		return nil
	}
	return s.o.Store.Confirm(ctx)
}

// catchUp reads what other nodes appended.
func (s *Sequencer) catchUp(ctx context.Context) {
	if s.o.Guard.Regression() != nil {
		if err := s.recheck(ctx); err != nil && !errors.Is(err, regression.ErrRegressed) &&
			!errors.Is(err, regression.ErrAbandoned) {
			s.o.Log.Warn("room is not up to date", "room", s.o.Slug, "err", err)
		}
		return
	}
	s.isLost = s.isSuspect.Swap(false) || s.isLost
	err := s.tail(ctx)
	if errors.Is(err, pglog.ErrCorrupt) {
		err = s.tail(ctx) // the reload determines what is missing
	}
	if s.o.Guard.Regression() != nil {
		return
	}
	if err != nil {
		s.o.Log.Warn("room is not up to date", "room", s.o.Slug, "err", err)
		timing.Sleep(ctx, lastRetry)
	}
}

func (s *Sequencer) tail(ctx context.Context) error {
	if err := s.restore(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	began := time.Now()
	err := s.entries.Tail(bounded, s.readLocked)
	switch {
	case err == nil && s.entries.IsHeld(): // another node holds it: see what is missing, and whether it is back
		err = s.Load(ctx)
	case err == nil:
		err = s.confirm(ctx)
	}
	s.isLost = isBroken(err)
	if err == nil {
		s.settle(ctx, began)
	}
	return err
}

// readLocked applies an entry of the log under the readers' lock.
func (s *Sequencer) readLocked(text []byte) error {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	return s.view.projection.Read(text, s.root)
}

// resize adapts the chunk of assignments to the speed of the database, so that joins do not wait long for one
// append.
func (s *Sequencer) resize(took time.Duration) {
	switch {
	case took > slowAppend:
		s.chunk = max(s.chunk/2, minChunk)
	case took < slowAppend/2:
		s.chunk = min(s.chunk*2, maxChunk)
	}
}

// release gives up the room's lock if it was requested for the next append.
func (s *Sequencer) release() {
	if s.entries != nil {
		s.entries.Release()
	}
}

// settle lets readers see everything that the log handle has read or stored, which is all that was stored at
// began.
func (s *Sequencer) settle(ctx context.Context, began time.Time) {
	s.show(s.view.projection, s.entries)
	s.o.Changed(ctx)
	s.view.note(began)
}

// show lets readers see a log as far as it was read or stored. The caller must have confirmed it; show first
// stores its mark.
func (s *Sequencer) show(p *projection.Projection, entries *pglog.Log) {
	size := p.Size()
	s.o.Guard.Note(pglog.Mark{Size: size, Root: entries.Root()})
	s.set(p, entries, size)
}

// set replaces the projection and the log that it was read from.
func (s *Sequencer) set(p *projection.Projection, entries *pglog.Log, durable uint64) {
	if s.entries != entries {
		s.release()
		s.entries, s.root = entries, entries.Root
	}
	s.view.set(p, durable)
}

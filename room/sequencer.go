package room

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// appendTimeout limits one query; a database that takes longer is treated as unavailable. An append has its
// own limits.
const appendTimeout = 10 * time.Second

// Limits of the assignments in one append.
const (
	leastChunk = 256
	mostChunk  = 8_192
	slowAppend = 40 * time.Millisecond
)

// Limits of the pauses between attempts while the database is unavailable.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = time.Second
)

// sequence runs the room's only goroutine that appends. It returns when the queue is stopped and empty, or
// ctx ends.
func (r *Room) sequence(ctx context.Context) {
	defer close(r.done)
	for !r.queue.isDone() {
		select {
		case <-r.queue.wake:
		case <-ctx.Done():
			r.queue.abandon(ErrStopping)
			return
		}
		w := r.queue.take()
		switch {
		case !w.isEmpty():
			r.perform(ctx, w)
		case !r.queue.isDone():
			r.look(ctx, w.publish)
		}
	}
}

// perform appends w and answers its requests. It retries while the database is unavailable, but not when the
// log is broken: then it reports the error to the requests.
func (r *Room) perform(ctx context.Context, w work) {
	r.pulse.owed.owe()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		began := time.Now()
		appended, err := r.append(ctx, &w)
		switch {
		case err == nil:
			if !r.undone {
				r.pulse.owed.pay()
			}
			r.settle(ctx, began)
			w.answer(appended)
			return
		case r.regression.Load() != nil:
			w.fail(r.regression.Load())
			return
		case errors.Is(err, ErrClock): // decided shortly
		case wait == firstRetry:
			r.log.Warn("append failed and may or may not be stored; retrying", "room", r.Slug, "err", err)
		case isBroken(err): // even after a reload
			r.log.Error("room does not match its transcript", "room", r.Slug, "err", err)
			w.fail(err)
			sleep(ctx, lastRetry) // a reload is expensive, and may fail again
			return
		}
		if !sleep(ctx, wait) {
			w.fail(ErrStopping)
			return
		}
	}
}

// isBroken reports whether an error concerns the contents of the log, so that retrying does not help.
func isBroken(err error) bool {
	return errors.Is(err, pglog.ErrCorrupt) || errors.Is(err, pglog.ErrNotFound) || errors.Is(err, pglog.ErrHeld)
}

// append stores what w asks for, and the entries that are due.
func (r *Room) append(ctx context.Context, w *work) (*pglog.Appended, error) {
	if g := r.regression.Load(); g != nil {
		return nil, g
	}
	if err := r.restore(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	var undone error
	var before *liveMark // the batch
	appended, err := r.live.log.Append(ctx, r.readLocked, func(b *pglog.Batch) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		before = r.live.mark()
		undone = newFiller(r, r.live, b).fill(w)
		return nil
	})
	if err == nil && appended == nil {
		err = r.confirm(ctx)
	}
	if r.lost = isBroken(err); err != nil && before != nil {
		r.mu.Lock()
		r.live.undo(before)
		r.mu.Unlock()
	}
	took := time.Since(began)
	r.resize(took)
	r.pulse.took.Store(int64(took))
	if w.duties {
		r.report(undone)
	}
	return appended, err
}

// report logs failed duties, once rather than at every tick.
func (r *Room) report(undone error) {
	if undone != nil && !r.undone {
		r.log.Error("cannot append the entries that are due", "room", r.Slug, "err", undone)
	}
	r.undone = undone != nil
}

// restore reloads the room after its log turned out to differ from what this node has read.
func (r *Room) restore(ctx context.Context) error {
	if !r.lost {
		return nil
	}
	err := r.reload(ctx)
	r.lost = err != nil
	return err
}

// confirm waits until the entries that this node has read from other nodes are as durable as its own.
func (r *Room) confirm(ctx context.Context) error {
	if r.live.Size() == r.durableSize() {
		return nil
	}
	return r.store.Confirm(ctx)
}

// look reads what other nodes appended, and publishes the checkpoint if that has fallen behind.
func (r *Room) look(ctx context.Context, publish bool) {
	if r.regression.Load() != nil {
		if err := r.recheck(ctx); err != nil && !errors.Is(err, ErrRegressed) && !errors.Is(err, ErrAbandoned) {
			r.log.Warn("room is not up to date", "room", r.Slug, "err", err)
		}
		return
	}
	r.lost = r.adrift.Swap(false) || r.lost
	err := r.tail(ctx)
	if errors.Is(err, pglog.ErrCorrupt) {
		err = r.tail(ctx) // the reload finds what is missing
	}
	if r.regression.Load() != nil {
		return
	}
	if err == nil && publish {
		err = r.publishNewest(ctx)
	}
	if err != nil {
		r.log.Warn("room is not up to date", "room", r.Slug, "err", err)
		sleep(ctx, lastRetry)
	}
}

func (r *Room) tail(ctx context.Context) error {
	if err := r.restore(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	began := time.Now()
	err := r.live.log.Tail(bounded, r.readLocked)
	switch {
	case err == nil && r.live.log.IsHeld(): // another node holds it: see what is missing, and whether it is back
		err = r.reload(ctx)
	case err == nil:
		err = r.confirm(ctx)
	}
	r.lost = isBroken(err)
	if err == nil {
		r.settle(ctx, began)
	}
	return err
}

func (r *Room) publishNewest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	return r.store.Publish(ctx, r.ID)
}

// readLocked applies an entry of the log under the readers' lock.
func (r *Room) readLocked(text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live.read(text)
}

// resize adapts the chunk of assignments to the speed of the database, so that joins do not wait long for one
// append.
func (r *Room) resize(took time.Duration) {
	switch {
	case took > slowAppend:
		r.chunk = max(r.chunk/2, leastChunk)
	case took < slowAppend/2:
		r.chunk = min(r.chunk*2, mostChunk)
	}
}

// sleep waits for d. It returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// settle shows readers everything that the log handle has read or stored, which is all that was stored at
// began, and takes a new snapshot.
func (r *Room) settle(ctx context.Context, began time.Time) {
	r.expose(r.live)
	r.refresh(ctx)
	r.current.note(began)
}

// act waits until the entries are durable or refused.
func (r *Room) act(ctx context.Context, entries func(*fairness.State, fairness.Time) ([]fairness.Entry, error)) error {
	a := &act{ctx: ctx, entries: entries, done: make(chan error, 1)}
	if err := r.queue.act(a); err != nil {
		return err
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

package room

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// appendTimeout bounds one look at the database; one that takes longer is treated
// as being away. An append has bounds of its own.
const appendTimeout = 10 * time.Second

// Bounds of the assignments that one append states.
const (
	leastChunk = 256
	mostChunk  = 8_192
	slowAppend = 40 * time.Millisecond
)

// Bounds of the waits between attempts while the database is away.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = time.Second
)

// sequence is the room's one goroutine that appends. It returns when the
// queue is stopped and empty, or ctx ends.
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

// perform appends w and answers everybody who waits for it. While the database
// is away it tries again and again. A log that is broken it leaves alone:
// whoever waits had better know.
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
		case errors.Is(err, ErrClock): // decided in a moment
		case wait == firstRetry:
			r.log.Warn("append is tried again: it may be stored or not", "room", r.Slug, "err", err)
		case isBroken(err): // read anew
			r.log.Error("room does not match its transcript", "room", r.Slug, "err", err)
			w.fail(err)
			sleep(ctx, lastRetry) // to read it all is work, and may not help the next time
			return
		}
		if !sleep(ctx, wait) {
			w.fail(ErrStopping)
			return
		}
	}
}

// isBroken tells whether an error is about what the log holds, which trying
// again does not mend.
func isBroken(err error) bool {
	return errors.Is(err, pglog.ErrCorrupt) || errors.Is(err, pglog.ErrNotFound) || errors.Is(err, pglog.ErrHeld)
}

// append stores what w asks for and what the clock demands.
func (r *Room) append(ctx context.Context, w *work) (*pglog.Appended, error) {
	if g := r.regression.Load(); g != nil {
		return nil, g
	}
	if err := r.restore(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	var undone error
	var before *liveMark // the build
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

// report logs that duties are not done, once and not at every tick.
func (r *Room) report(undone error) {
	if undone != nil && !r.undone {
		r.log.Error("room cannot do what is due", "room", r.Slug, "err", undone)
	}
	r.undone = undone != nil
}

// restore reads the room again after its log was not what this node has read.
func (r *Room) restore(ctx context.Context) error {
	if !r.lost {
		return nil
	}
	err := r.reload(ctx)
	r.lost = err != nil
	return err
}

// confirm waits until entries that other nodes appended, and this one has read,
// are as durable as its own.
func (r *Room) confirm(ctx context.Context) error {
	if r.live.Size() == r.durableSize() {
		return nil
	}
	return r.store.Confirm(ctx)
}

// look reads what other nodes appended, and publishes the checkpoint if that
// has waited.
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
		err = r.tail(ctx) // read anew, which says what is missing
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
	case err == nil && r.live.log.IsHeld(): // by another node: what it misses, and whether that is back
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

// readLocked takes an entry of the log while readers may look.
func (r *Room) readLocked(text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live.read(text)
}

// resize fits the chunk of assignments to what the database takes in the time
// that a join may have to wait for one append.
func (r *Room) resize(took time.Duration) {
	switch {
	case took > slowAppend:
		r.chunk = max(r.chunk/2, leastChunk)
	case took < slowAppend/2:
		r.chunk = min(r.chunk*2, mostChunk)
	}
}

// sleep waits; false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// settle lets readers see everything the log handle has read or stored, which is
// all that was stored when it began, and takes a new snapshot.
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

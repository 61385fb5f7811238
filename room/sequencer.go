package room

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// appendTimeout bounds one append; a database that takes longer is treated
// like one that is away.
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
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		appended, err := r.append(ctx, &w)
		switch {
		case err == nil:
			r.settle(ctx)
			w.answer(appended)
			return
		case wait == firstRetry:
			r.log.Warn("room is read again, after an append that may not be stored", "room", r.Slug, "err", err)
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
	return errors.Is(err, pglog.ErrCorrupt) || errors.Is(err, pglog.ErrNotFound)
}

// append stores what w asks for and what the clock demands.
func (r *Room) append(ctx context.Context, w *work) (*pglog.Appended, error) {
	if err := r.restore(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	began := time.Now()
	var undone error
	appended, err := r.live.log.Append(ctx, r.readLocked, func(b *pglog.Batch) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		undone = newFiller(r, r.live, b).fill(w)
		return nil
	})
	r.lost = err != nil
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

// restore reads the room again after something went wrong: what an append had
// applied may be stored or not.
func (r *Room) restore(ctx context.Context) error {
	if !r.lost {
		return nil
	}
	err := r.reload(ctx)
	r.lost = err != nil
	return err
}

// look reads what other nodes appended, and publishes the checkpoint if that
// has waited.
func (r *Room) look(ctx context.Context, publish bool) {
	err := r.tail(ctx)
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
	err := r.live.log.Tail(bounded, r.readLocked)
	r.lost = err != nil
	if err == nil {
		r.settle(ctx)
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

// settle lets readers see everything the log handle has read or stored, and
// takes a new snapshot.
func (r *Room) settle(ctx context.Context) {
	r.mu.Lock()
	r.stored = r.live.Size()
	r.mu.Unlock()
	r.refresh(ctx)
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

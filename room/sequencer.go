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
	var spare work
	for {
		select {
		case <-r.queue.wake:
		case <-ctx.Done():
			r.fail(r.queue.take(work{}), ErrStopping)
			return
		}
		w := r.queue.take(spare)
		if w.empty() {
			if r.queue.isStopped() {
				return
			}
			spare = w // the queue has the other memory now
			r.tail(ctx)
			continue
		}
		spare = r.perform(ctx, w)
	}
}

// tail reads what other nodes appended.
func (r *Room) tail(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	if err := r.live.log.Tail(ctx, r.readLocked); err != nil {
		r.recover(ctx, err)
		return
	}
	r.settle(ctx)
}

// readLocked takes an entry of the log while readers may look.
func (r *Room) readLocked(text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live.read(text)
}

// perform appends w, again and again until it is stored, and answers
// everybody who waits. It returns memory to use again.
func (r *Room) perform(ctx context.Context, w work) work {
	for wait := time.Duration(0); ; wait = min(wait+firstRetry, lastRetry) {
		appended, err := r.append(ctx, &w)
		if err == nil {
			r.settle(ctx)
			r.answer(w, appended)
			return w
		}
		if !sleep(ctx, wait) || !r.recover(ctx, err) {
			r.fail(w, ErrStopping)
			return work{}
		}
	}
}

func (r *Room) append(ctx context.Context, w *work) (*pglog.Appended, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	began := time.Now()
	appended, err := r.live.log.Append(ctx, r.readLocked, func(b *pglog.Batch) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return newFiller(r, r.live, b).fill(w)
	})
	r.resize(time.Since(began))
	return appended, err
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

// recover reads the room from the log after an append that may or may not
// have been stored. It tries until it succeeds; false when ctx ended before.
func (r *Room) recover(ctx context.Context, cause error) bool {
	r.log.Warn("room is read again", "room", r.Slug, "cause", cause)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := r.reload(ctx)
		if err == nil {
			r.settle(ctx)
			return true
		}
		if errors.Is(err, pglog.ErrCorrupt) {
			r.log.Error("room does not match its transcript", "room", r.Slug, "err", err)
		}
		if !sleep(ctx, wait) {
			return false
		}
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

// answer tells everybody in w that the batch is durable. Without a batch
// nothing had to be stored.
func (r *Room) answer(w work, appended *pglog.Appended) {
	for _, j := range w.joins {
		j.result.batch = appended
		close(j.done)
	}
	for _, a := range w.acts {
		a.done <- a.err
	}
}

// fail tells everybody in w that it did not happen.
func (r *Room) fail(w work, err error) {
	for _, j := range w.joins {
		j.err = err
		close(j.done)
	}
	for _, a := range w.acts {
		a.done <- err
	}
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

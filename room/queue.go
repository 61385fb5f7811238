package room

import (
	"context"
	"sync"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// Bounds of what waits for the sequencer and of what one append takes.
const (
	maxQueued = 100_000 // joins, and acts; at 30,000 a second a wait of about three seconds
	maxBatch  = 4_096   // joins, and acts, an append, so that a batch stays some tens of milliseconds
)

// join is one request to join on its way through the sequencer, which sets
// result or err and closes done.
type join struct {
	ctx    context.Context
	ticket fairness.Ticket
	done   chan struct{}
	tried  bool // its entry was in an append before
	result Joined
	err    error
}

// act is any other request to append: a claim, or an organizer's change. What
// entries returns is appended whole or not at all.
type act struct {
	ctx     context.Context
	entries func(*fairness.State, fairness.Time) ([]fairness.Entry, error)
	done    chan error // buffered
	err     error      // of the rules
}

// work is what one append is asked to do.
type work struct {
	joins   []*join
	acts    []*act
	duties  bool // look for what the clock demands
	publish bool // the published checkpoint has waited
}

// isEmpty tells whether there is nothing to append.
func (w *work) isEmpty() bool { return len(w.joins) == 0 && len(w.acts) == 0 && !w.duties }

// answer tells everybody in w that the batch is durable. Without a batch
// nothing had to be stored.
func (w *work) answer(appended *pglog.Appended) {
	for _, j := range w.joins {
		j.result.batch = appended
		close(j.done)
	}
	for _, a := range w.acts {
		a.done <- a.err
	}
}

// fail tells everybody in w that it did not happen.
func (w *work) fail(err error) {
	for _, j := range w.joins {
		j.err = err
		close(j.done)
	}
	for _, a := range w.acts {
		a.done <- err
	}
}

// queue collects work for the sequencer.
type queue struct {
	wake chan struct{} // capacity 1: there is work, or something to read

	mu      sync.Mutex // guards all below
	work    work
	stopped bool
}

func newQueue() queue { return queue{wake: make(chan struct{}, 1)} }

// signal wakes the sequencer if it sleeps.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// put runs add under the lock, unless the queue is stopped.
func (q *queue) put(add func(*work) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return ErrStopping
	}
	if err := add(&q.work); err != nil {
		return err
	}
	q.signal()
	return nil
}

func (q *queue) join(j *join) error {
	return q.put(func(w *work) error {
		if len(w.joins) >= maxQueued {
			return ErrBusy
		}
		w.joins = append(w.joins, j)
		return nil
	})
}

func (q *queue) act(a *act) error {
	return q.put(func(w *work) error {
		if len(w.acts) >= maxQueued {
			return ErrBusy
		}
		w.acts = append(w.acts, a)
		return nil
	})
}

// duties asks for what the clock demands, publish for a checkpoint; of a
// stopped room nobody demands anything.
func (q *queue) duties()  { _ = q.put(func(w *work) error { w.duties = true; return nil }) }
func (q *queue) publish() { _ = q.put(func(w *work) error { w.publish = true; return nil }) }

// take takes one batch off the queue.
func (q *queue) take() work {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := work{joins: cut(&q.work.joins), acts: cut(&q.work.acts), duties: q.work.duties, publish: q.work.publish}
	q.work.duties, q.work.publish = false, false
	if !q.work.isEmpty() {
		q.signal()
	}
	return w
}

// cut takes a batch off the front of a list. What is left shares its memory
// with the batch, so neither may reach into the other's part.
func cut[T any](list *[]T) []T {
	n := min(len(*list), maxBatch)
	batch := (*list)[:n:n]
	if *list = (*list)[n:]; len(*list) == 0 {
		*list = nil
	}
	return batch
}

// stop refuses further work and wakes the sequencer.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.signal()
}

// isDone tells whether the queue is stopped and everything in it taken.
func (q *queue) isDone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stopped && len(q.work.joins) == 0 && len(q.work.acts) == 0
}

// abandon stops the queue and fails what is in it.
func (q *queue) abandon(err error) {
	q.stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work.fail(err)
	q.work = work{}
}

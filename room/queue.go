package room

import (
	"context"
	"sync"

	"github.com/proofline/proofline/fairness"
)

// Bounds of what waits for the sequencer and of what one append takes.
const (
	maxQueued = 100_000 // joins; at 30,000 a second a wait of about three seconds
	maxBatch  = 4_096   // joins an append, so that a batch stays some tens of milliseconds
)

// join is one request to join on its way through the sequencer, which sets
// result or err and closes done.
type join struct {
	ctx    context.Context
	ticket fairness.Ticket
	done   chan struct{}
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
	joins  []*join
	acts   []*act
	duties bool // look for what the clock demands
}

func (w *work) empty() bool { return len(w.joins) == 0 && len(w.acts) == 0 && !w.duties }

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

func (q *queue) duties() {
	_ = q.put(func(w *work) error { w.duties = true; return nil }) // a stopped room has none
}

// take empties the queue up to one batch; spare is a batch that is done with,
// whose memory is used again.
func (q *queue) take(spare work) work {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.work.joins) <= maxBatch {
		w := q.work
		clear(spare.joins)
		clear(spare.acts)
		q.work = work{joins: spare.joins[:0], acts: spare.acts[:0]}
		return w
	}
	w := work{joins: q.work.joins[:maxBatch:maxBatch], acts: q.work.acts, duties: q.work.duties}
	q.work = work{joins: q.work.joins[maxBatch:]}
	q.signal()
	return w
}

// stop refuses further work and wakes the sequencer.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.signal()
}

func (q *queue) isStopped() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stopped && len(q.work.joins) == 0 && len(q.work.acts) == 0
}

package sequence

import (
	"context"
	"sync"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// Limits of the sequencer's queue and of one append.
const (
	maxQueued = 100_000 // for joins, and again for other requests; about three seconds of work at 30,000 a second
	maxBatch  = 4_096   // for joins in one append, and again for other requests; takes tens of milliseconds
)

// join is a request to join on its way through the sequencer, which sets result or err and closes done.
type join struct {
	ctx    context.Context
	ticket fairness.Ticket
	lane   fairness.Lane
	seats  uint32
	shown  []projection.Verified // credentials, in the order of the policy
	done   chan struct{}
	tried  bool // its entry was in an earlier append
	result Arrived
	err    error
}

// Change returns the entries of a request, which are appended together or not at all. It runs under the
// sequencer's lock, with the projection that the entries will be applied to.
type Change func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error)

// command is any other request to append: a claim, or an organizer's change.
type command struct {
	ctx    context.Context
	change Change
	done   chan error // buffered
	err    error      // why the rules refused it; nil: they did not
}

// work is the input of one append.
type work struct {
	joins    []*join
	commands []*command
	duties   bool // append the entries that are due
}

// isEmpty reports whether there is nothing to append.
func (w *work) isEmpty() bool { return len(w.joins) == 0 && len(w.commands) == 0 && !w.duties }

// answer reports to all requests in w that the batch is durable; appended is nil if nothing had to be stored.
func (w *work) answer(appended *pglog.Appended) {
	for _, j := range w.joins {
		j.result.Batch = appended
		close(j.done)
	}
	for _, c := range w.commands {
		c.done <- c.err
	}
}

// fail reports an error to all requests in w.
func (w *work) fail(err error) {
	for _, j := range w.joins {
		j.err = err
		close(j.done)
	}
	for _, c := range w.commands {
		c.done <- err
	}
}

// queue collects work for the sequencer.
type queue struct {
	wake chan struct{} // capacity 1: there is work, or something to read

	mu      sync.Mutex // guards the fields below
	work    work
	stopped bool
}

func newQueue() queue { return queue{wake: make(chan struct{}, 1)} }

// signal wakes the sequencer.
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

func (q *queue) command(c *command) error {
	return q.put(func(w *work) error {
		if len(w.commands) >= maxQueued {
			return ErrBusy
		}
		w.commands = append(w.commands, c)
		return nil
	})
}

// duties requests the entries that are due. A stopped room needs none.
func (q *queue) duties() { _ = q.put(func(w *work) error { w.duties = true; return nil }) }

// take removes one batch from the queue.
func (q *queue) take() work {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := work{joins: cut(&q.work.joins), commands: cut(&q.work.commands), duties: q.work.duties}
	q.work.duties = false
	if !q.work.isEmpty() {
		q.signal()
	}
	return w
}

// cut removes a batch from the front of a list. The rest shares its memory with the batch, whose capacity is
// therefore limited.
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

// isDone reports whether the queue is stopped and empty.
func (q *queue) isDone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stopped && len(q.work.joins) == 0 && len(q.work.commands) == 0
}

// abandon stops the queue and fails all requests in it.
func (q *queue) abandon(err error) {
	q.stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work.fail(err)
	q.work = work{}
}

// hasWork reports whether there is something to append.
func (q *queue) hasWork() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.work.isEmpty()
}

// length returns the number of waiting requests.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.work.joins) + len(q.work.commands)
}

package load

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Pauses of visitors when the server gives none.
const (
	retryPause = time.Second // after an error
	pollPause  = 2 * time.Second
)

// jitter is the maximum share by which pages lengthen a pause at random, so that
// they do not all ask at once.
const jitter = 0.3

// kind is a kind of request.
type kind int

const (
	join kind = iota
	ticket
	state
	claim
	kinds
)

// String returns the name, as in a [Report].
func (k kind) String() string { return [...]string{"join", "ticket", "state", "claim"}[k] }

// failure is the key under which failed requests are counted.
type failure struct {
	kind   kind
	status int // of the answer; 0: no answer
}

// visitor is a visitor with its next request.
type visitor struct {
	due      time.Duration // when to send the request, since the start of the run
	number   int
	next     kind
	position uint64 // 0: not drawn yet
}

// worker is one connection and the visitors it serves.
type worker struct {
	*run
	conn    conn
	next    int // number of the next visitor to arrive
	step    int // from one arriving visitor's number to the next
	waiting queue

	latency  [kinds]histogram
	lastJoin time.Duration
	again    uint64 // joins of tickets that had joined before
	expired  uint64
	failures map[failure]uint64

	path, body []byte // buffers for requests
}

// queue is a heap of visitors, the one due first on top.
type queue []visitor

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(v any) { *q = append(*q, v.(visitor)) } //nolint:errcheck // always a visitor

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	v := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return v
}

// work serves the visitors until all are done or ctx ends.
func (w *worker) work(ctx context.Context) {
	defer w.conn.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		v, ok := w.take()
		if !ok {
			return
		}
		if wait := time.Until(w.start.Add(v.due)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		w.serve(ctx, v)
	}
}

// take returns the visitor that is due next, arriving or waiting; false when none
// is left.
func (w *worker) take() (visitor, bool) {
	arrival := visitor{number: w.next}
	if w.Rate > 0 {
		arrival.due = time.Duration(float64(w.next) / w.Rate * float64(time.Second))
	}
	if w.next < w.Visitors && (len(w.waiting) == 0 || arrival.due <= w.waiting[0].due) {
		w.next += w.step
		return arrival, true
	}
	if len(w.waiting) == 0 {
		return visitor{}, false
	}
	v, _ := heap.Pop(&w.waiting).(visitor)
	return v, true
}

// serve sends the visitor's request, and queues the visitor again if it is not done.
func (w *worker) serve(ctx context.Context, v visitor) {
	began := time.Since(w.start)
	if w.Rate > 0 {
		began = v.due
	}
	a, err := w.request(ctx, &v)
	took := time.Since(w.start) - began
	if err != nil {
		if ctx.Err() == nil {
			w.fail(v, 0)
			w.later(v, retryPause)
		}
		return
	}
	w.latency[v.next].add(took)
	switch v.next {
	case join:
		w.joinAnswered(v, a, began+took)
	case ticket:
		w.ticketAnswered(v, a)
	case state:
		w.stateAnswered(v, a)
	case claim:
		w.claimAnswered(v, a)
	}
}

// request sends the visitor's next request.
func (w *worker) request(ctx context.Context, v *visitor) (answer, error) {
	secret := w.secret(v.number)
	own := fairness.NewTicket(w.origin, secret).String()
	w.path = append(w.path[:0], w.run.path...)
	switch v.next {
	case join:
		w.body = append(w.body[:0], `{"ticket":"`...)
		w.body = append(append(w.body, own...), `"}`...)
		return w.conn.do(ctx, "POST", append(w.path, "/join"...), w.body)
	case state:
		return w.conn.do(ctx, "GET", append(w.path, "/state"...), nil)
	}
	w.path = append(append(w.path, "/tickets/"...), own...)
	if v.next == ticket {
		return w.conn.do(ctx, "GET", w.path, nil)
	}
	w.body = append(w.body[:0], `{"secret":"`...)
	w.body = base64.RawURLEncoding.AppendEncode(w.body, secret[:])
	w.body = append(w.body, `"}`...)
	return w.conn.do(ctx, "POST", append(w.path, "/claim"...), w.body)
}

// secret derives the visitor's secret each time: storing millions would take more
// memory than the server uses.
func (w *worker) secret(number int) [fairness.SecretSize]byte {
	var b [40]byte
	copy(b[:], w.key[:])
	binary.BigEndian.PutUint64(b[32:], uint64(number)) //nolint:gosec // not negative
	return sha256.Sum256(b[:])
}

func (w *worker) joinAnswered(v visitor, a answer, at time.Duration) {
	switch a.status {
	case http.StatusOK:
		w.again++ // an earlier attempt got through
		fallthrough
	case http.StatusCreated:
		w.joined.Add(1)
		w.lastJoin = at
		v.next = ticket
		w.later(v, pollPause)
	default:
		w.refused(v, a)
	}
}

// ticketAnswered looks for the position. Like a page, the visitor polls its ticket
// until it has one, and the shared state from then on.
func (w *worker) ticketAnswered(v visitor, a answer) {
	if a.status != http.StatusOK {
		w.refused(v, a)
		return
	}
	pause := pauseOf(a.body, "poll_after_ms")
	switch {
	case bytes.Contains(a.body, []byte(`"status":"called"`)):
		v.next, pause = claim, 0
	case bytes.Contains(a.body, []byte(`"status":"skipped"`)):
		w.expired++
		return
	default:
		if position, ok := number(a.body, "position"); ok {
			v.next, v.position = state, position
		}
	}
	w.later(v, pause)
}

func (w *worker) stateAnswered(v visitor, a answer) {
	if a.status != http.StatusOK {
		w.refused(v, a)
		return
	}
	pause := pauseOf(a.body, "after_ms")
	switch called, ok := number(a.body, "called"); {
	case ok && called >= v.position:
		v.next, pause = claim, 0
	case bytes.Contains(a.body, []byte(`"phase":"ended"`)):
		return
	}
	w.later(v, pause)
}

func (w *worker) claimAnswered(v visitor, a answer) {
	switch a.status {
	case http.StatusOK:
		w.admitted.Add(1)
	case http.StatusAccepted: // the public state was ahead of the ticket's
		w.later(v, retryPause)
	case http.StatusGone:
		w.expired++
	default:
		w.refused(v, a)
	}
}

// refused counts an error, and queues the visitor again if a retry may help.
func (w *worker) refused(v visitor, a answer) {
	w.fail(v, a.status)
	if a.status == http.StatusConflict || a.status == http.StatusTooManyRequests ||
		a.status >= http.StatusInternalServerError {
		w.later(v, max(a.retry, retryPause))
	}
}

// later queues the visitor again after a pause with jitter.
func (w *worker) later(v visitor, pause time.Duration) {
	pause += time.Duration(rand.Float64() * jitter * float64(pause)) //nolint:gosec // no secret
	v.due = time.Since(w.start) + pause
	heap.Push(&w.waiting, v)
}

func (w *worker) fail(v visitor, status int) {
	w.failures[failure{v.next, status}]++
	w.failed.Add(1)
}

// pauseOf returns the pause in an answer's member, or pollPause.
func pauseOf(body []byte, name string) time.Duration {
	if ms, ok := number(body, name); ok {
		return time.Duration(ms) * time.Millisecond //nolint:gosec // a pause
	}
	return pollPause
}

// number returns a JSON member that is a whole number. It searches the text for the
// name: decoding the object would cost more than the request.
func number(body []byte, name string) (uint64, bool) {
	at := bytes.Index(body, append(append([]byte{'"'}, name...), '"', ':'))
	if at < 0 {
		return 0, false
	}
	rest := body[at+len(name)+3:]
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseUint(string(rest[:max(end, 0)]), 10, 64)
	return n, err == nil
}

package load

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/rawhttp"
	"github.com/proofline/proofline/internal/visitor"
)

// Pauses of visitors when the server does not specify one.
const (
	retryPause = time.Second // after an error
	pollPause  = 2 * time.Second
)

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
	status int // status of the answer; 0: no answer
}

// habits describes all visitors: they wait until they are called, claim at once, and keep their
// pass.
var habits = simulate.Guest{Patience: simulate.Forever, Stay: simulate.Forever}

// guest is a visitor of the crowd.
type guest struct {
	visitor.Visitor
	number   int
	position uint64 // 0: not drawn yet
}

// kind returns the kind of the next request. Like a page, a visitor polls its ticket until it has
// a position, and the shared state from then on.
func (g *guest) kind() kind {
	switch {
	case g.Next == visitor.Join:
		return join
	case g.Next == visitor.Claim:
		return claim
	case g.position > 0:
		return state
	}
	return ticket
}

// worker is one connection and the visitors it serves.
type worker struct {
	*run
	conn    rawhttp.Conn
	next    int // number of the next visitor to arrive
	step    int // difference between the numbers of visitors who arrive in turn
	waiting queue

	latency  [kinds]rawhttp.Histogram
	lastJoin time.Duration
	again    uint64 // joins of tickets that had joined before
	expired  uint64
	failures map[failure]uint64

	out []byte // buffer for requests
}

// queue is a heap of visitors, the one due first on top.
type queue []guest

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].Due < q[j].Due }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(v any) { *q = append(*q, v.(guest)) } //nolint:errcheck // always a guest

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	v := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return v
}

// work serves the visitors until all are done or ctx ends.
func (w *worker) work(ctx context.Context) {
	defer w.conn.Close()
	for ctx.Err() == nil {
		v, ok := w.take()
		if !ok || visitor.Sleep(ctx, time.Until(w.start.Add(v.Due))) != nil {
			return
		}
		w.serve(ctx, v)
	}
}

// take returns the visitor that is due next, arriving or waiting; false when none
// is left.
func (w *worker) take() (guest, bool) {
	arrival := guest{number: w.next}
	if w.Rate > 0 {
		arrival.Due = time.Duration(float64(w.next) / w.Rate * float64(time.Second))
	}
	if w.next < w.Visitors && (len(w.waiting) == 0 || arrival.Due <= w.waiting[0].Due) {
		w.next += w.step
		return arrival, true
	}
	if len(w.waiting) == 0 {
		return guest{}, false
	}
	g, _ := heap.Pop(&w.waiting).(guest)
	return g, true
}

// serve sends the visitor's request, and queues the visitor again if it is not done.
func (w *worker) serve(ctx context.Context, g guest) {
	began, kind := time.Since(w.start), g.kind()
	if w.Rate > 0 {
		began = g.Due
	}
	a, err := w.request(ctx, &g, kind)
	took := time.Since(w.start) - began
	result := visitor.Answer{Outcome: visitor.Again, Pause: retryPause}
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil:
		w.fail(kind, 0)
	default:
		w.latency[kind].Add(took)
		result = w.read(&g, kind, a)
		if kind == join && result.Outcome == visitor.Done {
			w.lastJoin = began + took
		}
	}
	if g.Take(result, &habits, time.Since(w.start)); g.Next != visitor.None {
		heap.Push(&w.waiting, g)
	}
}

// request sends the visitor's next request.
func (w *worker) request(ctx context.Context, g *guest, k kind) (rawhttp.Answer, error) {
	const header = "User-Agent: proofline-load\r\nAccept: application/json\r\n"
	secret := w.secret(g.number)
	ticket := fairness.NewTicket(w.origin, secret).String()
	method, path, body := http.MethodGet, "/tickets/"+ticket, ""
	switch k {
	case join:
		method, path, body = http.MethodPost, "/join", `{"ticket":"`+ticket+`"}`
	case state:
		path = "/state"
	case claim:
		method, path = http.MethodPost, path+"/claim"
		body = `{"secret":"` + base64.RawURLEncoding.EncodeToString(secret[:]) + `"}`
	default:
	}
	w.out = rawhttp.AppendRequest(w.out[:0], method, w.URL.Host, w.path+path, header, body)
	return w.conn.Send(ctx, w.out)
}

// secret derives the visitor's secret each time: storing millions would take more
// memory than the server uses.
func (w *worker) secret(number int) [fairness.SecretSize]byte {
	var b [40]byte
	copy(b[:], w.key[:])
	binary.BigEndian.PutUint64(b[32:], uint64(number)) //nolint:gosec // not negative
	return sha256.Sum256(b[:])
}

// read counts an answer, and returns what it means for the visitor.
func (w *worker) read(g *guest, k kind, a rawhttp.Answer) visitor.Answer {
	switch {
	case k == join && a.Status == http.StatusOK, k == join && a.Status == http.StatusCreated:
		if a.Status == http.StatusOK {
			w.again++ // an earlier attempt had succeeded
		}
		w.joined.Add(1)
		return visitor.Answer{Pause: pollPause}
	case k == ticket && a.Status == http.StatusOK:
		return w.readTicket(g, a.Body)
	case k == state && a.Status == http.StatusOK:
		return readState(g, a.Body)
	case k == claim && a.Status == http.StatusOK:
		w.admitted.Add(1)
		return visitor.Answer{}
	case k == claim && a.Status == http.StatusAccepted: // the public state was ahead of the ticket's
		return visitor.Answer{Outcome: visitor.Again, Pause: retryPause}
	case k == claim && a.Status == http.StatusGone:
		w.expired++
		return visitor.Answer{Outcome: visitor.Over}
	}
	w.fail(k, a.Status)
	if a.Status == http.StatusConflict || a.Status == http.StatusTooManyRequests ||
		a.Status >= http.StatusInternalServerError {
		return visitor.Answer{Outcome: visitor.Again, Pause: max(a.Retry, retryPause)}
	}
	return visitor.Answer{Outcome: visitor.Over}
}

func (w *worker) readTicket(g *guest, body []byte) visitor.Answer {
	switch {
	case bytes.Contains(body, []byte(`"status":"called"`)):
		return visitor.Answer{Outcome: visitor.Called}
	case bytes.Contains(body, []byte(`"status":"skipped"`)):
		w.expired++
		return visitor.Answer{Outcome: visitor.Over}
	}
	g.position, _ = number(body, "position")
	return visitor.Answer{Outcome: visitor.Again, Pause: pauseOf(body, "poll_after_ms")}
}

func readState(g *guest, body []byte) visitor.Answer {
	switch called, ok := number(body, "called"); {
	case ok && called >= g.position:
		return visitor.Answer{Outcome: visitor.Called}
	case bytes.Contains(body, []byte(`"phase":"ended"`)):
		return visitor.Answer{Outcome: visitor.Over}
	}
	return visitor.Answer{Outcome: visitor.Again, Pause: pauseOf(body, "after_ms")}
}

func (w *worker) fail(k kind, status int) {
	w.failures[failure{k, status}]++
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

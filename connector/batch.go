package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// sessionUpdate is a touch or release of a session.
type sessionUpdate struct {
	state   *roomState
	pass    [16]byte
	maxEnds int64
	token   string
}

// outbox queues touches and releases by room.
type outbox struct {
	full chan struct{} // signals that a room has a full batch

	mu    sync.Mutex // guards the fields below
	rooms map[*roomState]*roomQueue
	n     int // updates of all rooms
}

// roomQueue is the updates for one room, by pass.
type roomQueue struct {
	touch, release map[[16]byte]sessionUpdate
	isSending      bool // a batch is being sent
}

// batch is the updates of one request.
type batch struct{ touch, release []sessionUpdate }

func newOutbox() *outbox {
	return &outbox{full: make(chan struct{}, 1), rooms: map[*roomState]*roomQueue{}}
}

func (l *roomQueue) size() int { return len(l.touch) + len(l.release) }

func (b *batch) size() int { return len(b.touch) + len(b.release) }

// queueOf returns the queue of a room. The caller holds the lock.
func (o *outbox) queueOf(room *roomState) *roomQueue {
	l := o.rooms[room]
	if l == nil {
		l = &roomQueue{touch: map[[16]byte]sessionUpdate{}, release: map[[16]byte]sessionUpdate{}}
		o.rooms[room] = l
	}
	return l
}

// add queues an update. False: the outbox is full.
func (o *outbox) add(j sessionUpdate, isRelease bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n >= maxQueued {
		return false
	}
	o.put(j, isRelease)
	if l := o.queueOf(j.state); l.size() >= maxBatch && !l.isSending {
		notify(o.full)
	}
	return true
}

// put queues an update; a release replaces a touch. The caller holds the lock.
func (o *outbox) put(j sessionUpdate, isRelease bool) {
	l := o.queueOf(j.state)
	before := l.size()
	if isRelease {
		delete(l.touch, j.pass)
		l.release[j.pass] = j
	} else if _, ok := l.release[j.pass]; !ok {
		l.touch[j.pass] = j
	}
	o.n += l.size() - before
}

// notify signals a channel of capacity 1.
func notify(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// take returns a batch for each room that has none in flight, releases first.
func (o *outbox) take() map[*roomState]batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[*roomState]batch{}
	for room, l := range o.rooms {
		if l.isSending {
			continue
		}
		var b batch
		b.release = takeSome(l.release, maxBatch)
		b.touch = takeSome(l.touch, maxBatch-len(b.release))
		o.n -= b.size()
		l.isSending = true
		all[room] = b
	}
	return all
}

// takeSome removes and returns up to most updates.
func takeSome(jobs map[[16]byte]sessionUpdate, most int) (list []sessionUpdate) {
	for pass, j := range jobs {
		if len(list) == most {
			break
		}
		list = append(list, j)
		delete(jobs, pass)
	}
	return list
}

// done ends the sending of a batch, and requeues the updates in b.
func (o *outbox) done(room *roomState, b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, j := range b.release {
		o.put(j, true)
	}
	for _, j := range b.touch {
		o.put(j, false)
	}
	l := o.queueOf(room)
	l.isSending = false
	switch n := l.size(); {
	case n == 0:
		delete(o.rooms, room)
	case n >= maxBatch && b.size() == 0: // the room accepts batches
		notify(o.full)
	}
}

// clear drops all updates, and returns their number.
func (o *outbox) clear() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.n
	o.rooms, o.n = map[*roomState]*roomQueue{}, 0
	return n
}

// touch queues a touch of a session, at most once in touchInterval. False: it was
// touched within that time, or the outbox is full.
func (c *Connector) touch(rm *room, s *session, now time.Time) bool {
	again := min(touchInterval, time.Duration(s.length/3)*time.Millisecond)
	if !c.touches.mayTouch(s.pass, now, again) {
		return false
	}
	if s.isUnqueued() {
		rm.state.gate.noteActive(s, now)
		return true
	}
	return c.queue(sessionUpdate{rm.state, s.pass, s.maxEnds, s.token}, false)
}

// release ends a session here at once, and queues its release at the room.
func (c *Connector) release(rm *room, s *session) {
	c.ended.add(s.pass, s.maxEnds, c.options.Now().UnixMilli())
	c.counts.released.Add(1)
	if s.isUnqueued() {
		rm.state.gate.end(s)
		return
	}
	c.queue(sessionUpdate{rm.state, s.pass, s.maxEnds, s.token}, true)
}

// queue queues an update. It does not block: what does not fit is dropped and counted.
func (c *Connector) queue(j sessionUpdate, isRelease bool) bool {
	if c.outbox.add(j, isRelease) {
		return true
	}
	c.counts.dropped.Add(1)
	return false
}

// deliver sends batches to the rooms, once per batchInterval or when one is full,
// until ctx ends, and then sends the rest as long as rooms answer.
func (c *Connector) deliver(ctx context.Context) {
	tick := time.NewTicker(c.options.batchInterval)
	defer tick.Stop()
	var underWay sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-c.outbox.full:
		case <-ctx.Done():
		}
		for st, b := range c.outbox.take() {
			underWay.Go(func() { c.sendBatch(ctx, st, b) })
		}
	}
	underWay.Wait()
	for c.sendAll(ctx) {
	}
	if n := c.outbox.clear(); n > 0 {
		c.counts.dropped.Add(uint64(n))
		c.options.Log.Error("cannot deliver session updates: rooms are out of reach", "lost", n)
	}
}

// sendAll sends a batch to each room. False: nothing to send, or no room answered.
func (c *Connector) sendAll(ctx context.Context) bool {
	var all sync.WaitGroup
	var answered atomic.Bool
	for st, b := range c.outbox.take() {
		all.Go(func() {
			if c.sendBatch(ctx, st, b) {
				answered.Store(true)
			}
		})
	}
	all.Wait()
	return answered.Load()
}

// sendBatch sends one batch to a room, and requeues it if the room is out of reach.
func (c *Connector) sendBatch(ctx context.Context, st *roomState, b batch) bool {
	err := errFault // a batch that panics is dropped: it would do so again
	c.guarded("sending a batch", func() { err = c.postBatch(ctx, st, b) })
	if errors.Is(err, errUnreachable) {
		c.outbox.done(st, b)
		return false
	}
	c.outbox.done(st, batch{})
	if err != nil {
		c.counts.dropped.Add(uint64(b.size()))
		c.options.Log.Error("room refuses session updates", "room", st.url, "lost", b.size(), "err", err)
	}
	return true
}

// batchBody is the body of a batch request, with passes, and of its response, with
// one word for each of them.
type batchBody struct {
	Touch   []string `json:"touch"`
	Release []string `json:"release"`
}

// postBatch sends a batch. Sessions that the room does not extend end here.
// Errors: errUnreachable, errBatch.
func (c *Connector) postBatch(ctx context.Context, st *roomState, b batch) error {
	body, err := json.Marshal(batchBody{tokens(b.touch), tokens(b.release)})
	if err != nil {
		return errBatch
	}
	req := request{method: http.MethodPost, url: st.url + "/sessions/batch", json: body, isVisitorShaped: true}
	status, text, err := c.call(ctx, st, req)
	if err != nil {
		return err
	}
	switch status {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return errUnreachable // retried with the next batch
	default:
		return fmt.Errorf("send session updates: status %d: %w", status, errBatch)
	}
	var said batchBody
	if json.Unmarshal(text, &said) != nil || len(said.Touch) != len(b.touch) || len(said.Release) != len(b.release) {
		return errBatch
	}
	now := c.options.Now().UnixMilli()
	for i, word := range said.Touch {
		if word == "ok" {
			c.counts.touches.Add(1)
		} else {
			c.ended.add(b.touch[i].pass, b.touch[i].maxEnds, now)
		}
	}
	return nil
}

// errBatch is returned when a room's response to a batch does not match it.
var errBatch = errors.New("malformed response")

func tokens(jobs []sessionUpdate) []string {
	list := make([]string, len(jobs))
	for i, j := range jobs {
		list[i] = j.token
	}
	return list
}

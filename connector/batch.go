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

// job is something to tell a room about a session.
type sessionUpdate struct {
	state   *roomState
	pass    [16]byte
	maxEnds int64
	token   string
}

// outbox is what rooms are to be told, by room.
type outbox struct {
	full chan struct{} // a room's batch is

	mu    sync.Mutex // guards what follows
	rooms map[*roomState]*roomQueue
	n     int // in all of them
}

// letters are what one room is to be told, by pass.
type roomQueue struct {
	touch, release map[[16]byte]sessionUpdate
	isSending      bool // a batch is
}

// batch is letters as they are sent.
type batch struct{ touch, release []sessionUpdate }

func newOutbox() *outbox {
	return &outbox{full: make(chan struct{}, 1), rooms: map[*roomState]*roomQueue{}}
}

func (l *roomQueue) size() int { return len(l.touch) + len(l.release) }

func (b *batch) size() int { return len(b.touch) + len(b.release) }

// of returns the letters to a room. The caller holds the lock.
func (o *outbox) queueOf(room *roomState) *roomQueue {
	l := o.rooms[room]
	if l == nil {
		l = &roomQueue{touch: map[[16]byte]sessionUpdate{}, release: map[[16]byte]sessionUpdate{}}
		o.rooms[room] = l
	}
	return l
}

// add takes a job. False: there are too many.
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

// put keeps a job. Who is released is not touched. The caller holds the lock.
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

// ring has whoever waits for it go on at once.
func notify(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// take returns a batch for each room that has none under way, releases first.
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

// some takes some of the jobs out.
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

// back ends a batch; what was not told is kept.
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
	case n >= maxBatch && b.size() == 0: // it takes what it is told
		notify(o.full)
	}
}

// empty forgets everything, and returns how much that was.
func (o *outbox) clear() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.n
	o.rooms, o.n = map[*roomState]*roomQueue{}, 0
	return n
}

// touch has the room told that a visitor is there, at most once a minute for
// each. False: there is too much to tell, or it was told just now.
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

// release ends a session here at once, and at the room as soon as it hears.
func (c *Connector) release(rm *room, s *session) {
	c.ended.add(s.pass, s.maxEnds, c.options.Now().UnixMilli())
	c.counts.released.Add(1)
	if s.isUnqueued() {
		rm.state.gate.end(s)
		return
	}
	c.queue(sessionUpdate{rm.state, s.pass, s.maxEnds, s.token}, true)
}

// queue takes a job. Visitors do not wait for it: what does not fit is lost
// and counted.
func (c *Connector) queue(j sessionUpdate, isRelease bool) bool {
	if c.outbox.add(j, isRelease) {
		return true
	}
	c.counts.dropped.Add(1)
	return false
}

// deliver tells the rooms what there is, once a second or when there is much,
// until ctx ends, and then what is left as long as rooms answer.
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
		c.options.Log.Error("rooms were not told all, for they are out of reach", "lost", n)
	}
}

// sendAll sends a batch to each room. False: there was none, or nobody answered.
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

// send tells a room one batch. If that is out of reach, it is told later.
func (c *Connector) sendBatch(ctx context.Context, st *roomState, b batch) bool {
	err := errFault // such a batch is lost: it would fail again
	c.guarded("a delivery", func() { err = c.postBatch(ctx, st, b) })
	if errors.Is(err, errUnreachable) {
		c.outbox.done(st, b)
		return false
	}
	c.outbox.done(st, batch{})
	if err != nil {
		c.counts.dropped.Add(uint64(b.size()))
		c.options.Log.Error("room does not take what it is told", "room", st.url, "lost", b.size(), "err", err)
	}
	return true
}

// told is a batch as it is sent, and its answer: a word for each pass.
type batchBody struct {
	Touch   []string `json:"touch"`
	Release []string `json:"release"`
}

// tell tells a room one batch. Sessions that it takes for over are over here.
// Errors: errUnreachable, errBatch.
func (c *Connector) postBatch(ctx context.Context, st *roomState, b batch) error {
	body, err := json.Marshal(batchBody{tokens(b.touch), tokens(b.release)})
	if err != nil {
		return errBatch
	}
	status, text, err := c.call(ctx, st, request{method: http.MethodPost, url: st.url + "/sessions/batch", json: body, isVisitorShaped: true})
	if err != nil {
		return err
	}
	switch status {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return errUnreachable // it is told later
	default:
		return fmt.Errorf("tell of sessions: status %d: %w", status, errBatch)
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

// errBatch is returned when a room answers a batch with something else than
// words for it.
var errBatch = errors.New("the answer is none")

func tokens(jobs []sessionUpdate) []string {
	list := make([]string, len(jobs))
	for i, j := range jobs {
		list[i] = j.token
	}
	return list
}

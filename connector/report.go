package connector

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// reporters is how many touches and releases are under way at once.
const reporters = 4

// job is something to tell a room about a session.
type job struct {
	door  *door
	pass  [16]byte
	most  int64
	token string
	what  string // touch, release
}

// touch has the room told that a visitor is there, at most once a minute for
// each. False: the queue is full, or it was told just now.
func (c *Connector) touch(d *door, s *session, now time.Time) bool {
	again := min(touchAgain, time.Duration(s.length/3)*time.Millisecond)
	if !c.touched.begin(s.pass, now, again) {
		return false
	}
	if s.isFree() {
		d.link.gate.stay(s, now)
		return true
	}
	return c.queue(job{d, s.pass, s.most, s.token, "touch"})
}

// release ends a session here at once, and at the room as soon as it hears.
func (c *Connector) release(d *door, s *session) {
	c.over.add(s.pass, s.most, c.options.Now().UnixMilli())
	c.counts.released.Add(1)
	if s.isFree() {
		d.link.gate.end(s)
		return
	}
	c.queue(job{d, s.pass, s.most, s.token, "release"})
}

// queue takes a job. Visitors do not wait for it: what does not fit is lost
// and counted.
func (c *Connector) queue(j job) bool {
	select {
	case c.jobs <- j:
		return true
	default:
		c.counts.dropped.Add(1)
		return false
	}
}

// report does jobs until ctx ends, and then those that are left as long as
// rooms answer.
func (c *Connector) report(ctx context.Context) {
	for {
		select {
		case j := <-c.jobs:
			_ = c.tell(ctx, j) // known and counted
		case <-ctx.Done():
			for len(c.jobs) > 0 {
				select {
				case j := <-c.jobs:
					if c.tell(ctx, j) != nil {
						return
					}
				default:
				}
			}
			return
		}
	}
}

// tell does one job. A session that the room takes for over is over here.
// Error: errUnreachable.
func (c *Connector) tell(ctx context.Context, j job) error {
	status, _, err := c.call(ctx, j.door, http.MethodPost, j.door.URL+"/sessions/"+j.what, j.token)
	switch {
	case err != nil:
		return err
	case status == http.StatusGone, status == http.StatusUnauthorized:
		c.over.add(j.pass, j.most, c.options.Now().UnixMilli())
	case status == http.StatusOK && j.what == "touch":
		c.counts.touches.Add(1)
	case status != http.StatusOK:
		c.options.Log.Warn("room does not take what it is told", "room", j.door.name, "what", j.what, "status", status)
	}
	return nil
}

// passSet is a set of passes. What does not fit is forgotten, first what has
// expired: then a room is asked or told again.
type passSet struct {
	mu   sync.RWMutex
	till map[[16]byte]int64 // when it does not matter any more
}

func (o *passSet) has(pass [16]byte) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, ok := o.till[pass]
	return ok
}

func (o *passSet) add(pass [16]byte, till, now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.till == nil {
		o.till = map[[16]byte]int64{}
	}
	if len(o.till) >= maxOver {
		o.shrink(now)
	}
	o.till[pass] = till
}

// shrink forgets what has expired, or else about a tenth of all.
func (o *passSet) shrink(now int64) {
	for pass, till := range o.till {
		if till <= now {
			delete(o.till, pass)
		}
	}
	for pass := range o.till {
		if len(o.till) < maxOver*9/10 {
			return
		}
		delete(o.till, pass)
	}
}

// touchTimes is when sessions were touched here.
type touchTimes struct {
	mu sync.Mutex
	at map[[16]byte]time.Time
}

// begin tells whether a session is to be touched now.
func (t *touchTimes) begin(pass [16]byte, now time.Time, again time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.at[pass]; ok && now.Sub(at) < again {
		return false
	}
	if t.at == nil || len(t.at) >= maxOver {
		kept := map[[16]byte]time.Time{}
		for pass, at := range t.at {
			if now.Sub(at) < touchAgain && len(kept) < maxOver/2 {
				kept[pass] = at
			}
		}
		t.at = kept
	}
	t.at[pass] = now
	return true
}

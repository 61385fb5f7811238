package room

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
)

// How far the database's clock may be from where this machine's own count of the
// seconds expects it, and what is done about one that is further off.
const (
	maxClockStep = 5 * time.Second
	viewEvery    = time.Second            // other servers are told what this one sees
	judgeEvery   = 200 * time.Millisecond // while a step is pending
	viewFresh    = 3 * time.Second        // what another server saw then counts
	viewPatience = 1500 * time.Millisecond
	stepConfirms = 30 * time.Second // a step that lasts so long is taken if all machines' clocks agree with it
)

// AnyClockStep is an Options.MaxClockStep that takes the database's clock as it is.
const AnyClockStep = time.Duration(-1)

// clock is the time that rooms go by: the database's, which is the same for all
// servers, unless it jumps. Between two answers, and after a jump, it goes on by
// this machine's monotonic clock. The zero value tells this machine's time until
// the database has told its own.
type clock struct {
	most  time.Duration // a larger step is a jump; 0: maxClockStep, negative: none is
	fix   atomic.Pointer[fix]
	ahead atomic.Int64 // of this machine's wall clock, in nanoseconds

	mu   sync.Mutex // guards step; fix changes under it
	step step
}

// fix is what the time was at a moment of this machine.
type fix struct{ at, ref time.Time }

// step is a jump of the database's clock that is not taken. The zero value is none.
type step struct {
	by      time.Duration // beyond the time that rooms go by
	raw     time.Time     // what the database's clock said at last
	since   time.Time     // by this machine's clock
	refused bool          // it is known not to be this machine that stood still
}

// Now returns the time that rooms go by.
func (c *clock) Now() time.Time {
	f := c.fix.Load()
	if f == nil {
		return time.Now()
	}
	return f.at.Add(time.Since(f.ref))
}

func (c *clock) limit() time.Duration {
	if c.most == 0 {
		return maxClockStep
	}
	return c.most
}

// accept goes by a time that was true at a moment of this machine.
func (c *clock) accept(at, ref time.Time) {
	c.step = step{}
	c.put(at, ref)
}

func (c *clock) put(at, ref time.Time) {
	c.fix.Store(&fix{at, ref})
	c.ahead.Store(int64(at.Sub(ref.Round(0))))
}

// observe takes what the database's clock said between two moments of this
// machine, and returns the time that rooms go by then.
func (c *clock) observe(raw, asked, answered time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	half := answered.Sub(asked) / 2
	middle, f := asked.Add(half), c.fix.Load()
	if f == nil || c.most < 0 {
		c.accept(raw, middle)
		return raw
	}
	expected := f.at.Add(middle.Sub(f.ref))
	by := raw.Sub(expected)
	if by.Abs() <= c.limit()+half {
		c.accept(raw, middle)
		return raw
	}
	if c.step.since.IsZero() {
		c.step.since = answered
	}
	c.step.by, c.step.raw = by, raw
	c.put(expected, middle)
	return expected
}

// stamp returns the time of an append while the database's clock says raw.
// [ErrClock] until it is known whose clock jumped.
func (c *clock) stamp(raw time.Time) (time.Time, error) {
	now := time.Now()
	at := c.observe(raw, now, now)
	if s := c.pending(); s.by != 0 && !s.refused {
		return at, ErrClock
	}
	return at, nil
}

// pending returns the step that is not taken.
func (c *clock) pending() step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.step
}

// take goes by the database's clock after all.
func (c *clock) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fix.Load()
	c.accept(f.at.Add(c.step.by), f.ref)
}

// refuse goes on without the step.
func (c *clock) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step.refused = c.step.by != 0
}

// join takes over the step that other servers refuse, at the start.
func (c *clock) join(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fix.Load()
	c.step = step{by: by, raw: f.at, since: time.Now(), refused: true}
	c.put(f.at.Add(-by), f.ref)
}

// watcher decides about jumps of the database's clock, with the other servers.
// The ticker alone uses it.
type watcher struct {
	node      uuid.UUID
	known     map[uuid.UUID]bool // servers that saw the clock before the step
	told      time.Time          // the other servers, at last
	confirmed int64              // the latest confirmation before the step
	isLogged  bool               // that a step is refused
}

// watchClock exchanges views of the database's clock, and decides about a step.
func (rs *Rooms) watchClock(ctx context.Context, raw time.Time) error {
	w, s := &rs.watcher, rs.clock.pending()
	isFirst := w.told.IsZero()
	if rs.clock.most < 0 || time.Since(w.told) < judgeEvery || s.by == 0 && !w.isLogged && time.Since(w.told) < viewEvery {
		return nil
	}
	own := pglog.ClockView{Node: w.node, Raw: raw, Step: s.by, Agrees: time.Until(raw).Abs() <= rs.clock.limit()}
	others, confirmed, err := rs.Logs.ExchangeClock(ctx, own)
	if err != nil {
		return err
	}
	w.told = time.Now()
	if isFirst {
		w.confirmed = confirmed
		if by, ok := sharedStep(others, rs.clock.limit()); ok {
			rs.clock.join(by)
		}
		s = rs.clock.pending()
	}
	switch {
	case s.by != 0:
		rs.judge(s, own, others, confirmed)
	case w.isLogged:
		w.isLogged = false
		rs.Log.Info("database's clock is back where rooms expect it")
	}
	if rs.clock.pending().by == 0 {
		w.confirmed, w.known = confirmed, map[uuid.UUID]bool{}
		for _, o := range others {
			w.known[o.Node] = true
		}
	}
	return nil
}

// sharedStep returns the step that all other servers refuse, if there are some.
func sharedStep(others []pglog.ClockView, most time.Duration) (by time.Duration, ok bool) {
	for _, o := range others {
		if o.Step.Abs() <= most {
			return 0, false
		}
		by, ok = o.Step, true
	}
	return by, ok
}

// judge takes a step or refuses it.
func (rs *Rooms) judge(s step, own pglog.ClockView, others []pglog.ClockView, confirmed int64) {
	w, waited := &rs.watcher, time.Since(s.since)
	witnesses := slices.DeleteFunc(slices.Clone(others), func(o pglog.ClockView) bool {
		return !w.known[o.Node] || s.raw.Sub(o.Raw).Abs() > viewFresh // one that has just started has nothing to compare with
	})
	_, isShared := sharedStep(witnesses, rs.clock.limit())
	agrees := own.Agrees
	for _, o := range others {
		agrees = agrees && o.Agrees
	}
	take := func(why string) {
		rs.clock.take()
		w.isLogged = false
		rs.Log.Warn("jump of the database's clock is taken", "by", s.by.Round(time.Millisecond), "after", waited.Round(time.Millisecond), "why", why)
	}
	switch {
	case len(witnesses) > 0 && !isShared:
		take("another server sees none: this machine stood still")
	case confirmed > w.confirmed:
		take("confirmed")
	case waited >= stepConfirms && agrees:
		take("the clocks of all servers agree with it")
	case isShared || waited >= viewPatience:
		rs.clock.refuse()
		if !w.isLogged {
			w.isLogged = true
			rs.Log.Error("database's clock has jumped: rooms go on by the time before; set it right, or confirm it", "by", s.by.Round(time.Millisecond))
		}
	}
}

// ConfirmClock has all servers take the jump of the database's clock that they
// refuse.
func (rs *Rooms) ConfirmClock(ctx context.Context) error { return rs.Logs.ConfirmClock(ctx) }

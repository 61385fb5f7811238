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

// Limits of the difference between the database's clock and the time that this machine expects, and of the
// handling of larger steps.
const (
	maxClockStep = 5 * time.Second
	viewEvery    = time.Second             // how often this server publishes its view of the clock
	judgeEvery   = 200 * time.Millisecond  // the same while a step is pending
	viewFresh    = 3 * time.Second         // maximum age of another server's view
	viewPatience = 1500 * time.Millisecond // how long the other servers may take to report the step
	stepConfirms = 30 * time.Second        // a longer step is followed if all machines' clocks agree with it
)

// AnyClockStep is an Options.MaxClockStep that follows the database's clock wherever it jumps.
const AnyClockStep = time.Duration(-1)

// clock is the time that rooms follow: the database's clock, which all servers share, unless it jumps.
// Between two answers, and after a jump, it continues by this machine's monotonic clock. The zero value shows
// this machine's time until the database has answered.
type clock struct {
	most  time.Duration // largest step that is followed at once; 0: maxClockStep, negative: no limit
	fix   atomic.Pointer[fix]
	ahead atomic.Int64 // of this machine's wall clock, in nanoseconds

	mu   sync.Mutex // guards step, and changes of fix
	step step
}

// fix pairs a time with the moment of this machine's clock at which it was true.
type fix struct{ at, ref time.Time }

// step is a jump of the database's clock that rooms do not follow. The zero value means none.
type step struct {
	by      time.Duration // relative to the time that rooms follow
	raw     time.Time     // latest reading of the database's clock
	since   time.Time     // by this machine's clock
	refused bool          // the database's clock jumped, rather than this machine standing still
}

// Now returns the time that rooms follow.
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

// accept follows a time that was true at ref, and drops the step.
func (c *clock) accept(at, ref time.Time) {
	c.step = step{}
	c.put(at, ref)
}

func (c *clock) put(at, ref time.Time) {
	c.fix.Store(&fix{at, ref})
	c.ahead.Store(int64(at.Sub(ref.Round(0))))
}

// observe takes a reading of the database's clock between two moments of this machine, and returns the time
// that rooms follow then.
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

// stamp returns the time of an append when the database's clock reads raw, or [ErrClock] until it is known
// which clock jumped.
func (c *clock) stamp(raw time.Time) (time.Time, error) {
	now := time.Now()
	at := c.observe(raw, now, now)
	if s := c.pending(); s.by != 0 && !s.refused {
		return at, ErrClock
	}
	return at, nil
}

// pending returns the step that rooms do not follow.
func (c *clock) pending() step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.step
}

// take follows the database's clock after its step.
func (c *clock) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fix.Load()
	c.accept(f.at.Add(c.step.by), f.ref)
}

// refuse continues without the step.
func (c *clock) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step.refused = c.step.by != 0
}

// join adopts, at the start, the step that the other servers refuse.
func (c *clock) join(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fix.Load()
	c.step = step{by: by, raw: f.at, since: time.Now(), refused: true}
	c.put(f.at.Add(-by), f.ref)
}

// watcher decides, together with the other servers, whether to follow a jump of the database's clock. Only
// the ticker uses it.
type watcher struct {
	node      uuid.UUID
	known     map[uuid.UUID]bool // servers that published a view before the step
	told      time.Time          // when this server last published its view
	confirmed int64              // latest confirmation before the step
	isLogged  bool               // the refusal of a step is logged
}

// watchClock exchanges views of the database's clock with the other servers, and decides about a step.
func (rs *Rooms) watchClock(ctx context.Context, raw time.Time) error {
	w, s := &rs.watcher, rs.clock.pending()
	isFirst := w.told.IsZero()
	if rs.clock.most < 0 || time.Since(w.told) < judgeEvery || s.by == 0 && !w.isLogged &&
		time.Since(w.told) < viewEvery {
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
		rs.Log.Info("database's clock agrees with the rooms' time again")
	}
	if rs.clock.pending().by == 0 {
		w.confirmed, w.known = confirmed, map[uuid.UUID]bool{}
		for _, o := range others {
			w.known[o.Node] = true
		}
	}
	return nil
}

// sharedStep returns the step that all other servers refuse, if there are any servers and all refuse one.
func sharedStep(others []pglog.ClockView, most time.Duration) (by time.Duration, ok bool) {
	for _, o := range others {
		if o.Step.Abs() <= most {
			return 0, false
		}
		by, ok = o.Step, true
	}
	return by, ok
}

// judge follows a step or refuses it.
func (rs *Rooms) judge(s step, own pglog.ClockView, others []pglog.ClockView, confirmed int64) {
	w, waited := &rs.watcher, time.Since(s.since)
	witnesses := slices.DeleteFunc(slices.Clone(others), func(o pglog.ClockView) bool {
		// A server that has just started has nothing to compare with.
		return !w.known[o.Node] || s.raw.Sub(o.Raw).Abs() > viewFresh
	})
	_, isShared := sharedStep(witnesses, rs.clock.limit())
	agrees := own.Agrees
	for _, o := range others {
		agrees = agrees && o.Agrees
	}
	take := func(why string) {
		rs.clock.take()
		w.isLogged = false
		rs.Log.Warn("following the jump of the database's clock", "by", s.by.Round(time.Millisecond),
			"after", waited.Round(time.Millisecond), "why", why)
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
			rs.Log.Error("database's clock has jumped: rooms keep the time from before; correct the clock, or confirm it",
				"by", s.by.Round(time.Millisecond))
		}
	}
}

// ConfirmClock makes all servers follow the jump of the database's clock that they refuse.
func (rs *Rooms) ConfirmClock(ctx context.Context) error { return rs.Logs.ConfirmClock(ctx) }

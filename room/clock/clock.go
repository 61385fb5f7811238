// Package clock keeps the time that rooms follow: that of the database, which all servers share. If the
// database's clock jumps, the servers decide together whether to follow it.
//
//	each tick:   database's clock ─► Clock.Observe ─► jump? ─► Watcher.Exchange ─► follow or refuse
//	each append: database's clock ─► Clock.Stamp ─► time of its entries
package clock

import (
	"context"
	"errors"
	"log/slog"
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
	defaultMaxStep = 5 * time.Second
	viewInterval   = time.Second             // how often this server publishes its view of the clock
	stepInterval   = 200 * time.Millisecond  // viewInterval while a step is pending
	maxViewAge     = 3 * time.Second         // an older view of another server is ignored
	viewPatience   = 1500 * time.Millisecond // how long the other servers may take to report the step
	stepPatience   = 30 * time.Second        // a longer step is followed if all machines' clocks agree with it
	maxSkew        = 2 * time.Second         // difference to the database's clock that is worth a warning
)

// AnyStep makes a clock follow the database's clock wherever it jumps.
const AnyStep = time.Duration(-1)

// ErrStep is returned for requests that depend on the database's clock while a jump of it is
// unresolved.
var ErrStep = errors.New("the database's clock has jumped, and it is not known yet which time is right")

// Clock is the time that rooms follow: the database's clock, which all servers share, unless it jumps.
// Between two answers, and after a jump, it continues by this machine's monotonic clock. Until the database
// has answered, it shows this machine's time. It is safe for concurrent use.
type Clock struct {
	limit time.Duration // largest step that is followed at once; negative: no limit
	fix   atomic.Pointer[fix]
	ahead atomic.Int64 // the rooms' time minus this machine's wall clock, in nanoseconds

	mu   sync.Mutex // guards step, and changes of fix
	step step
}

// fix pairs a time with the reading of this machine's clock at that moment.
type fix struct{ at, ref time.Time }

// step is a jump of the database's clock that rooms do not follow. The zero value means none.
type step struct {
	by      time.Duration // length of the jump, relative to the time that rooms follow
	raw     time.Time     // latest reading of the database's clock
	since   time.Time     // time of the jump by this machine's clock
	refused bool          // the database's clock jumped, rather than this machine standing still
}

// New returns a clock that immediately follows steps of the database's clock of up to maxStep; 0: five seconds,
// [AnyStep]: all.
func New(maxStep time.Duration) *Clock {
	if maxStep == 0 {
		maxStep = defaultMaxStep
	}
	return &Clock{limit: maxStep}
}

// Now returns the time that rooms follow.
func (c *Clock) Now() time.Time {
	f := c.fix.Load()
	if f == nil {
		return time.Now()
	}
	return f.at.Add(time.Since(f.ref))
}

// accept sets the clock to a time that was correct at ref, and drops the step.
func (c *Clock) accept(at, ref time.Time) {
	c.step = step{}
	c.put(at, ref)
}

func (c *Clock) put(at, ref time.Time) {
	c.fix.Store(&fix{at, ref})
	c.ahead.Store(int64(at.Sub(ref.Round(0))))
}

// Ahead returns how far the rooms' time is ahead of this machine's clock.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Step returns the jump of the database's clock that rooms do not follow; 0: none.
func (c *Clock) Step() time.Duration { return c.pending().by }

// Observe takes a reading of the database's clock between two moments of this machine, and returns the time
// that rooms follow then.
func (c *Clock) Observe(raw, asked, answered time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	half := answered.Sub(asked) / 2
	middle, f := asked.Add(half), c.fix.Load()
	if f == nil || c.limit < 0 {
		c.accept(raw, middle)
		return raw
	}
	expected := f.at.Add(middle.Sub(f.ref))
	by := raw.Sub(expected)
	if by.Abs() <= c.limit+half {
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

// Stamp returns the time of an append when the database's clock reads raw, or [ErrStep] until it is known which
// clock jumped.
func (c *Clock) Stamp(raw time.Time) (time.Time, error) {
	now := time.Now()
	at := c.Observe(raw, now, now)
	if s := c.pending(); s.by != 0 && !s.refused {
		return at, ErrStep
	}
	return at, nil
}

// pending returns the step that rooms do not follow.
func (c *Clock) pending() step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.step
}

// take follows the database's clock after its step.
func (c *Clock) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fix.Load()
	c.accept(f.at.Add(c.step.by), f.ref)
}

// refuse continues without the step.
func (c *Clock) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step.refused = c.step.by != 0
}

// join adopts the step that the other servers already refuse when this one starts.
func (c *Clock) join(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fix.Load()
	c.step = step{by: by, raw: f.at, since: time.Now(), refused: true}
	c.put(f.at.Add(-by), f.ref)
}

// Watcher decides, together with the other servers, whether to follow a jump of the database's clock. It is not
// safe for concurrent use.
type Watcher struct {
	clock     *Clock
	servers   Servers
	log       *slog.Logger
	node      uuid.UUID          // id of this process
	known     map[uuid.UUID]bool // servers that published a view before the step
	published time.Time          // when this server last published its view
	confirmed int64              // latest confirmation before the step
	isLogged  bool               // the refusal of the step has been logged
	isSkewed  bool               // the difference between the clocks has been logged
}

// Servers exchanges views of the database's clock with the other servers.
type Servers interface {
	// ExchangeClock publishes this server's view. It returns those of the others, and the number of the latest
	// confirmation by an operator.
	ExchangeClock(ctx context.Context, own pglog.ClockView) (others []pglog.ClockView, confirmed int64, err error)
}

// NewWatcher returns a watcher of a clock.
func NewWatcher(c *Clock, servers Servers, log *slog.Logger) *Watcher {
	return &Watcher{clock: c, servers: servers, log: log, node: uuid.New()}
}

// Exchange publishes this server's view of the database's clock, which reads raw, reads the views of the other
// servers, and decides about a step.
func (w *Watcher) Exchange(ctx context.Context, raw time.Time) error {
	s, limit := w.clock.pending(), w.clock.limit
	isFirst, age := w.published.IsZero(), time.Since(w.published)
	if limit < 0 || age < stepInterval || s.by == 0 && !w.isLogged && age < viewInterval {
		return nil
	}
	own := pglog.ClockView{Node: w.node, Raw: raw, Step: s.by, Agrees: time.Until(raw).Abs() <= limit}
	others, confirmed, err := w.servers.ExchangeClock(ctx, own)
	if err != nil {
		return err
	}
	w.published = time.Now()
	if isFirst {
		w.confirmed = confirmed
		if by, ok := sharedStep(others, limit); ok {
			w.clock.join(by)
		}
		s = w.clock.pending()
	}
	switch {
	case s.by != 0:
		w.judge(s, own, others, confirmed)
	case w.isLogged:
		w.isLogged = false
		w.log.Info("database's clock agrees with the rooms' time again")
	}
	if w.clock.pending().by == 0 {
		w.confirmed, w.known = confirmed, map[uuid.UUID]bool{}
		for _, o := range others {
			w.known[o.Node] = true
		}
	}
	return nil
}

// sharedStep returns the step that all other servers refuse, if there are others and they all refuse one.
func sharedStep(others []pglog.ClockView, limit time.Duration) (by time.Duration, ok bool) {
	for _, o := range others {
		if o.Step.Abs() <= limit {
			return 0, false
		}
		by, ok = o.Step, true
	}
	return by, ok
}

// judge decides whether to follow or refuse a step.
func (w *Watcher) judge(s step, own pglog.ClockView, others []pglog.ClockView, confirmed int64) {
	waited := time.Since(s.since)
	witnesses := slices.DeleteFunc(slices.Clone(others), func(o pglog.ClockView) bool {
		// A server that has just started has no earlier time to compare with.
		return !w.known[o.Node] || s.raw.Sub(o.Raw).Abs() > maxViewAge
	})
	_, isShared := sharedStep(witnesses, w.clock.limit)
	agrees := own.Agrees
	for _, o := range others {
		agrees = agrees && o.Agrees
	}
	take := func(why string) {
		w.clock.take()
		w.isLogged = false
		w.log.Warn("following the jump of the database's clock", "by", s.by.Round(time.Millisecond),
			"after", waited.Round(time.Millisecond), "why", why)
	}
	switch {
	case len(witnesses) > 0 && !isShared:
		take("another server sees no jump: this machine stood still")
	case confirmed > w.confirmed:
		take("confirmed")
	case waited >= stepPatience && agrees:
		take("the clocks of all servers agree with it")
	case isShared || waited >= viewPatience:
		w.clock.refuse()
		if !w.isLogged {
			w.isLogged = true
			w.log.Error("database's clock has jumped: rooms keep the time from before; correct the clock, or confirm it",
				"by", s.by.Round(time.Millisecond))
		}
	}
}

// ReportSkew logs when the clocks of the database and this machine begin to differ by more than a usual beacon
// margin. Freezes follow the database's clock: if it is slow, the rounds that they name are already public, and
// only witnesses can tell.
func (w *Watcher) ReportSkew() {
	ahead := w.clock.Ahead()
	if was := w.isSkewed; ahead.Abs() > maxSkew {
		if w.isSkewed = true; !was {
			w.log.Warn("clocks differ: is the database's right?", "database_ahead", ahead.Round(time.Millisecond))
		}
	} else if w.isSkewed = ahead.Abs() > maxSkew/2; was && !w.isSkewed {
		w.log.Info("clocks agree again")
	}
}

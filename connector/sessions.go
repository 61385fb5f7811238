package connector

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/batch"
	"github.com/proofline/proofline/connector/internal/session"
)

// sessions extends and ends sessions at this node, and reports that to their rooms or gates.
type sessions struct {
	store   *session.Store
	sockets *sockets
	outbox  *batch.Outbox
	group   *background.Group
	now     func() time.Time

	released, cut atomic.Uint64
}

// newSessions returns a connector without sessions.
func newSessions(o *Options, group *background.Group) *sessions {
	open := new(sockets)
	store := session.NewStore(o.Key, open)
	outbox := batch.New(batch.Options{
		Interval: o.batchInterval, Sessions: store, Group: group, Now: o.Now, Log: o.Log,
	})
	return &sessions{store: store, sockets: open, outbox: outbox, group: group, now: o.Now}
}

// touch queues a touch of a session, at most once in its touch interval. It returns false if the
// session was touched within that time, or the outbox is full.
func (s *sessions) touch(rm *room, v *session.Session, now time.Time) bool {
	if !s.store.Touch(v, now) {
		return false
	}
	if v.IsUnqueued() {
		rm.state.gate.Touch(v, now)
		return true
	}
	return s.outbox.Touch(rm.state.server, v)
}

// release ends a session here at once, and queues its release at the room.
func (s *sessions) release(rm *room, v *session.Session) {
	s.store.End(v.Pass, v.MaxEnds, s.now())
	s.released.Add(1)
	if v.IsUnqueued() {
		rm.state.gate.End(v)
		return
	}
	s.outbox.Release(rm.state.server, v)
}

// extend extends a session, or adopts the extension by its sockets. It returns false if the session
// was extended a moment ago, and another response carries the cookie.
func (s *sessions) extend(rm *room, v *session.Session) bool {
	now := s.now()
	if s.touch(rm, v, now) {
		v.Slide(now)
		s.sockets.slide(v)
		return true
	}
	ends := s.sockets.Ends(v.Pass)
	if ends <= v.Ends {
		return false
	}
	v.Issued, v.Ends = now.UnixMilli(), ends
	return true
}

// watchSockets checks the upgraded connections at intervals until ctx ends.
func (s *sessions) watchSockets(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.cutSockets(s.now())
		}
	}
}

// cutSockets closes connections whose session has ended, and touches the sessions
// of those that transferred data.
func (s *sessions) cutSockets(now time.Time) {
	for _, one := range s.overdue(now) {
		s.cut.Add(1)
		// Over TLS, closing sends a last message, which a slow client can delay.
		go s.group.Run("closing a connection", func() { _ = one.Close() })
	}
}

// overdue returns the connections whose session has ended, and extends the others.
func (s *sessions) overdue(now time.Time) (list []*socket) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	for pass, of := range s.sockets.sessions {
		for one := range of.sockets {
			if one.holder != 0 { // an open connection counts as use
				s.store.Use(pass, one.holder, now)
			}
		}
		switch ms := now.UnixMilli(); {
		case ms >= of.session.Ends, ms >= of.session.MaxEnds, s.store.HasEnded(pass):
			for one := range of.sockets {
				list = append(list, one)
			}
			delete(s.sockets.sessions, pass) // each is counted once, however long closing takes
		case of.hasMoved.Load() && s.touch(of.room, &of.session, now):
			of.hasMoved.Store(false)
			of.session.Slide(now)
		}
	}
	return list
}

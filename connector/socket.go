package connector

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// sockets are the upgraded connections, by session. The zero value is ready.
type sockets struct {
	mu       sync.Mutex // guards what follows, and what is in it
	sessions map[[16]byte]*upgradedSession
}

// sitting is a session with upgraded connections. Nobody writes a cookie for it
// while there is nothing else, so that it is known here alone how long it goes
// on.
type upgradedSession struct {
	door     *room
	session  session
	sockets  map[*socket]struct{}
	hasMoved atomic.Bool // bytes went either way since the room was told of it
}

// socket is an upgraded connection.
type socket struct {
	net.Conn
	of      *sockets
	session *upgradedSession
	holder  uint64 // the client; 0: nobody counts them
}

// add has a connection end with the session at the latest.
func (s *sockets) add(conn net.Conn, of *admittedRequest) *socket {
	v := of.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[[16]byte]*upgradedSession{}
	}
	all := s.sessions[v.pass]
	if all == nil {
		all = &upgradedSession{door: of.room, session: *v, sockets: map[*socket]struct{}{}}
		s.sessions[v.pass] = all
	}
	all.session.ends = max(all.session.ends, v.ends)
	one := &socket{conn, s, all, of.holder}
	all.sockets[one] = struct{}{}
	return one
}

// drop forgets a connection that is closed.
func (s *sockets) drop(one *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := one.session
	if delete(of.sockets, one); len(of.sockets) == 0 && s.sessions[of.session.pass] == of {
		delete(s.sessions, of.session.pass)
	}
}

// slide has connections go on for as long as a cookie says that their session
// does.
func (s *sockets) slide(v *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.sessions[v.pass]; of != nil {
		of.session.ends = max(of.session.ends, v.ends)
	}
}

// ends returns when a session ends by what its connections do, in ms; 0: it has
// none.
func (s *sockets) ends(pass [16]byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.sessions[pass]; of != nil {
		return of.session.ends
	}
	return 0
}

// watch looks after upgraded connections until ctx ends.
func (c *Connector) watchSockets(ctx context.Context) {
	tick := time.NewTicker(c.options.batchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.cutSockets(c.options.Now())
		}
	}
}

// lookAfterSockets closes the connections whose sessions are over, and has the
// room told of those with something going on.
func (c *Connector) cutSockets(now time.Time) {
	for _, one := range c.overdue(now) {
		c.counts.cut.Add(1)
		go c.guarded("the end of a connection", func() { _ = one.Close() }) // over TLS it says goodbye, which a client may not take for a while
	}
}

// overdue returns the connections whose sessions are over, and has the others go
// on.
func (c *Connector) overdue(now time.Time) (list []*socket) {
	c.sockets.mu.Lock()
	defer c.sockets.mu.Unlock()
	for pass, of := range c.sockets.sessions {
		for one := range of.sockets {
			if one.holder != 0 { // who keeps a connection open has the session
				c.holders.add(pass, one.holder, now)
			}
		}
		switch ms := now.UnixMilli(); {
		case ms >= of.session.ends, ms >= of.session.maxEnds, c.ended.has(pass):
			for one := range of.sockets {
				list = append(list, one)
			}
			delete(c.sockets.sessions, pass) // each is counted once, however long it takes to close
		case of.hasMoved.Load() && c.touch(of.door, &of.session, now):
			of.hasMoved.Store(false)
			of.session.slide(now)
		}
	}
	return list
}

// Read implements [net.Conn].
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.move(n)
	return n, err //nolint:wrapcheck // it is that of the connection
}

// Write implements [net.Conn].
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.move(n)
	return n, err //nolint:wrapcheck // likewise
}

func (s *socket) move(n int) {
	if n > 0 && !s.session.hasMoved.Load() {
		s.session.hasMoved.Store(true)
	}
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.of.drop(s)
	return s.Conn.Close() //nolint:wrapcheck // likewise
}

// CloseWrite ends one direction, which reverse proxies pass on. Error:
// [errors.ErrUnsupported].
func (s *socket) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // likewise
	}
	return errors.ErrUnsupported
}

// through has buffers that came with a connection read and write by way of the
// socket. What is read already stays in them.
func (s *socket) through(buffer *bufio.ReadWriter) {
	_ = buffer.Flush() // its error comes again with the next byte
	buffer.Writer.Reset(s)
	head, _ := buffer.Peek(buffer.Reader.Buffered()) // is there
	head = bytes.Clone(head)
	buffer.Reader.Reset(io.MultiReader(bytes.NewReader(head), s))
	_, _ = buffer.Peek(len(head))
}

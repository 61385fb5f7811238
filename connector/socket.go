package connector

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/proofline/proofline/connector/internal/session"
)

// sockets holds the upgraded connections, by session. The zero value is ready.
type sockets struct {
	mu       sync.Mutex // guards the fields below and their contents
	sessions map[[16]byte]*upgradedSession
}

// upgradedSession is a session with upgraded connections. They extend it without a cookie, so its
// end is known only here.
type upgradedSession struct {
	room     *room
	session  session.Session
	sockets  map[*socket]struct{}
	hasMoved atomic.Bool // data was transferred since the last touch
}

// socket is an upgraded connection.
type socket struct {
	net.Conn
	of      *sockets
	session *upgradedSession
	holder  uint64 // the client; 0: not counted
}

// add registers a connection, which ends with its session.
func (s *sockets) add(conn net.Conn, of *admittedRequest) *socket {
	v := of.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[[16]byte]*upgradedSession{}
	}
	all := s.sessions[v.Pass]
	if all == nil {
		all = &upgradedSession{room: of.room, session: *v, sockets: map[*socket]struct{}{}}
		s.sessions[v.Pass] = all
	}
	all.session.Ends = max(all.session.Ends, v.Ends)
	one := &socket{conn, s, all, of.holder}
	all.sockets[one] = struct{}{}
	return one
}

// drop removes a closed connection.
func (s *sockets) drop(one *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := one.session
	if delete(of.sockets, one); len(of.sockets) == 0 && s.sessions[of.session.Pass] == of {
		delete(s.sessions, of.session.Pass)
	}
}

// slide extends the connections' session to match a new cookie.
func (s *sockets) slide(v *session.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.sessions[v.Pass]; of != nil {
		of.session.Ends = max(of.session.Ends, v.Ends)
	}
}

// Ends returns the end of a session with connections, in ms since 1970; 0: it has
// no connections.
func (s *sockets) Ends(pass [16]byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.sessions[pass]; of != nil {
		return of.session.Ends
	}
	return 0
}

// Read implements [net.Conn].
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.move(n)
	return n, err //nolint:wrapcheck // the connection's error
}

// Write implements [net.Conn].
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.move(n)
	return n, err //nolint:wrapcheck // the connection's error
}

func (s *socket) move(n int) {
	if n > 0 && !s.session.hasMoved.Load() {
		s.session.hasMoved.Store(true)
	}
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.of.drop(s)
	return s.Conn.Close() //nolint:wrapcheck // the connection's error
}

// CloseWrite closes the write side, as reverse proxies do. Error:
// [errors.ErrUnsupported].
func (s *socket) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // the connection's error
	}
	return errors.ErrUnsupported
}

// through redirects the buffers of a hijacked connection to the socket. Data
// already read stays in them.
func (s *socket) through(buffer *bufio.ReadWriter) {
	_ = buffer.Flush() // an error repeats with the next write
	buffer.Writer.Reset(s)
	head, _ := buffer.Peek(buffer.Reader.Buffered()) // cannot fail: the bytes are buffered
	head = bytes.Clone(head)
	buffer.Reader.Reset(io.MultiReader(bytes.NewReader(head), s))
	_, _ = buffer.Peek(len(head))
}

package main

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// link is a network between a node and its PostgreSQL. It can freeze, and it can lose
// the node: then it drops all traffic but keeps the connections to PostgreSQL open,
// as if the node's machine had vanished.
type link struct {
	URL string // of the database through the link

	target string // path of PostgreSQL's socket

	mu     sync.Mutex // guards the fields below
	moves  *sync.Cond // signals changes of frozen and lost
	frozen bool
	lost   bool
	at     []byte        // text after which the node is lost; empty: never
	gone   chan struct{} // closed when the node is lost
	ends   []io.Closer
}

// newLink opens a link to the database that conn names.
func newLink(t *testing.T, conn string) *link {
	t.Helper()
	u, err := url.Parse(conn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	l := &link{target: filepath.Join(q.Get("host"), ".s.PGSQL."+q.Get("port")), gone: make(chan struct{})}
	l.moves = sync.NewCond(&l.mu)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	l.URL = u.String()
	go func() {
		for {
			node, err := listener.Accept()
			if err != nil {
				return
			}
			go l.join(node)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, c := range l.ends {
			_ = c.Close()
		}
		l.frozen, l.lost = false, false
		l.moves.Broadcast()
	})
	return l
}

func (l *link) join(node net.Conn) {
	database, err := net.Dial("unix", l.target)
	if err != nil {
		_ = node.Close()
		return
	}
	l.mu.Lock()
	l.ends = append(l.ends, node, database)
	l.mu.Unlock()
	go l.pump(database, node, true)
	l.pump(node, database, false)
}

// pump copies one direction of a connection, including its end.
func (l *link) pump(to, from net.Conn, fromNode bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !l.passes(buffer[:n], to, fromNode) {
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// passes waits while the link is frozen, and then writes the data; it returns false
// when the node is lost.
func (l *link) passes(piece []byte, to net.Conn, fromNode bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.frozen && !l.lost {
		l.moves.Wait()
	}
	if l.lost {
		return false
	}
	at := bytes.Index(piece, l.at)
	if fromNode && len(l.at) > 0 && at >= 0 {
		piece = piece[:at+len(l.at)]
		l.lost = true
		close(l.gone)
		l.moves.Broadcast()
	}
	_, _ = to.Write(piece)
	return !l.lost
}

// loseAfter loses the node as soon as it has sent a text.
func (l *link) loseAfter(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = []byte(text)
}

// freeze freezes the link, or unfreezes it.
func (l *link) freeze(frozen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = frozen
	l.moves.Broadcast()
}

// listens reports whether a program listens on a port of this machine.
func listens(port string) bool {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	return err == nil && conn.Close() == nil
}

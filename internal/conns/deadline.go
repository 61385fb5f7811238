package conns

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// LazyDeadlines returns a listener whose connections set their deadlines late. net/http sets four
// deadlines a request, nearly all of them later than the one before, and each costs a change of a
// timer in the runtime. These connections keep a timer that ends too early, and set it anew when a
// read or write meets it: once in a while instead of at every request. Deadlines are as exact as
// without.
func LazyDeadlines(l net.Listener) net.Listener { return lazyListener{l} }

type lazyListener struct{ net.Listener }

func (l lazyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &lazyConn{Conn: conn}
	c.read.set, c.write.set = conn.SetReadDeadline, conn.SetWriteDeadline
	return c, nil
}

type lazyConn struct {
	net.Conn
	read, write deadline
}

// deadline is the deadline of one direction of a connection.
type deadline struct {
	set func(time.Time) error // sets the connection's timer

	mu     sync.Mutex // guards the fields below
	wanted time.Time  // zero: none
	timer  time.Time  // what the connection's timer is set to; zero: it is off
}

// want sets the deadline. The timer is set if it would end too late, or is off.
func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if t.IsZero() || !d.timer.IsZero() && !t.Before(d.timer) {
		return nil
	}
	return d.arm(t)
}

// extend sets a timer that has ended to the deadline, and reports whether that is still to come.
func (d *deadline) extend() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	return d.arm(d.wanted) == nil
}

func (d *deadline) arm(t time.Time) error {
	d.timer = t
	return d.set(t)
}

func (c *lazyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.read.extend() {
			return n, err
		}
	}
}

func (c *lazyConn) Write(b []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if !errors.Is(err, os.ErrDeadlineExceeded) || !c.write.extend() {
			return written, err
		}
	}
}

func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.want(t), c.write.want(t))
}

func (c *lazyConn) SetReadDeadline(t time.Time) error { return c.read.want(t) }

func (c *lazyConn) SetWriteDeadline(t time.Time) error { return c.write.want(t) }

// CloseWrite ends the sending half of a TCP connection. net/http does so to let the client read a
// last response.
func (c *lazyConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

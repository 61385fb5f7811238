//go:build unix

package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// narrow is a listener whose connections have small buffers.
type narrow struct{ net.Listener }

// Accept implements [net.Listener].
func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(1)
	}
	return c, err
}

// TestEventsUnread checks that clients that do not read their streams lose them, and delay neither other
// clients nor the server's shutdown.
func TestEventsUnread(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *Options) { o.MaxStreams = 20 })
	s.create(`{"slug":"sale","title":"` + strings.Repeat("long ", 16) + `","windows":[{"length":"24h"}]}`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, narrow{l}) }()
	for range 10 {
		c, err := (&net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1) })
		}}).Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprint(c, "GET /r/sale/events HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all listen", func() bool { return s.feed.open.Load() == 10 })
	eventually(t, "clients that do not read have lost their streams", func() bool {
		s.post("/r/sale/join", "").want(http.StatusCreated)
		return s.feed.open.Load() == 0
	})
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("streams hold up the server's end")
	}
}

package conns

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestShare checks that a network gets its share of the connections, that others can still connect,
// and that closed connections no longer count.
func TestShare(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	share := New(func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.2.1") },
		slog.New(slog.NewTextHandler(&log, nil)))
	if share.most < 1 || share.most > 1<<18 {
		t.Fatalf("%d connections", share.most)
	}
	share.most = 5
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	s.Config.ConnState = share.Watch
	s.StartTLS()
	defer s.Close()
	ask := func(from string) (net.Conn, error) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone() //nolint:errcheck,forcetypeassert // a test server's
		config.ServerName = "example.com"
		conn, err := (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(ctx, "tcp",
			s.Listener.Addr().String())
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return conn, err
	}
	var open []net.Conn
	for i := range share.most {
		conn, err := ask(fmt.Sprintf("127.0.0.%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	for range 3 {
		if _, err := ask("127.0.0.77"); err == nil {
			t.Error("one connection more")
		}
	}
	for range 2 * share.most {
		conn, err := ask("127.0.2.1")
		if err != nil {
			t.Fatalf("one that is exempt: %v", err)
		}
		defer conn.Close()
	}
	conn, err := ask("127.0.1.1")
	if err != nil {
		t.Fatalf("another network: %v", err)
	}
	defer conn.Close()
	open[0].Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := ask("127.0.0.1"); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a connection that is closed counts")
		}
	}
	share.mu.Lock()
	defer share.mu.Unlock()
	if n := strings.Count(log.String(), "network=127.0.0.0/24"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

package conns

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// lazyPair returns both ends of a TCP connection. The server's end has lazy deadlines, and counts
// how often its timers are set.
func lazyPair(t *testing.T) (client net.Conn, server *lazyConn, sets *atomic.Int64) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lazy := LazyDeadlines(l)
	t.Cleanup(func() { _ = lazy.Close() })
	if client, err = new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	conn, err := lazy.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(client.Close(), conn.Close()) })
	server, sets = conn.(*lazyConn), new(atomic.Int64)
	for _, d := range []*deadline{&server.read, &server.write} {
		set := d.set
		d.set = func(at time.Time) error {
			sets.Add(1)
			return set(at)
		}
	}
	return client, server, sets
}

// TestLazyRead checks that a read ends at its deadline, whatever was wanted before.
func TestLazyRead(t *testing.T) {
	t.Parallel()
	const soon, later = 50 * time.Millisecond, 150 * time.Millisecond
	for name, wants := range map[string][]time.Duration{
		"one": {later}, "later": {soon, later}, "earlier": {time.Hour, later}, "none between": {soon, 0, later},
		"past before": {-time.Hour, later}, "past and none before": {-time.Hour, 0, later},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, server, _ := lazyPair(t)
			var at time.Time
			for _, after := range wants {
				if at = time.Now().Add(after); after == 0 {
					at = time.Time{}
				}
				if err := server.SetReadDeadline(at); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().Before(at) {
				t.Errorf("%v, %v before the deadline", err, time.Until(at))
			}
		})
	}
}

// TestLazyReadInterrupted checks that a deadline in the past ends a read in progress, and that the
// next read gets data, as net/http needs it.
func TestLazyReadInterrupted(t *testing.T) {
	t.Parallel()
	client, server, _ := lazyPair(t)
	for range 100 {
		ended := make(chan error, 1)
		go func() {
			_, err := server.Read(make([]byte, 1))
			ended <- err
		}()
		if err := server.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("interrupted: %v", err)
		}
		if err := server.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte{7}); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if _, err := server.Read(got); err != nil || got[0] != 7 {
			t.Fatalf("afterwards: %v, %v", got, err)
		}
	}
}

// TestLazyTimers checks that the deadlines of many requests on a connection set its timers once.
func TestLazyTimers(t *testing.T) {
	t.Parallel()
	client, server, sets := lazyPair(t)
	for range 1000 {
		for _, after := range []time.Duration{10 * time.Second, 2 * time.Minute} {
			if err := server.SetDeadline(time.Now().Add(after)); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			if _, err := server.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := sets.Load(); n != 2 {
		t.Errorf("the timers were set %d times", n)
	}
}

// TestLazyWrite checks that a write which outlasts a timer, but not its deadline, loses nothing.
func TestLazyWrite(t *testing.T) {
	t.Parallel()
	client, server, _ := lazyPair(t)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	for _, after := range []time.Duration{20 * time.Millisecond, time.Minute} {
		if err := server.SetWriteDeadline(time.Now().Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	wrote := make(chan error, 1)
	go func() {
		n, err := server.Write(text)
		if err == nil && n != len(text) {
			err = io.ErrShortWrite
		}
		wrote <- err
	}()
	time.Sleep(50 * time.Millisecond) // the first timer ends within the write
	got := make([]byte, len(text))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the client got other bytes, %v", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if err := server.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Write(text); !errors.Is(err, os.ErrDeadlineExceeded) || n == len(text) {
		t.Errorf("a client that reads nothing: wrote %d bytes, %v", n, err)
	}
}

// TestLazyCloseWrite checks that the client reads what was sent before the end of the sending half,
// although it has sent what the server does not read.
func TestLazyCloseWrite(t *testing.T) {
	t.Parallel()
	client, server, _ := lazyPair(t)
	if _, err := client.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("the end")); err != nil {
		t.Fatal(err)
	}
	if err := server.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(client); err != nil || string(text) != "the end" {
		t.Errorf("the client reads %q, %v", text, err)
	}
}

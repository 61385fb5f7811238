//go:build unix

package pgtest

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Switch is an address that forwards to one PostgreSQL at a time, like a load balancer or virtual
// IP address. A failover redirects it, and a fault cuts it off. It is safe for concurrent use.
type Switch struct {
	listener net.Listener

	mu    sync.Mutex // guards the fields below
	to    *Server    // nil: cut off
	conns map[net.Conn]struct{}
	mute  chan struct{} // closed while bytes flow
}

// NewSwitch returns a switch that forwards to a server.
func NewSwitch(t testing.TB, to *Server) *Switch {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	s := &Switch{listener: l, to: to, conns: map[net.Conn]struct{}{}, mute: make(chan struct{})}
	close(s.mute)
	go s.accept()
	t.Cleanup(func() { _ = l.Close(); s.Hear(); s.Cut() })
	return s
}

// URL returns the superuser's connection string through the switch.
func (s *Switch) URL() string {
	port := s.listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	return "postgres://postgres@127.0.0.1:" + strconv.Itoa(port) + "/postgres?sslmode=disable"
}

// Cut closes all connections and refuses new ones until Lead is called.
func (s *Switch) Cut() { s.Lead(nil) }

// Lead closes all connections and forwards new ones to another server.
func (s *Switch) Lead(to *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
	for c := range s.conns {
		_ = c.Close()
	}
	clear(s.conns)
}

// Mute holds back all bytes while connections stay open, like a network that drops all packets.
// Hear ends it.
func (s *Switch) Mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = make(chan struct{})
}

// Hear ends a Mute.
func (s *Switch) Hear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.mute:
	default:
		close(s.mute)
	}
}

func (s *Switch) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		to := s.to
		s.mu.Unlock()
		go s.connect(client, to)
	}
}

// connect copies bytes in both directions until one end closes.
func (s *Switch) connect(client net.Conn, to *Server) {
	defer client.Close()
	if to == nil {
		return
	}
	config, err := pgx.ParseConfig(to.URL())
	if err != nil {
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "unix", config.Host+"/.s.PGSQL."+
		strconv.Itoa(int(config.Port)))
	if err != nil {
		return
	}
	defer server.Close()
	s.mu.Lock()
	if s.to != to {
		s.mu.Unlock()
		return
	}
	s.conns[client], s.conns[server] = struct{}{}, struct{}{}
	s.mu.Unlock()
	var ends sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		ends.Go(func() {
			_, _ = io.Copy(&valve{s, pair[0]}, pair[1])
			_ = pair[0].Close()
			_ = pair[1].Close()
		})
	}
	ends.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, client)
	delete(s.conns, server)
}

// valve is a connection that holds back writes while its switch is muted.
type valve struct {
	s *Switch
	net.Conn
}

// Write waits until the switch is not muted.
func (v *valve) Write(b []byte) (int, error) {
	v.s.mu.Lock()
	mute := v.s.mute
	v.s.mu.Unlock()
	<-mute
	return v.Conn.Write(b)
}

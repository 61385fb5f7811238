// Package conns limits how many connections one network, an IPv4 /24 or an IPv6 /48, may have open
// to a server. Each connection takes one of the process's file descriptors, and without a limit one
// machine could use them all. It also makes the deadlines of connections cheap.
package conns

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// A network may use 1/part of the file descriptors, but at least as many connections as a reverse
// proxy needs that is missing from the trusted proxies.
const (
	part  = 4
	least = 1_000
)

// logEvery is the interval at which refused connections are logged.
const logEvery = time.Minute

// Share limits each network's share of a server's connections. Upgraded connections no longer
// count.
type Share struct {
	most   int
	exempt func(netip.Addr) bool
	log    *slog.Logger

	mu     sync.Mutex // guards the fields below
	open   map[netip.Prefix]int
	logged time.Time
}

// New returns the limits of a process. Exempt addresses, such as those of proxies, have no limit.
func New(exempt func(netip.Addr) bool, log *slog.Logger) *Share {
	return &Share{most: max(files()/part, least), exempt: exempt, log: log, open: map[netip.Prefix]int{}}
}

// Watch is a callback for [http.Server.ConnState]. It closes a new connection of a network that has
// reached its limit.
func (s *Share) Watch(conn net.Conn, state http.ConnState) {
	if state == http.StateActive || state == http.StateIdle {
		return
	}
	addr := addrOf(conn)
	network := networkOf(addr)
	switch {
	case !addr.IsValid() || s.exempt(addr):
	case state == http.StateNew && s.add(network, 1) > s.most:
		s.note(network)
		_ = conn.Close() // the server notices it like any closed connection
	case state == http.StateClosed || state == http.StateHijacked:
		s.add(network, -1)
	}
}

func (s *Share) add(network netip.Prefix, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[network] += n
	now := s.open[network]
	if now == 0 {
		delete(s.open, network)
	}
	return now
}

func (s *Share) note(network netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.logged) >= logEvery {
		s.logged = now
		s.log.Warn("a network has too many connections open: if it is your own proxy, see --trusted-proxies",
			"network", network, "most", s.most)
	}
}

// addrOf returns the address of a connection's client, or the zero Addr.
func addrOf(conn net.Conn) netip.Addr {
	peer, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	return peer.Addr().Unmap().WithZone("")
}

func networkOf(addr netip.Addr) netip.Prefix {
	bits := 48
	if addr.Is4() {
		bits = 24
	}
	network, _ := addr.Prefix(bits)
	return network
}

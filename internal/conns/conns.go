// Package conns bounds how many connections one network, a /24 or, in IPv6, a /48,
// has open with a server. Each takes one of the files that the process may open,
// and without a bound one machine could have them all.
package conns

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// part of the files that a process may open is what one network may have, but at
// least as many as a proxy needs that nobody has named.
const (
	part  = 4
	least = 1_000
)

// logEvery is how often the log hears of it.
const logEvery = time.Minute

// Share is what each network may have of a server's connections. Those that are
// upgraded do not count any more.
type Share struct {
	most   int
	exempt func(netip.Addr) bool
	log    *slog.Logger

	mu     sync.Mutex // guards what follows
	open   map[netip.Prefix]int
	logged time.Time
}

// New returns the share of a process. No limit is for addresses that are exempt,
// such as those of proxies.
func New(exempt func(netip.Addr) bool, log *slog.Logger) *Share {
	return &Share{most: max(files()/part, least), exempt: exempt, log: log, open: map[netip.Prefix]int{}}
}

// Watch is for [http.Server.ConnState]. It closes a new connection of a network
// that has its share.
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
		_ = conn.Close() // the server notices, and says so as of any other
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
		s.log.Warn("a network has too many connections open: if it is a proxy of yours, see --trusted-proxies", "network", network, "most", s.most)
	}
}

// addrOf returns the address of a connection's client, the zero Addr for none.
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

package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// clients finds the address of a request's client: the connection's, or, when
// that is a trusted proxy's, the last one in X-Forwarded-For that no trusted
// proxy has. What stands before it was written by the client itself.
type clients struct {
	trusted []netip.Prefix
	log     *slog.Logger
	warned  [2]atomic.Bool // of unknown proxies: at public addresses, at private ones
}

// of returns the address, the zero Addr when there is none.
func (cs *clients) of(r *http.Request) netip.Addr {
	peer := addressOf(r.RemoteAddr)
	forwarded := r.Header["X-Forwarded-For"]
	if len(forwarded) == 0 {
		return peer
	}
	if !cs.isTrusted(peer) {
		cs.warn(peer)
		return peer
	}
	last := peer
	for i := len(forwarded) - 1; i >= 0; i-- {
		for rest, more := forwarded[i], true; more; {
			text := rest
			if at := strings.LastIndexByte(rest, ','); at >= 0 {
				rest, text = rest[:at], rest[at+1:]
			} else {
				more = false
			}
			addr := addressOf(strings.TrimSpace(text))
			if !addr.IsValid() {
				return last
			}
			if last = addr; !cs.isTrusted(addr) {
				return addr
			}
		}
	}
	return last
}

// addressOf reads an address with or without port; the zero Addr: it is neither.
func addressOf(text string) netip.Addr {
	if p, err := netip.ParseAddrPort(text); err == nil {
		return p.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

func (cs *clients) isTrusted(addr netip.Addr) bool {
	for _, network := range cs.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// warn logs the first request that a proxy seems to have passed on without being
// trusted. Clients can send the header as well, from public addresses: so what
// comes from a private one, which is hardly a visitor's, is logged in any case.
func (cs *clients) warn(peer netip.Addr) {
	level, which := slog.LevelInfo, &cs.warned[0]
	if peer.IsLoopback() || peer.IsPrivate() || peer.IsLinkLocalUnicast() || !peer.IsValid() {
		level, which = slog.LevelWarn, &cs.warned[1]
	}
	if !which.Load() && which.CompareAndSwap(false, true) {
		cs.log.Log(context.Background(), level, "X-Forwarded-For is not believed: if this is a proxy of yours, name its network with --trusted-proxies, "+
			"or all its visitors share the limits of one network", "peer", peer)
	}
}

// extractor is of, for echo, which would believe what a client says about itself.
func (cs *clients) extractor() echo.IPExtractor {
	return func(r *http.Request) string {
		if addr := cs.of(r); addr.IsValid() {
			return addr.String()
		}
		return ""
	}
}

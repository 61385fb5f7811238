// Package client determines the network addresses that requests come from.
package client

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// Addresses determines the address of a request's client. It is the connection's address or, if that
// belongs to a trusted proxy, the last address in X-Forwarded-For that does not. Earlier addresses in
// the header are written by the client itself.
type Addresses struct {
	trusted []netip.Prefix
	log     *slog.Logger
	warned  [2]atomic.Bool // whether unknown proxies were logged, at public and at private addresses

	warnedVerdict atomic.Bool // whether a malformed verdict was logged
}

// New returns the addresses of clients behind proxies in trusted networks.
func New(trusted []netip.Prefix, log *slog.Logger) *Addresses {
	return &Addresses{trusted: trusted, log: log}
}

// Of returns the client's address, or the zero Addr if it is unknown.
func (as *Addresses) Of(r *http.Request) netip.Addr {
	peer := addressOf(r.RemoteAddr)
	forwarded := r.Header["X-Forwarded-For"]
	if len(forwarded) == 0 {
		return peer
	}
	if !as.IsTrusted(peer) {
		as.warn(peer)
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
			if last = addr; !as.IsTrusted(addr) {
				return addr
			}
		}
	}
	return last
}

// addressOf parses an address with or without port; the zero Addr if it is neither.
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

// IsTrusted reports whether an address belongs to a trusted proxy.
func (as *Addresses) IsTrusted(addr netip.Addr) bool {
	for _, network := range as.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// warn logs the first X-Forwarded-For header from an untrusted address, which may be the operator's own proxy.
// Clients with public addresses can send the header as well, so addresses in private networks, which are unlikely
// to be visitors', are logged separately and as a warning.
func (as *Addresses) warn(peer netip.Addr) {
	level, which := slog.LevelInfo, &as.warned[0]
	if peer.IsLoopback() || peer.IsPrivate() || peer.IsLinkLocalUnicast() || !peer.IsValid() {
		level, which = slog.LevelWarn, &as.warned[1]
	}
	if !which.Load() && which.CompareAndSwap(false, true) {
		as.log.Log(context.Background(), level, "ignoring X-Forwarded-For from an untrusted address: "+
			"if it is your proxy, add its network to --trusted-proxies, "+
			"otherwise all visitors behind it share the limits of one network", "peer", peer)
	}
}

// Extractor adapts Of to echo, whose own extractor trusts the client's headers.
func (as *Addresses) Extractor() echo.IPExtractor {
	return func(r *http.Request) string {
		if addr := as.Of(r); addr.IsValid() {
			return addr.String()
		}
		return ""
	}
}

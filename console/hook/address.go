package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrAddress is returned when an endpoint leads to an address that webhooks may
// not reach.
var ErrAddress = errors.New("the address is not public, and the server's configuration does not allow it")

// notPublic are the networks that no packet of a stranger's choice may go to:
// the IANA special-purpose registries
// (https://www.iana.org/assignments/iana-ipv4-special-registry,
// https://www.iana.org/assignments/iana-ipv6-special-registry) and multicast.
// Of IPv6 only 2000::/3 is looked at; the rest is refused.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", // protocols and Teredo, documentation, 6to4, documentation
)

var globalUnicast = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, text := range list {
		parsed[i] = netip.MustParsePrefix(text)
	}
	return parsed
}

// guard decides which addresses may be reached.
type guard struct{ allowed []netip.Prefix }

// check refuses addresses that are not public, unless they are allowed. Plain
// HTTP needs one that is.
func (g guard) check(a netip.Addr, isPlain bool) error {
	contains := func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }
	switch {
	case slices.ContainsFunc(g.allowed, contains):
		return nil
	case isPlain, a.Zone() != "", a.Is4In6(), a.Is6() && !globalUnicast.Contains(a), slices.ContainsFunc(notPublic, contains):
		return ErrAddress
	}
	return nil
}

// dialer connects after the address was checked that a name resolved to: a
// second answer of the DNS cannot lead elsewhere.
func (g guard) dialer(isPlain bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: attemptTimeout, KeepAlive: 15 * time.Second}
	d.Control = func(network, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return ErrAddress
		}
		return g.check(a.Addr(), isPlain)
	}
	return d.DialContext
}

// maxURL is how long the URL of an endpoint may be.
const maxURL = 2_000

// checkURL tells what is wrong with the URL of an endpoint; "" for nothing.
func (g guard) checkURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "is needed: where events are to be sent"
	case err != nil || u.Host == "" || u.Opaque != "" || len(text) > maxURL:
		return fmt.Sprintf("must be a URL of at most %d characters, such as https://example.com/hooks", maxURL)
	case u.Scheme == "http" && len(g.allowed) == 0, u.Scheme != "http" && u.Scheme != "https":
		return "must begin with https://"
	case u.User != nil:
		return "must not hold a user or password; events are signed"
	case u.Fragment != "":
		return "must not have a fragment"
	case !isPort(u.Port()):
		return "must have port 80, 443, or one from 1024 on"
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err == nil && g.check(a, u.Scheme == "http") != nil {
		return "must lead to a public address; ask who runs the server to allow others"
	}
	return ""
}

// isPort tells whether webhooks may use a port: those below 1024 belong to
// services that are no web server.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && (port == 80 || port == 443 || port >= 1024)
}

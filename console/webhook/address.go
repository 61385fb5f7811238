package webhook

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

// ErrAddress is returned when an endpoint resolves to an address that webhooks may not reach.
var ErrAddress = errors.New("the address is not public, and the server's configuration does not allow it")

// notPublic lists networks that users of the console must not reach: those of the IANA
// special-purpose registries (https://www.iana.org/assignments/iana-ipv4-special-registry,
// https://www.iana.org/assignments/iana-ipv6-special-registry) and multicast. In IPv6 everything
// outside of 2000::/3 is refused, too.
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

// check returns an error for an address that is neither public nor allowed. Plain HTTP requires an
// allowed one.
func (g guard) check(a netip.Addr, isPlain bool) error {
	contains := func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }
	switch {
	case slices.ContainsFunc(g.allowed, contains):
		return nil
	case isPlain, a.Zone() != "", a.Is4In6(), a.Is6() &&
		!globalUnicast.Contains(a), slices.ContainsFunc(notPublic, contains):
		return ErrAddress
	}
	return nil
}

// dialer checks the resolved address when connecting, so that a second DNS answer cannot redirect
// the request.
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

// maxURL is the maximum length of an endpoint's URL.
const maxURL = 2_000

// checkURL returns the problem with an endpoint's URL; "" if there is none.
func (g guard) checkURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "is required: the URL that events are sent to"
	case err != nil || u.Host == "" || u.Opaque != "" || len(text) > maxURL:
		return fmt.Sprintf("must be a URL of at most %d characters, such as https://example.com/hooks", maxURL)
	case u.Scheme == "http" && len(g.allowed) == 0, u.Scheme != "http" && u.Scheme != "https":
		return "must begin with https://"
	case u.User != nil:
		return "must not contain a user or password; events are signed instead"
	case u.Fragment != "":
		return "must not have a fragment"
	case !isPort(u.Port()):
		return "must have port 80, 443, or one from 1024 on"
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err == nil && g.check(a, u.Scheme == "http") != nil {
		return "must have a public address; the server's operator can allow others"
	}
	return ""
}

// isPort reports whether webhooks may use a port. Ports below 1024, other than 80 and 443, belong
// to services other than web servers.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && (port == 80 || port == 443 || port >= 1024)
}

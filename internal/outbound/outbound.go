// Package outbound makes HTTP requests to addresses that organizers have chosen: only to public ones, and to those in
// networks that the server's operator allows. So no organizer can reach what only the server can.
package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrAddress is returned for an address that may not be reached.
var ErrAddress = errors.New("the address is not public, and the server's configuration does not allow it")

// UserAgent is the User-Agent header of requests.
const UserAgent = "proofline (+https://github.com/proofline/proofline)"

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

// Guard decides which addresses may be reached.
type Guard struct {
	Allowed []netip.Prefix // besides public addresses
}

// Check returns [ErrAddress] for an address that is neither public nor allowed. Plain HTTP requires an
// allowed one.
func (g Guard) Check(a netip.Addr, isPlain bool) error {
	contains := func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }
	switch {
	case slices.ContainsFunc(g.Allowed, contains):
		return nil
	case isPlain, a.Zone() != "", a.Is4In6(), a.Is6() &&
		!globalUnicast.Contains(a), slices.ContainsFunc(notPublic, contains):
		return ErrAddress
	}
	return nil
}

// IsPort reports whether the port of a URL may be used. Ports below 1024, other than 80 and 443, belong
// to services other than web servers.
func IsPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && (port == 80 || port == 443 || port >= 1024)
}

// maxHeader is the maximum size of a response's header in bytes.
const maxHeader = 64 << 10

// Options bounds a [Client].
type Options struct {
	Timeout   time.Duration // of each step of a request
	TLS       *tls.Config   // nil: the default
	Idle      int           // maximum number of idle connections
	IdleAHost int           // and of those to one host
}

// Client makes requests that a guard allows. It follows no redirect and uses no proxy.
type Client struct{ plain, secure *http.Client }

// Client returns a client.
func (g Guard) Client(o Options) *Client {
	return &Client{plain: g.client(true, &o), secure: g.client(false, &o)}
}

func (g Guard) client(isPlain bool, o *Options) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: g.dialer(isPlain, o.Timeout), TLSClientConfig: o.TLS, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: maxHeader,
			MaxIdleConns: o.Idle, MaxIdleConnsPerHost: o.IdleAHost, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dialer checks the resolved address when connecting, so that a second DNS answer cannot redirect
// the request.
func (g Guard) dialer(isPlain bool, timeout time.Duration,
) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
	d.Control = func(network, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return ErrAddress
		}
		return g.Check(a.Addr(), isPlain)
	}
	return d.DialContext
}

// Do sends a request. The caller must close the response's body.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if !IsPort(r.URL.Port()) {
		return nil, ErrAddress
	}
	r.Header.Set("User-Agent", UserAgent)
	switch r.URL.Scheme {
	case "http":
		return c.plain.Do(r) //nolint:gosec // the dialer checks the address
	case "https":
		return c.secure.Do(r) //nolint:gosec // the dialer checks the address
	}
	return nil, ErrAddress
}

// Close closes idle connections.
func (c *Client) Close() {
	c.plain.CloseIdleConnections()
	c.secure.CloseIdleConnections()
}

// Failure describes why a request failed in one of a few fixed texts. They reveal nothing of the server's network, such
// as an address or what a machine there answered. ctx is the request's.
func Failure(ctx context.Context, err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded), isTimeout(err):
		return "no response in time"
	case errors.As(err, &dns):
		return "the host name cannot be resolved"
	case errors.As(err, &certificate):
		return "the host's certificate is not trusted"
	}
	return "the connection failed"
}

// hidden is an error that says no more than [Failure].
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }

// Hide returns an error for users, whose text is that of [Failure]. ctx is the request's. [Detail] returns the rest.
func Hide(ctx context.Context, err error) error { return &hidden{Failure(ctx, err), err} }

// Detail returns what the operator's log should say of an error: all that [Hide] has hidden.
func Detail(err error) error {
	if h, ok := errors.AsType[*hidden](err); ok {
		return h.err
	}
	return err
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// Package proxy runs a connector as a separate program in front of a site that cannot use the
// middleware: [New] is a reverse proxy, and [NewAuth] answers the auth_request subrequests of
// nginx. [Proxy.Serve] runs either on a listener.
//
// X-Forwarded-* headers are accepted from trusted proxies only. Both programs
// answer two paths themselves:
//
//	GET /.proofline/healthz    200 while the process runs
//	GET /.proofline/readyz     200 with rules and a site that answers, unless stopping; else 503
//
// A site may have several addresses, which are checked every 5 s. One that fails
// gets no requests until it answers again, unless all fail: then all are tried.
//
// The connector cannot see requests on an upgraded connection. The site is
// therefore asked for WebSockets only: HTTP/2 on an upgraded connection would
// bypass the connector.
package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector"
)

// Paths that the proxy answers itself.
const (
	HealthPath = "/.proofline/healthz"
	ReadyPath  = "/.proofline/readyz"
)

// Options configures [New] and [NewAuth]. Connector is required.
type Options struct {
	Connector *connector.Connector
	// To lists the site's addresses, each with a scheme, a host, and the same base path. Empty for
	// NewAuth.
	To []*url.URL
	// Check is a path, with or without a query, that a healthy address answers with
	// 2xx or 3xx. Empty: an address that accepts connections is healthy.
	Check string
	// CheckHost is the Host header of checks; empty: the address.
	CheckHost string
	// TrustedProxies are those of connector.Options: their X-Forwarded-* headers are passed on.
	TrustedProxies []netip.Prefix
	// HSTS is the Strict-Transport-Security of all responses, in place of the site's; empty: the site's.
	HSTS string
	// Drain is how long the proxy, once asked to stop, keeps serving but is not ready, so that a load
	// balancer in front sends no new requests.
	Drain     time.Duration
	Grace     time.Duration // time for running requests to end after Drain; 0: DefaultGrace
	Limits    Limits
	AccessLog *slog.Logger // logs one line per request; nil: none
	Log       *slog.Logger // nil: slog.Default
}

// Limits of a proxy; 0: the default.
type Limits struct {
	HeaderSize int           // size of a request's header, in bytes
	HeaderTime time.Duration // time for reading a request's header
	Idle       time.Duration // time that a connection may idle between requests
	Stall      time.Duration // time without progress while a body is sent or received
	Answer     time.Duration // time until the site starts its response
	Body       int64         // size of a request's body, in bytes; 0: no limit
}

// Defaults of [Options] and [Limits].
const (
	DefaultHeaderSize = 64 << 10
	DefaultHeaderTime = 10 * time.Second
	DefaultIdle       = 2 * time.Minute
	DefaultStall      = time.Minute
	DefaultAnswer     = time.Minute
	DefaultGrace      = 30 * time.Second
)

// flushAfter is how long part of a response of known length may be buffered.
// Streams are not delayed.
const flushAfter = 20 * time.Millisecond

// Proxy is an [http.Handler], and a prometheus.Collector of its metrics. It is safe
// for concurrent use.
type Proxy struct {
	options  Options
	site     *site // nil: NewAuth
	next     http.Handler
	stopping atomic.Bool
	upgraded tunnels
	counters *counters
}

// New returns a reverse proxy for the requests that the connector admits. It keeps
// the Host header, and supports streaming and WebSockets.
func New(o Options) *Proxy {
	p := newProxy(o)
	p.site = newSite(&p.options)
	p.next = o.Connector.Middleware(&httputil.ReverseProxy{
		Rewrite:       p.options.rewrite,
		FlushInterval: flushAfter,
		Transport:     p.site,
		BufferPool:    &buffers{},
		ErrorHandler:  p.handleError,
		ErrorLog:      slog.NewLogLogger(p.options.Log.Handler(), slog.LevelWarn),
	})
	return p
}

func newProxy(o Options) *Proxy {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	l := &o.Limits
	l.HeaderSize = orDefault(l.HeaderSize, DefaultHeaderSize)
	l.HeaderTime = orDefault(l.HeaderTime, DefaultHeaderTime)
	l.Idle = orDefault(l.Idle, DefaultIdle)
	l.Stall = orDefault(l.Stall, DefaultStall)
	l.Answer = orDefault(l.Answer, DefaultAnswer)
	o.Grace = orDefault(o.Grace, DefaultGrace)
	return &Proxy{options: o, counters: newCounters()}
}

func orDefault[T comparable](value, fallback T) T {
	if value == *new(T) {
		return fallback
	}
	return value
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/.proofline/") && p.serveOwn(w, r) {
		return
	}
	e := newExchange(p, w, r)
	defer e.finish()
	if limit := p.options.Limits.Body; limit > 0 && r.ContentLength > limit {
		refuse(e, http.StatusRequestEntityTooLarge, "The request is too large.")
		return
	}
	if !isPlain(r) {
		refuse(e, http.StatusBadRequest, malformed)
		return
	}
	p.next.ServeHTTP(e, e.request)
}

const malformed = "The request is malformed."

// isPlain reports whether a request can be written in HTTP/1.1 without ambiguity. HTTP/2 clients
// can send a method that is not a token, or a query with spaces. Such a request would fail here and
// count as a failure of the site.
func isPlain(r *http.Request) bool {
	isNoWord := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }
	isNoText := func(c rune) bool { return c < ' ' || c > '~' }
	return !strings.ContainsFunc(r.Method, isNoWord) && !strings.Contains(r.URL.RawQuery, " ") &&
		!strings.ContainsFunc(r.Header.Get("Upgrade"), isNoText)
}

// serveOwn answers the paths of the proxy itself. It returns false for other paths.
func (p *Proxy) serveOwn(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	p.secure(w)
	why := ""
	switch {
	case r.URL.Path == HealthPath:
	case r.URL.Path != ReadyPath:
		return false
	case p.stopping.Load():
		why = "stopping"
	case !p.options.Connector.HasRules():
		why = "no rules yet: their server does not answer"
	case p.site != nil && !p.site.isUp():
		why = "the site does not answer"
	}
	if why != "" {
		refuse(w, http.StatusServiceUnavailable, why)
		return true
	}
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, "ok\n")
	return true
}

// secure sets the header of Options.HSTS.
func (p *Proxy) secure(w http.ResponseWriter) {
	if p.options.HSTS != "" {
		w.Header().Set("Strict-Transport-Security", p.options.HSTS)
	}
}

// refuse sends an error that must not be cached.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}

// handleError sends the error for a request that failed at the site.
func (p *Proxy) handleError(w http.ResponseWriter, r *http.Request, err error) {
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "The request is too large.")
	case errors.Is(err, errStalled), exchangeOf(w).hasStalled():
		refuse(w, http.StatusRequestTimeout, "The request came too slowly.")
	case errors.Is(err, context.Canceled) && p.stopping.Load():
		refuse(w, http.StatusServiceUnavailable, "The server is stopping.")
	case errors.Is(err, context.Canceled):
		w.WriteHeader(statusGone)
	case errors.Is(err, errBody):
		refuse(w, http.StatusBadRequest, malformed)
	case isTimeout(err):
		p.options.Log.Error("site timed out", "method", r.Method, "to", r.URL.Host, "err", err)
		refuse(w, http.StatusGatewayTimeout, "The site takes too long to answer.")
	default:
		p.options.Log.Error("site cannot be reached", "method", r.Method, "to", r.URL.Host, "err", err)
		refuse(w, http.StatusBadGateway, "The site cannot be reached right now.")
	}
}

// statusGone is the status in logs and metrics if the client did not wait for the
// response, as in nginx. It is never sent.
const statusGone = 499

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// rewrite makes the site's request. The connector's headers are set again, because
// the reverse proxy removes headers that Connection names.
func (o *Options) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(o.To[0])
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // the site gets the query unchanged
	if upgrade := p.Out.Header.Get("Upgrade"); upgrade != "" && !strings.EqualFold(upgrade, "websocket") {
		p.Out.Header.Del("Upgrade")
		p.Out.Header.Del("Connection")
	}
	p.Out.Header.Del("Http2-Settings")
	p.Out.Trailer = nil // trailers are not checked, and therefore not passed on
	isTrusted := o.trusts(peerAddr(p.In))
	if isTrusted {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	} else {
		maps.DeleteFunc(p.Out.Header, func(name string, _ []string) bool { return isProxyHeader(name) })
	}
	p.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Proto", "X-Forwarded-Host"} {
		if values := p.In.Header[name]; isTrusted && len(values) > 0 {
			p.Out.Header[name] = values
		}
	}
	for _, name := range []string{connector.TicketHeader, connector.RoomHeader} {
		if values := p.In.Header[name]; len(values) > 0 {
			p.Out.Header[name] = values
		}
	}
}

// isProxyHeader reports whether proxies name the original client or host in a
// header. Some servers treat _ as -.
func isProxyHeader(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return name == "forwarded" || name == "x-real-ip" || strings.HasPrefix(name, "x-forwarded-")
}

// peerAddr returns the address of the connection's peer.
func peerAddr(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

func (o *Options) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(o.TrustedProxies, func(n netip.Prefix) bool { return n.Contains(a) })
}

// buffers is a pool of buffers for copying responses.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

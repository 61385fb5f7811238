// Package proxy puts a connector in front of a site that cannot carry it
// itself: [New] is a reverse proxy, [NewAuth] answers the auth_request of nginx.
// [Proxy.Serve] does so on a listener, until it is told to stop.
//
// Neither believes X-Forwarded-* of clients. Both answer two paths themselves:
//
//	GET /.proofline/healthz    200: the process is there
//	GET /.proofline/readyz     200: there are rules, an address of the site answers, and it is not about to stop; else 503
//
// A site may have several addresses. Each is asked every 5 s whether it is
// there. One that fails gets no requests until it answers again, unless none
// does: then all are tried, for there is nothing to lose.
//
// What a connection is upgraded to is seen by nobody any more, so requests ask
// for WebSockets, or for nothing: HTTP/2 on an upgraded connection would be a
// way past the connector.
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

// Paths that are answered here.
const (
	HealthPath = "/.proofline/healthz"
	ReadyPath  = "/.proofline/readyz"
)

// Options is what [New] and [NewAuth] need. Connector must be given.
type Options struct {
	Connector *connector.Connector
	// To is where the site is: addresses with a scheme, a host, and the same
	// path, below which all others are. None for NewAuth.
	To []*url.URL
	// Check is a path, with a query perhaps, that addresses answer with 2xx or
	// 3xx when they are well. Empty: they are well when they accept connections.
	Check string
	// CheckHost is the Host header of checks. Empty: that of the address.
	CheckHost string
	// TrustedProxies are those of the connector: their X-Forwarded-* are passed on.
	TrustedProxies []netip.Prefix
	Certificate    *Certificate // nil: without TLS
	// Drain is how long it goes on when it is told to stop, but says that it is
	// not ready, so that a balancer in front sends nothing new.
	Drain     time.Duration
	Grace     time.Duration // for what is under way when it stops; 0: DefaultGrace
	Limits    Limits
	AccessLog *slog.Logger // one line for each request; nil: none
	Log       *slog.Logger // nil: the default one
}

// Limits of a proxy. Of each, 0 is the default.
type Limits struct {
	HeaderSize int           // bytes of a request's header
	HeaderTime time.Duration // until all of a request's header is there
	Idle       time.Duration // of a connection between requests
	Stall      time.Duration // in which no byte of a body moves
	Answer     time.Duration // until the site begins to answer
	Body       int64         // bytes of a request's body; 0: any
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

// flushAfter is how long a part of an answer may wait for more, if the site
// said how long all of it is. Streams do not wait.
const flushAfter = 20 * time.Millisecond

// Proxy is an [http.Handler], and a prometheus.Collector of what it does. Safe
// for concurrent use.
type Proxy struct {
	options  Options
	site     *site // nil: it is for nginx
	next     http.Handler
	stopping atomic.Bool
	upgraded tunnels
	figures  *figures
}

// New returns a reverse proxy that lets through what the connector does. It
// keeps the Host header, streams, and passes WebSockets.
func New(o Options) *Proxy {
	p := newProxy(o)
	p.site = newSite(&p.options)
	p.next = o.Connector.Middleware(&httputil.ReverseProxy{
		Rewrite:       p.options.rewrite,
		FlushInterval: flushAfter,
		Transport:     p.site,
		BufferPool:    &buffers{},
		ErrorHandler:  p.explain,
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
	return &Proxy{options: o, figures: newFigures()}
}

func orDefault[T comparable](value, fallback T) T {
	if value == *new(T) {
		return fallback
	}
	return value
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/.proofline/") && p.answersItself(w, r) {
		return
	}
	e := begin(p, w, r)
	defer e.end()
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

// isPlain reports whether a request can be written in HTTP/1.1 and be read in one
// way. Over HTTP/2 clients can send a method that is no token, and a query with
// spaces; such a request would fail here, and the site would count as away.
func isPlain(r *http.Request) bool {
	isNoWord := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }
	isNoText := func(c rune) bool { return c < ' ' || c > '~' }
	return !strings.ContainsFunc(r.Method, isNoWord) && !strings.Contains(r.URL.RawQuery, " ") && !strings.ContainsFunc(r.Header.Get("Upgrade"), isNoText)
}

// answersItself answers the two paths of ours.
func (p *Proxy) answersItself(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	why := ""
	switch {
	case r.URL.Path == HealthPath:
	case r.URL.Path != ReadyPath:
		return false
	case p.stopping.Load():
		why = "stopping"
	case !p.options.Connector.HasRules():
		why = "there are no rules yet, as their server does not answer"
	case p.site != nil && !p.site.answers():
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

// refuse answers with a few words, which nobody keeps.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}

// explain answers when the site did not.
func (p *Proxy) explain(w http.ResponseWriter, r *http.Request, err error) {
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
		p.options.Log.Error("site does not answer in time", "method", r.Method, "to", r.URL.Host, "err", err)
		refuse(w, http.StatusGatewayTimeout, "The site takes too long to answer.")
	default:
		p.options.Log.Error("site cannot be reached", "method", r.Method, "to", r.URL.Host, "err", err)
		refuse(w, http.StatusBadGateway, "The site cannot be reached right now.")
	}
}

// statusGone is what logs and metrics say of a client that did not wait for
// the answer; 499 is nginx's word for it. Nobody gets it.
const statusGone = 499

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// rewrite makes the request that the site gets. What Connection names is taken
// away before, so our own headers are set again.
func (o *Options) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(o.To[0])
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it was sent
	if upgrade := p.Out.Header.Get("Upgrade"); upgrade != "" && !strings.EqualFold(upgrade, "websocket") {
		p.Out.Header.Del("Upgrade")
		p.Out.Header.Del("Connection")
	}
	p.Out.Header.Del("Http2-Settings")
	p.Out.Trailer = nil // what comes after a body is not passed on, for nobody has looked at it
	isTrusted := o.trusts(peerOf(p.In))
	if isTrusted {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	} else {
		maps.DeleteFunc(p.Out.Header, func(name string, _ []string) bool { return isProxys(name) })
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

// isProxys tells whether a header is one in which proxies say for whom they ask.
// Some servers take _ for -.
func isProxys(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return name == "forwarded" || name == "x-real-ip" || strings.HasPrefix(name, "x-forwarded-")
}

// peerOf returns who opened the connection.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

func (o *Options) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(o.TrustedProxies, func(n netip.Prefix) bool { return n.Contains(a) })
}

// buffers are for copying answers.
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

// Package proxy puts a connector in front of a site that cannot carry it
// itself: [New] is a reverse proxy, [Auth] answers the auth_request of nginx.
//
// Neither believes X-Forwarded-* of clients. Both answer GET [HealthPath] with
// 200 themselves.
package proxy

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/proofline/proofline/connector"
)

// HealthPath is answered by the proxy itself.
const HealthPath = "/.proofline/healthz"

// Waits of the proxy for a site. What it streams may take any time.
const (
	dialTimeout   = 5 * time.Second
	headerTimeout = 60 * time.Second
)

// Options is what [New] needs. Connector and To must be given.
type Options struct {
	Connector *connector.Connector
	To        *url.URL // the site: scheme and host, and a path below which all others are
	// TrustedProxies are those of the connector: their X-Forwarded-* are passed on.
	TrustedProxies []netip.Prefix
	Log            *slog.Logger // nil: the default one
}

// New returns a reverse proxy that lets through what the connector does. It
// keeps the Host header, streams, and passes WebSockets.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	p := &httputil.ReverseProxy{
		Rewrite:       o.rewrite,
		FlushInterval: -1, // at once
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: headerTimeout,
			MaxIdleConnsPerHost:   100,
			IdleConnTimeout:       90 * time.Second,
			DisableCompression:    true, // as the client asks for it
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			o.Log.Error("site cannot be reached", "method", r.Method, "err", err)
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "The site cannot be reached right now.", http.StatusBadGateway)
		},
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return withHealth(o.Connector.Middleware(p))
}

// rewrite makes the request that the site gets. What Connection names is taken
// away before, so our own headers are set again.
func (o *Options) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(o.To)
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it was sent
	peer, _ := netip.ParseAddrPort(p.In.RemoteAddr)
	isTrusted := slices.ContainsFunc(o.TrustedProxies, func(n netip.Prefix) bool { return n.Contains(peer.Addr().Unmap()) })
	if isTrusted {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
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

func withHealth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == HealthPath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write([]byte("ok\n"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Headers in which nginx says what was asked, and the path of its question.
const (
	AuthPath   = "/.proofline/auth"
	MethodName = "X-Original-Method"
	TargetName = "X-Original-Uri" // as Go spells it
)

// Auth answers for nginx. A request to [AuthPath] is the question of
// auth_request: 204, with the headers of a visitor, or 401. Any other is one
// that was refused, and gets its answer: to the room, "come back later", or
// the cookie for a pass.
//
// Both come from nginx alone, so peers that the connector does not trust are
// turned away with 403: give the same networks here.
func Auth(c *connector.Connector, trusted []netip.Prefix) http.Handler {
	refused := c.Middleware(http.HandlerFunc(again))
	return withHealth(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, _ := netip.ParseAddrPort(r.RemoteAddr)
		if !slices.ContainsFunc(trusted, func(n netip.Prefix) bool { return n.Contains(peer.Addr().Unmap()) }) {
			http.Error(w, "this address is for nginx alone: add its network to the trusted proxies", http.StatusForbidden)
			return
		}
		isQuestion := r.URL.Path == AuthPath
		asked, ok := original(r)
		switch {
		case !isQuestion && ok:
			refused.ServeHTTP(w, asked)
		case !isQuestion:
			http.Error(w, "malformed request", http.StatusBadRequest)
		case ok && c.Allows(w.Header(), asked):
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
}

// original returns the request that nginx asks about.
func original(r *http.Request) (*http.Request, bool) {
	u, err := url.ParseRequestURI(r.Header.Get(TargetName))
	if err != nil || len(r.Header[TargetName]) != 1 || len(r.Header[MethodName]) != 1 {
		return nil, false
	}
	out := r.Clone(r.Context())
	out.URL, out.Method, out.RequestURI = u, r.Header.Get(MethodName), r.Header.Get(TargetName)
	out.Header.Del(TargetName)
	out.Header.Del(MethodName)
	return out, true
}

// again asks a visitor to come back at once, who was refused a moment ago and
// is not any more.
func again(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Refresh", "1")
	http.Error(w, "One moment.", http.StatusServiceUnavailable)
}

package proxy

import (
	"net/http"
	"net/url"
)

// Path and headers of nginx's requests.
const (
	AuthPath   = "/.proofline/auth"
	MethodName = "X-Original-Method"
	TargetName = "X-Original-Uri" // in Go's canonical form
	HostName   = "X-Forwarded-Host"
)

// NewAuth returns the handler for nginx. A request to [AuthPath] is an auth_request
// subrequest, answered with 204 and the visitor's headers, or with 401. Any other
// request was refused that way before and is answered here: redirected to the
// room, given the retry page, or given the cookie for its pass.
//
// Only nginx may send either: a peer that is not a trusted proxy gets 403.
func NewAuth(o Options) *Proxy {
	p := newProxy(o)
	p.next = &auth{p, o.Connector.Refused(http.HandlerFunc(retryNow))}
	return p
}

type auth struct {
	*Proxy
	refused http.Handler
}

// ServeHTTP implements [http.Handler].
func (a *auth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.options.trusts(peerAddr(r)) {
		http.Error(w, "only nginx may use this address: add its network to the trusted proxies", http.StatusForbidden)
		return
	}
	isQuestion := r.URL.Path == AuthPath
	asked, ok := original(r)
	switch {
	case !isQuestion && ok:
		a.refused.ServeHTTP(w, asked)
	case !isQuestion:
		http.Error(w, "malformed request", http.StatusBadRequest)
	case ok && a.options.Connector.Allows(w.Header(), asked):
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// original returns the request that nginx asks about. That request's host is in a header, because
// Host names the connector here.
func original(r *http.Request) (*http.Request, bool) {
	u, err := url.ParseRequestURI(r.Header.Get(TargetName))
	if err != nil || len(r.Header[TargetName]) != 1 || len(r.Header[MethodName]) != 1 || len(r.Header[HostName]) > 1 {
		return nil, false
	}
	out := r.Clone(r.Context())
	out.URL, out.Method, out.RequestURI = u, r.Header.Get(MethodName), r.Header.Get(TargetName)
	if hosts := r.Header[HostName]; len(hosts) == 1 {
		out.Host = hosts[0]
	}
	for _, name := range []string{TargetName, MethodName, HostName, "Forwarded"} {
		out.Header.Del(name)
	}
	return out, true
}

// retryNow makes a visitor who was refused a moment ago, but may pass now, retry at once.
func retryNow(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Refresh", "1")
	http.Error(w, "One moment.", http.StatusServiceUnavailable)
}

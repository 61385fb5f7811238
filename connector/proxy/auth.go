package proxy

import (
	"net/http"
	"net/url"
)

// Headers in which nginx says what was asked, and the path of its question.
const (
	AuthPath   = "/.proofline/auth"
	MethodName = "X-Original-Method"
	TargetName = "X-Original-Uri" // as Go spells it
	HostName   = "X-Forwarded-Host"
)

// NewAuth returns what answers nginx. A request to [AuthPath] is the question
// of auth_request: 204, with the headers of a visitor, or 401. Any other is one
// that was refused, and gets its answer: to the room, "come back later", or
// the cookie for a pass.
//
// Both come from nginx alone, so peers that are no trusted proxies are turned
// away with 403.
func NewAuth(o Options) *Proxy {
	p := newProxy(o)
	p.next = &auth{p, o.Connector.Middleware(http.HandlerFunc(again))}
	return p
}

type auth struct {
	*Proxy
	refused http.Handler
}

// ServeHTTP implements [http.Handler].
func (a *auth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.options.trusts(peerOf(r)) {
		http.Error(w, "this address is for nginx alone: add its network to the trusted proxies", http.StatusForbidden)
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

// original returns the request that nginx asks about. Its host is the one that
// nginx names: the Host header is that of the connector here.
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

// again asks a visitor to come back at once, who was refused a moment ago and
// is not any more.
func again(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Refresh", "1")
	http.Error(w, "One moment.", http.StatusServiceUnavailable)
}

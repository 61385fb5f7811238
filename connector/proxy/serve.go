package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/internal/conns"
)

// writeTimeout is how long an HTTP/2 connection may accept no data.
const writeTimeout = 30 * time.Second

// Run checks the site's addresses until ctx ends. Without it the proxy is never
// ready.
func (p *Proxy) Run(ctx context.Context) {
	if p.site != nil {
		p.site.checkAll(ctx)
	}
}

// Serve serves l until ctx ends, over TLS if there is a certificate. After
// Options.Drain it accepts no more connections. Running requests and upgraded
// connections then have Options.Grace to end before they are closed.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	o := &p.options
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	s := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: o.Limits.HeaderTime,
		IdleTimeout:       o.Limits.Idle,
		MaxHeaderBytes:    o.Limits.HeaderSize,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: writeTimeout},
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // errors caused by clients
		ConnState:         conns.New(o.trusts, o.Log).Watch,
	}
	checking, done := context.WithCancel(ctx)
	defer done()
	go p.Run(checking)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		p.stopping.Store(true)
		time.Sleep(o.Drain)
		p.shutDown(s, cut)
	})
	var err error
	if o.Certificate == nil {
		err = s.Serve(l)
	} else {
		s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: o.Certificate.Get}
		err = s.ServeTLS(l, "", "")
	}
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	return nil
}

// shutDown waits for running requests, and closes those that exceed the grace period.
func (p *Proxy) shutDown(s *http.Server, cut context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), p.options.Grace)
	defer cancel()
	err := s.Shutdown(ctx)
	if err == nil {
		err = p.upgraded.wait(ctx)
	}
	if err == nil {
		return
	}
	p.options.Log.Warn("closing requests that exceeded the grace period",
		"grace", p.options.Grace, "upgraded", p.upgraded.count())
	cut()
	_ = s.Close()
}

// tunnels counts upgraded connections, which http.Server does not track.
type tunnels struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when the last one ends; nil: no waiter
}

func (t *tunnels) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open += n; t.open == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

func (t *tunnels) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// wait waits until no connection is left. Error: that of ctx.
func (t *tunnels) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.open == 0 {
		t.mu.Unlock()
		return nil
	}
	none := make(chan struct{})
	t.none = none
	t.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Redirect returns a handler that redirects plain HTTP to https, at the port of
// the given address.
func Redirect(to net.Addr) http.Handler {
	port := ""
	if tcp, ok := to.(*net.TCPAddr); ok && tcp.Port != 443 {
		port = fmt.Sprintf(":%d", tcp.Port)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, ok := hostname(r.Host)
		if !ok || r.URL.Path == "" || r.URL.Path[0] != '/' {
			refuse(w, http.StatusBadRequest, "malformed request")
			return
		}
		target := r.URL.EscapedPath()
		if r.URL.RawQuery != "" {
			target += "?" + r.URL.RawQuery
		}
		w.Header().Set("Connection", "close")
		status := http.StatusPermanentRedirect
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			status = http.StatusMovedPermanently
		}
		w.Header().Set("Location", "https://"+host+port+target)
		w.WriteHeader(status)
	})
}

// hostname returns the host in a Host header without its port. It returns false if the host is not
// valid in a URL.
func hostname(host string) (string, bool) {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.ContainsAny(host, `\%'"<>`) {
		return "", false
	}
	if strings.Contains(u.Hostname(), ":") {
		return "[" + u.Hostname() + "]", true
	}
	return u.Hostname(), true
}

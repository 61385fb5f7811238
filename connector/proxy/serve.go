package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
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

// Serve serves l, which may speak TLS, until ctx ends. After Options.Drain it accepts no more
// connections. Running requests and upgraded connections then have Options.Grace to end before they
// are closed.
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
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
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

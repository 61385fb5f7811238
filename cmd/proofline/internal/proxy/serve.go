package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/listen"
	"github.com/proofline/proofline/connector/metrics"
	"github.com/proofline/proofline/connector/proxy"
)

// serve serves on all listeners until ctx ends.
func (f *settings) serve(ctx context.Context, t *cli.Terminal, l listeners) error {
	build, greeting := proxy.New, ""
	if f.authOnly {
		build = proxy.NewAuth
	}
	redirecting, stop := context.WithCancel(ctx)
	defer stop()
	on, redirected, err := f.speaks.Redirect(redirecting, l.main.Addr())
	if err != nil {
		l.close()
		return err
	}
	p := build(f.proxy)
	all, ctx := errgroup.WithContext(ctx)
	if l.own != nil {
		handler, err := f.metricsOf(p)
		if err != nil {
			l.close()
			return err
		}
		greeting = fmt.Sprintf("metrics on http://%s/metrics\n", listen.Address(l.own.Addr()))
		all.Go(func() error { return serveSmall(ctx, l.own, handler) })
	}
	if on != "" {
		greeting += fmt.Sprintf("redirecting to https on http://%s\n", on)
	}
	all.Go(func() error { return p.Serve(ctx, f.speaks.Wrap(l.main)) })
	all.Go(func() error {
		return t.Printf("%slistening on %s://%s\n", greeting, f.speaks.Scheme(), listen.Address(l.main.Addr()))
	})
	err = all.Wait()
	stop()
	<-redirected
	return err
}

// listeners are for visitors and, if it is not nil, for metrics.
type listeners struct{ main, own net.Listener }

func (l *listeners) close() {
	for _, one := range []net.Listener{l.main, l.own} {
		if one != nil {
			_ = one.Close()
		}
	}
}

// listeners opens the listeners that the flags name.
func (f *settings) listeners(ctx context.Context) (l listeners, err error) {
	for _, one := range []struct {
		into       *net.Listener
		addr, flag string
	}{{&l.main, f.listen, "--listen"}, {&l.own, f.metrics, "--metrics"}} {
		if one.addr == "" {
			continue
		}
		if *one.into, err = listenTo(ctx, one.addr, one.flag); err != nil {
			l.close()
			return listeners{}, err
		}
	}
	return l, nil
}

// metricsOf returns the handler of metrics and health checks.
func (f *settings) metricsOf(p *proxy.Proxy) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, one := range []prometheus.Collector{
		metrics.Collector(f.proxy.Connector), p, f.speaks, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(one); err != nil {
			return nil, fmt.Errorf("collect metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.Handle("GET "+proxy.HealthPath, p)
	mux.Handle("GET "+proxy.ReadyPath, p)
	return mux, nil
}

// listenTo listens on an address that a flag gives.
func listenTo(ctx context.Context, addr, flag string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Failed(err, "another program listens there: choose another address with "+flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, cli.Failed(err, "ports below 1024 need CAP_NET_BIND_SERVICE, see connector/proxy/README.md; "+
			"or choose another with "+flag)
	case err != nil:
		return nil, cli.Failed(fmt.Errorf("%s: %w", flag, err), "give HOST:PORT, such as 127.0.0.1:8081")
	}
	return l, nil
}

// serveSmall serves requests without large bodies.
func serveSmall(ctx context.Context, l net.Listener, handler http.Handler) error {
	return listen.Serve(ctx, l, time.Second, &http.Server{
		Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: 64 << 10,
	})
}

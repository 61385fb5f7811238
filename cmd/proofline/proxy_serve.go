package main

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

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/metrics"
	"github.com/proofline/proofline/connector/proxy"
)

// serve answers on all listeners until ctx ends.
func (f *proxyFlags) serve(ctx context.Context, t *terminal) error {
	main, plain, own, err := f.listeners(ctx)
	if err != nil {
		return err
	}
	build, scheme, greeting := proxy.New, "http", ""
	if f.authOnly {
		build = proxy.NewAuth
	}
	p := build(f.proxy)
	all, ctx := errgroup.WithContext(ctx)
	if own != nil {
		handler, err := metricsOf(f.proxy.Connector, p)
		if err != nil {
			return err
		}
		greeting = fmt.Sprintf("metrics on http://%s/metrics\n", reachable(own.Addr()))
		all.Go(func() error { return serveSmall(ctx, own, handler) })
	}
	if plain != nil {
		greeting += fmt.Sprintf("leading to https on http://%s\n", reachable(plain.Addr()))
		all.Go(func() error { return serveSmall(ctx, plain, proxy.Redirect(main.Addr())) })
	}
	if f.proxy.Certificate != nil {
		scheme = "https"
	}
	all.Go(func() error { return p.Serve(ctx, main) })
	all.Go(func() error { return t.printf("%slistening on %s://%s\n", greeting, scheme, reachable(main.Addr())) })
	return all.Wait()
}

// listeners opens what the flags name: for visitors, for plain HTTP, and for
// machines that watch; the latter two are nil if they are not wanted.
func (f *proxyFlags) listeners(ctx context.Context) (main, plain, own net.Listener, err error) {
	for _, one := range []struct {
		into       *net.Listener
		addr, flag string
	}{{&main, f.listen, "--listen"}, {&plain, f.redirect, "--redirect-http"}, {&own, f.metrics, "--metrics"}} {
		if one.addr == "" {
			continue
		}
		if *one.into, err = listenTo(ctx, one.addr, one.flag); err == nil {
			continue
		}
		for _, l := range []net.Listener{main, plain, own} {
			if l != nil {
				_ = l.Close()
			}
		}
		return nil, nil, nil, err
	}
	return main, plain, own, nil
}

// metricsOf returns what machines ask that watch a proxy.
func metricsOf(c *connector.Connector, p *proxy.Proxy) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, one := range []prometheus.Collector{metrics.Collector(c), p, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
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

// listenTo listens on the address of a flag.
func listenTo(ctx context.Context, addr, flag string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failed(err, "another program listens there: choose another address with "+flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, failed(err, "ports below 1024 need a right: CAP_NET_BIND_SERVICE, see connector/proxy/README.md; or choose another with "+flag)
	case err != nil:
		return nil, failed(fmt.Errorf("%s: %w", flag, err), "give HOST:PORT, such as 127.0.0.1:8081")
	}
	return l, nil
}

// serveSmall answers what has no bodies to speak of.
func serveSmall(ctx context.Context, l net.Listener, handler http.Handler) error {
	return serveHTTP(ctx, l, time.Second, &http.Server{Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10})
}

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

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/connector/proxy"
)

// serve answers on all listeners until ctx ends.
func (f *proxyFlags) serve(ctx context.Context, t *terminal) error {
	l, err := listenTo(ctx, f.listen, "--listen")
	if err != nil {
		return err
	}
	defer l.Close()
	all, ctx := errgroup.WithContext(ctx)
	if f.redirect != "" {
		plain, err := listenTo(ctx, f.redirect, "--redirect-http")
		if err != nil {
			return err
		}
		all.Go(func() error { return serveSmall(ctx, plain, proxy.Redirect(l.Addr())) })
	}
	p, scheme := proxy.New, "http"
	if f.authOnly {
		p = proxy.NewAuth
	}
	if f.proxy.Certificate != nil {
		scheme = "https"
	}
	all.Go(func() error { return p(f.proxy).Serve(ctx, l) })
	err = t.printf("listening on %s://%s\n", scheme, reachable(l.Addr()))
	if err != nil {
		return errors.Join(err, l.Close(), all.Wait())
	}
	return all.Wait()
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
		return nil, failed(fmt.Errorf("%s: %w", flag, err), "")
	}
	return l, nil
}

// serveSmall answers what has no bodies to speak of.
func serveSmall(ctx context.Context, l net.Listener, handler http.Handler) error {
	return serveHTTP(ctx, l, time.Second, &http.Server{Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/proxy"
)

// connectorKeyFile is in the data directory.
const connectorKeyFile = "connector-key"

type proxyFlags struct {
	rules, keep, to, listen, key, page string
	proxies                            []string
	authOnly                           bool
}

func proxyCommand(t *terminal) *cobra.Command {
	var f proxyFlags
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Stand in front of a site, and let nobody past without a pass",
		Long: `Stand in front of a site as a reverse proxy, and let nobody past without a pass
whom the rules let wait. connector/README.md explains rules and failures.

With --auth-only it answers the auth_request of nginx instead, and needs no --to:
connector/nginx/README.md has the configuration.`,
		Example: `  proofline proxy --rules rules.json --to http://127.0.0.1:3000 --listen :8080
  proofline proxy --rules rules.json --auth-only --listen 127.0.0.1:8099`,
		Args: cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	flags.StringVar(&f.rules, "rules", "", "`FILE` of the rules, read again when it changes, or https URL")
	flags.StringVar(&f.keep, "keep-rules", "", "`FILE` that keeps the rules of a URL for a start without it")
	flags.StringVar(&f.to, "to", "", "`URL` of the site, such as http://127.0.0.1:3000")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8081", "listen on this `HOST:PORT`; port 0 takes any that is free")
	flags.StringVar(&f.key, "key", "", "`FILE` of the key for cookies, made if it does not exist (default "+filepath.Join(t.dataDir(), connectorKeyFile)+")")
	flags.StringVar(&f.page, "page", "", "`FILE` with the HTML for rooms whose failure is page")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil, "`NETWORKS` whose X-Forwarded-* are believed, such as 10.0.0.0/8")
	flags.BoolVar(&f.authOnly, "auth-only", false, "answer the auth_request of nginx")
	if err := c.MarkFlagRequired("rules"); err != nil {
		panic(err) // it was defined above
	}
	return c
}

func (f *proxyFlags) run(ctx context.Context, t *terminal) error {
	to, err := url.Parse(f.to)
	if !f.authOnly && (err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https") || f.authOnly && f.to != "" {
		return usage(errors.New("exactly one of --to, with a URL, and --auth-only is needed"), "give the site's own address, such as --to http://127.0.0.1:3000")
	}
	o, err := f.options(t)
	if err != nil {
		return err
	}
	c, err := connector.New(o)
	if err != nil {
		return failed(err, "proofline connector check says more about rules")
	}
	defer c.Close()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return failed(err, "another program listens there: choose another address with --listen")
	}
	if err != nil {
		return failed(err, "")
	}
	if err := t.printf("listening on http://%s\n", reachable(l.Addr())); err != nil {
		return errors.Join(err, l.Close())
	}
	if f.authOnly {
		return serveProxy(ctx, l, proxy.Auth(c, o.TrustedProxies))
	}
	return serveProxy(ctx, l, proxy.New(proxy.Options{Connector: c, To: to, TrustedProxies: o.TrustedProxies}))
}

// options reads what the flags name.
func (f *proxyFlags) options(t *terminal) (o connector.Options, err error) {
	if o.Source = (&connector.Source{File: f.rules}); strings.Contains(f.rules, "://") {
		o.Source = &connector.Source{URL: f.rules, Keep: f.keep}
	}
	if f.authOnly && len(f.proxies) == 0 {
		f.proxies = []string{"127.0.0.0/8", "::1/128"}
	}
	for _, text := range f.proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return o, usage(fmt.Errorf("--trusted-proxies: %w", err), "give networks such as 10.0.0.0/8,192.0.2.7/32")
		}
		o.TrustedProxies = append(o.TrustedProxies, p)
	}
	if f.page != "" {
		if o.Page, err = os.ReadFile(f.page); err != nil {
			return o, failed(err, "name a file that you may read with --page")
		}
	}
	if f.key == "" {
		f.key = filepath.Join(t.dataDir(), connectorKeyFile)
		if err := os.MkdirAll(t.dataDir(), 0o711); err != nil { //nolint:gosec // a server run by root has a PostgreSQL of another user below it
			return o, failed(err, "choose another file with --key")
		}
	}
	key, err := secret.Ensure(f.key, func() (string, error) { return secret.NewToken(), nil })
	if errors.Is(err, secret.ErrExposed) {
		return o, failed(err, "make it yours alone: chmod 600 "+f.key)
	}
	if err != nil {
		return o, failed(err, "choose another file with --key")
	}
	o.Key = []byte(key)
	return o, nil
}

// serveProxy answers on l until ctx ends. Sites stream and take uploads, so
// only headers and pauses are bounded.
func serveProxy(ctx context.Context, l net.Listener, handler http.Handler) error {
	return serveHTTP(ctx, l, 10*time.Second, &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	})
}

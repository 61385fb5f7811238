package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/proxy"
)

// connectorKeyFile is in the data directory.
const connectorKeyFile = "connector-key"

type proxyFlags struct {
	rules, site       string
	siteKey, reportTo string
	tokenFile, keep   string
	noKeep            bool
	to                []string
	tlsCert, tlsKey   string
	listen, redirect  string
	metrics           string
	key, page         string
	state             string
	proxies           []string
	authOnly          bool
	accessLog         bool
	maxBody           byteSize
	maxHeader         byteSize
	logFormat         string
	logLevel          string
	connector         connector.Options // what is left to be made of the flags
	proxy             proxy.Options
}

func proxyCommand(t *terminal) *cobra.Command {
	var f proxyFlags
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Stand in front of a site, and let nobody past without a pass",
		Long: `Stand in front of a site as a reverse proxy, and let nobody past without a pass
whom the rules let wait. connector/README.md explains rules and failures,
connector/proxy/README.md all of these flags.

With --auth-only it answers the auth_request of nginx instead, and needs no --to:
connector/nginx/README.md has the configuration.`,
		Example: `  proofline proxy --rules rules.json --to http://127.0.0.1:3000 --listen :8081
  proofline proxy --rules rules.json --to http://10.0.0.7:3000,http://10.0.0.8:3000 --check /healthz \
    --listen :443 --tls-cert site.pem --tls-key site.key --redirect-http :80
  proofline proxy --site https://queue.example.com/v1/sites/shop/rules --site-key "$(cat site-key)" \
    --token-file ./token --to http://127.0.0.1:3000
  proofline proxy --rules rules.json --auth-only --listen 127.0.0.1:8099`,
		Args:    cobra.NoArgs,
		PreRunE: t.fromEnv,
		RunE:    runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	f.add(c.Flags(), t)
	return c
}

func (f *proxyFlags) add(flags *pflag.FlagSet, t *terminal) {
	flags.StringVar(&f.rules, "rules", "", "`FILE` of the rules, read again when it changes, or https URL")
	flags.StringVar(&f.site, "site", "", "instead of --rules, the `URL` of rules that a server keeps, such as https://queue.example.com/v1/sites/shop/rules")
	flags.StringVar(&f.siteKey, "site-key", "", "`KEY` that they are signed with, as \"proofline site key\" prints it")
	flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` of a token with the scope connect, for the server, read again when it changes; or PROOFLINE_TOKEN")
	flags.StringVar(&f.reportTo, "report-to", "", "`URL` of the server that is told of this proxy, with --rules and a token (default that of --site)")
	flags.StringVar(&f.keep, "keep", "", "`FILE` that keeps the rules of a URL for a start without it (default one beside the key)")
	flags.BoolVar(&f.noKeep, "no-keep", false, "keep no rules: while their server is away at the start, visitors are held")
	flags.StringSliceVar(&f.to, "to", nil, "`URLS` of the site, such as http://127.0.0.1:3000; of several, each gets a share")
	flags.StringVar(&f.proxy.Check, "check", "", "`PATH` that the site answers with 2xx or 3xx when it is well (default: it accepts connections)")
	flags.StringVar(&f.proxy.CheckHost, "check-host", "", "`HOST` by whose name it is asked (default that of its URL)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8081", "listen on this `HOST:PORT`; port 0 takes any that is free")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`FILE` of the certificate with its chain, PEM, read again when it changes")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`FILE` of its key, PEM")
	flags.StringVar(&f.redirect, "redirect-http", "", "lead plain HTTP on this `HOST:PORT` to https")
	flags.StringVar(&f.metrics, "metrics", "", "serve /metrics for Prometheus, healthz and readyz on this `HOST:PORT`, which is not for everybody")
	flags.StringVar(&f.key, "key", "", "`FILE` of the key for cookies, made if it does not exist (default "+filepath.Join(t.dataDir(), connectorKeyFile)+")")
	flags.StringVar(&f.state, "state", "", "`FILE` that keeps times in which everybody was let through until the server has them, and gates that are open, over a restart (default connector-state-ADDRESS beside the key, by --listen)")
	flags.StringVar(&f.page, "page", "", "`FILE` with the HTML for rooms whose failure is page")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil, "`NETWORKS` whose X-Forwarded-* are believed, such as 10.0.0.0/8")
	flags.BoolVar(&f.authOnly, "auth-only", false, "answer the auth_request of nginx")
	flags.Var(&f.maxBody, "max-body", "refuse bodies of more than `SIZE`, such as 20m (default any)")
	f.maxHeader = proxy.DefaultHeaderSize
	flags.Var(&f.maxHeader, "max-header", "refuse headers of more than `SIZE`")
	flags.DurationVar(&f.proxy.Limits.HeaderTime, "header-timeout", proxy.DefaultHeaderTime, "how long a client may take for a header")
	flags.DurationVar(&f.proxy.Limits.Idle, "idle-timeout", proxy.DefaultIdle, "how long a client may keep a connection without a request")
	flags.DurationVar(&f.proxy.Limits.Stall, "stall-timeout", proxy.DefaultStall, "how long a client may leave a body that it sends or gets without a byte")
	flags.DurationVar(&f.proxy.Limits.Answer, "answer-timeout", proxy.DefaultAnswer, "how long the site may take until it begins to answer")
	flags.DurationVar(&f.proxy.Drain, "drain", 0, "when told to stop, go on for so long, but not ready any more")
	flags.DurationVar(&f.proxy.Grace, "grace", proxy.DefaultGrace, "how long requests under way and WebSockets may then take to end")
	flags.BoolVar(&f.accessLog, "access-log", false, "log each request, without its query")
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT`, text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`, debug, info, warn or error")
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "token-file" { // there the management token may be, which is for other commands
			names = append(names, flag.Name)
		}
	})
	inEnv(flags, names...)
}

func (f *proxyFlags) run(ctx context.Context, t *terminal) error {
	if err := f.read(t); err != nil {
		return err
	}
	f.connector.Kind, f.connector.Version = "proxy", versionText()
	if f.authOnly {
		f.connector.Kind = "nginx"
	}
	all, err := f.listeners(ctx) // first: what is kept by their address is of whoever has that
	if err != nil {
		return err
	}
	c, err := connector.New(f.connector)
	if err != nil {
		all.close()
		return f.explainConnector(err)
	}
	defer c.Close()
	f.proxy.Connector = c
	return f.serve(ctx, t, all)
}

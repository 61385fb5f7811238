// Package proxy implements "proofline proxy", the reverse proxy that protects a site: it turns
// flags and files into options of the package connector/proxy and serves.
package proxy

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/proxy"
)

const connectorKeyFile = "connector-key" // name of the key's file in the data directory

// settings are the flags and the options made from them.
type settings struct {
	rules, site       string
	siteKey, reportTo string
	tokenFile, keep   string
	noKeep            bool
	to                []string
	https             https.Flags
	listen, metrics   string
	key, page         string
	state             string
	proxies           []string
	authOnly          bool
	accessLog         bool
	maxBody           byteSize
	maxHeader         byteSize
	logFormat         string
	logLevel          string

	connector connector.Options // options that read makes from the flags
	proxy     proxy.Options
	speaks    *https.Server // nil: plain HTTP
}

// Command returns "proofline proxy".
func Command(t *cli.Terminal) *cobra.Command {
	var f settings
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Protect a site as a reverse proxy: admit only visitors with a pass",
		Long: `Protect a site as a reverse proxy. It admits only requests that have a pass or
that the rules exempt from waiting. connector/README.md explains rules and
failures, connector/proxy/README.md all of these flags.

With --auth-only it answers nginx's auth_request instead, and needs no --to:
connector/nginx/README.md has the configuration.`,
		Example: `  proofline proxy --rules rules.json --to http://127.0.0.1:3000 --listen :8081
  proofline proxy --rules rules.json --to http://10.0.0.7:3000,http://10.0.0.8:3000 --check /healthz \
    --listen :443 --tls-cert site.pem --tls-key site.key --redirect-http :80
  proofline proxy --site https://queue.example.com/v1/sites/shop/rules --site-key "$(cat site-key)" \
    --token-file ./token --to http://127.0.0.1:3000
  proofline proxy --rules rules.json --auth-only --listen 127.0.0.1:8099`,
		Args:    cobra.NoArgs,
		PreRunE: t.FromEnv,
		RunE:    cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	f.add(c.Flags(), t)
	return c
}

// add adds the flags.
func (f *settings) add(flags *pflag.FlagSet, t *cli.Terminal) {
	f.addRules(flags)
	f.addListeners(flags)
	f.addFiles(flags, t)
	f.addLimits(flags)
	flags.StringSliceVar(&f.to, "to", nil,
		"`URLS` of the site, such as http://127.0.0.1:3000; several share the requests")
	flags.StringVar(&f.proxy.Check, "check", "",
		"`PATH` that a healthy site answers with 2xx or 3xx (default: check that it accepts connections)")
	flags.StringVar(&f.proxy.CheckHost, "check-host", "", "`HOST` header of the check (default that of the site's URL)")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil,
		"`NETWORKS` whose X-Forwarded-* are believed, such as 10.0.0.0/8")
	flags.BoolVar(&f.authOnly, "auth-only", false, "answer nginx's auth_request")
	flags.BoolVar(&f.accessLog, "access-log", false, "log each request, without its query")
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT`, text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`, debug, info, warn or error")
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		// PROOFLINE_TOKEN_FILE may name the management token of other commands.
		if flag.Name != "token-file" && flag.Annotations == nil {
			names = append(names, flag.Name)
		}
	})
	cli.InEnv(flags, names...)
}

// addRules adds the flags about the source of the rules and the server to report to.
func (f *settings) addRules(flags *pflag.FlagSet) {
	flags.StringVar(&f.rules, "rules", "", "`FILE` of the rules, read again when it changes, or their https URL")
	flags.StringVar(&f.site, "site", "",
		"`URL` of rules on a server, instead of --rules, such as https://queue.example.com/v1/sites/shop/rules")
	flags.StringVar(&f.siteKey, "site-key", "", "`KEY` that verifies the server's rules, from \"proofline site key\"")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"`FILE` of the token for the server, with the scope connect, read again when it changes; or set PROOFLINE_TOKEN")
	flags.StringVar(&f.reportTo, "report-to", "",
		"`URL` of the server to report to, with --rules and a token (default that of --site)")
	flags.StringVar(&f.keep, "keep", "",
		"`FILE` for a copy of the rules of a URL, used when a start cannot fetch them (default one next to the key)")
	flags.BoolVar(&f.noKeep, "no-keep", false,
		"keep no copy: when a start cannot fetch the rules, visitors get the retry page")
}

func (f *settings) addListeners(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8081", "listen on this `HOST:PORT`; port 0 picks a free one")
	f.https.Add(flags)
	flags.StringVar(&f.metrics, "metrics", "",
		"serve /metrics for Prometheus, healthz and readyz on this `HOST:PORT`, which should not be public")
}

func (f *settings) addFiles(flags *pflag.FlagSet, t *cli.Terminal) {
	flags.StringVar(&f.key, "key", "",
		"`FILE` of the cookie key, created if it does not exist (default "+filepath.Join(t.DataDir(),
			connectorKeyFile)+")")
	flags.StringVar(&f.state, "state", "",
		"`FILE` that keeps unreported fail-open intervals and gate states over a restart "+
			"(default connector-state-ADDRESS next to the key, by --listen)")
	flags.StringVar(&f.page, "page", "", "`FILE` with the HTML page for rooms whose failure is page")
}

func (f *settings) addLimits(flags *pflag.FlagSet) {
	flags.Var(&f.maxBody, "max-body", "refuse bodies larger than `SIZE`, such as 20m (default no limit)")
	f.maxHeader = proxy.DefaultHeaderSize
	flags.Var(&f.maxHeader, "max-header", "refuse headers larger than `SIZE`")
	l := &f.proxy.Limits
	flags.DurationVar(&l.HeaderTime, "header-timeout", proxy.DefaultHeaderTime,
		"maximum time for a client to send a header")
	flags.DurationVar(&l.Idle, "idle-timeout", proxy.DefaultIdle,
		"maximum time for a client's connection without a request")
	flags.DurationVar(&l.Stall, "stall-timeout", proxy.DefaultStall,
		"maximum time without a byte while a client sends or receives a body")
	flags.DurationVar(&l.Answer, "answer-timeout", proxy.DefaultAnswer, "maximum time until the site begins to answer")
	flags.DurationVar(&f.proxy.Drain, "drain", 0, "when stopping, serve for this long while reporting not ready")
	flags.DurationVar(&f.proxy.Grace, "grace", proxy.DefaultGrace,
		"after that, maximum time for open requests and WebSockets to end")
}

func (f *settings) run(ctx context.Context, t *cli.Terminal) error {
	hangups := t.Hangups()
	if err := f.read(t); err != nil {
		return err
	}
	f.connector.Kind, f.connector.Version = "proxy", t.Version
	if f.authOnly {
		f.connector.Kind = "nginx"
	}
	all, err := f.listeners(ctx) // first, because state files belong to the process that has the address
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
	go cli.Reload(ctx, hangups, f.proxy.Log, f.reloading(c))
	return f.serve(ctx, t, all)
}

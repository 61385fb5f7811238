package issuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/cmd/proofline/internal/listen"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/personal"
	"github.com/proofline/proofline/web/client"
	web "github.com/proofline/proofline/web/issuer"
	"github.com/proofline/proofline/web/limit"
)

// serveFlags are the flags of issuer serve.
type serveFlags struct {
	dir                issuerdir.Dir
	addr, config, smtp string
	proxies            []string
	attempts, pages    int
	solved             int
	keep               retention.Keep
	settled            time.Duration // how long the clock must go without a jump before it deletes
	https              https.Flags

	base    web.Config             // what all configurations share
	current atomic.Pointer[config] // the configuration in use
	hangups <-chan os.Signal
}

func serveCommand(t *cli.Terminal) *cobra.Command {
	f := serveFlags{settled: personal.Settled}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the pages on which visitors are confirmed",
		Long: `Serve the pages on which visitors prove something and get a credential for their
place in a room. Everything is kept in the directory of --data: the secret that
signs, lists, and records of what was issued, all as keyed hashes. Back it up, and
never run an older copy: it would issue again what it has forgotten.

Lists, the configuration and the files that it names are read at the start, and
again on SIGHUP.`,
		Example: `  proofline issuer serve --config issuer.yaml
  proofline issuer serve --addr :8091 --smtp smtps://user:password@mail.example.org?from=club@example.org`,
		Args:    cobra.NoArgs,
		PreRunE: t.FromEnv,
		RunE:    cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	addData(flags, &f.dir, t)
	addConfig(flags, &f.config)
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8091", "listen on this `HOST:PORT`; port 0 picks a free one")
	flags.StringVar(&f.smtp, "smtp", "",
		"mail server for codes, smtp(s)://USER:PASSWORD@HOST:PORT?from=ADDRESS, or a `FILE` with that URL")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil,
		"`NETWORKS` whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.IntVar(&f.attempts, "limit-attempts", web.DefaultAttempts,
		"wrong codes, members and puzzles, and mails a minute per network: at most `N`, in a burst ten times as many; 0: no limit")
	flags.IntVar(&f.pages, "limit-pages", web.DefaultPages,
		"pages a minute per network: at most `N`, in a burst twice as many; 0: no limit")
	flags.IntVar(&f.solved, "limit-solved", web.DefaultSolved,
		"solved puzzles and CAPTCHAs a minute per network: at most `N`, in a burst twice as many; 0: no limit")
	f.keep = retention.Default
	flags.Var(&f.keep, "keep-personal",
		"delete passkeys this many `DAYS` after their last use, and an offer's lists and records after its until, such as "+
			"90d; forever: keep them")
	f.https.Add(flags)
	cli.InEnv(flags, "addr", "smtp", "trusted-proxies", "limit-attempts", "limit-pages", "limit-solved",
		"keep-personal")
	return c
}

func (f *serveFlags) run(ctx context.Context, t *cli.Terminal) error {
	f.hangups = t.Hangups()
	c, err := readConfig(f.config)
	if err != nil {
		return err
	}
	if _, err := f.dir.Issuer(nil); err != nil { // creates the directory
		return err
	}
	store, err := issuer.OpenStore(string(f.dir))
	if errors.Is(err, issuer.ErrLocked) {
		return cli.Failed(err, "another issuer runs with this directory: stop it, or choose another one with --data")
	}
	if err != nil {
		return cli.Failed(err, "choose another directory with --data")
	}
	var p pages
	if err := f.prepare(t, store); err != nil {
		return errors.Join(err, store.Close())
	}
	site, err := f.site(c)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	p.use(site)
	f.current.Store(c)
	forgetting, stop := context.WithCancel(ctx)
	forgotten := make(chan struct{})
	go func() {
		defer close(forgotten)
		f.forget(forgetting, store)
	}()
	err = f.serve(ctx, t, c, &p)
	p.close()
	stop()
	<-forgotten
	return errors.Join(err, store.Close())
}

// prepare sets what all configurations share.
func (f *serveFlags) prepare(t *cli.Terminal, store *issuer.Store) (err error) {
	if f.attempts < 0 || f.pages < 0 || f.solved < 0 {
		return cli.Usage(errors.New("limits must not be negative"), "run proofline issuer serve --help")
	}
	log := slog.New(slog.NewTextHandler(t.Err, nil))
	var networks []netip.Prefix
	for _, text := range f.proxies {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return cli.Usage(fmt.Errorf("--trusted-proxies: %w", err), "give networks such as 10.0.0.0/8")
		}
		networks = append(networks, network.Masked())
	}
	f.base = web.Config{Clients: client.New(networks, log), Now: time.Now, Log: log,
		Limits: limit.New(limit.Options{Passes: f.attempts, Pages: f.pages, Joins: f.solved, Log: log})}
	f.base.Issuer, err = f.dir.Issuer(store)
	return err
}

// site returns the pages of a configuration.
func (f *serveFlags) site(c *config) (*web.Site, error) {
	s := f.base
	s.URL, s.Name = c.url, c.Name
	var err error
	if s.Offers, err = c.offers(f.dir, s.Issuer, f.keep); err != nil {
		return nil, err
	}
	if s.Provider, err = c.provider(); err != nil {
		return nil, err
	}
	if s.Captcha, err = c.captcha(); err != nil {
		return nil, err
	}
	if f.smtp != "" {
		if s.Mailer, err = f.mailServer(); err != nil {
			return nil, err
		}
	}
	site, err := web.New(s)
	if err != nil {
		return nil, invalid(f.config, err)
	}
	return site, nil
}

// reload reads the configuration again, with its lists and secrets, and serves what it says.
func (f *serveFlags) reload(p *pages) error {
	c, err := readConfig(f.config)
	if err != nil {
		return err
	}
	site, err := f.site(c)
	if err != nil {
		return err
	}
	p.use(site)
	f.current.Store(c)
	return nil
}

func (f *serveFlags) mailServer() (*webhook.SMTP, error) {
	text := f.smtp
	if !strings.HasPrefix(text, "smtp://") && !strings.HasPrefix(text, "smtps://") {
		var err error
		if text, err = secret.Read(f.smtp); err != nil {
			return nil, cli.Usage(errors.New("--smtp: neither an smtp URL nor the name of a readable file"),
				"give a URL such as smtps://user:password@mail.example.org?from=club@example.org")
		}
	}
	server, err := webhook.ParseSMTP(strings.TrimSpace(text))
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--smtp: %w", err), "check the URL")
	}
	return server, nil
}

func (f *serveFlags) serve(ctx context.Context, t *cli.Terminal, c *config, p *pages) error {
	speaks, err := f.https.Open(string(f.dir), f.base.Log)
	if err != nil {
		return err
	}
	go cli.Reload(ctx, f.hangups, f.base.Log, append(speaks.Reloading(), cli.Reloading{Name: "configuration and lists",
		Reload: func(context.Context) error { return f.reload(p) }}))
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return cli.Failed(err, "another program listens there: choose another address with --addr")
	}
	if err != nil {
		return cli.Failed(err, "")
	}
	_, redirected, err := speaks.Redirect(ctx, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := t.Printf("%s vouches for visitors at %s\nlistening on %s://%s\n", c.Name, c.url,
		speaks.Scheme(), listen.Address(l.Addr())); err != nil {
		return errors.Join(err, l.Close())
	}
	const limit = 30 * time.Second // time limit of a request, and of stopping
	err = listen.Serve(ctx, speaks.Wrap(l), limit, &http.Server{Handler: speaks.Handle(p), ReadTimeout: limit,
		WriteTimeout: limit,
		IdleTimeout:  2 * time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)})
	if ctx.Err() != nil {
		<-redirected
	}
	return err
}

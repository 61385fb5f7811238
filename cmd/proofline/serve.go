package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web"
)

// chainTimeout bounds the question which chain relays serve.
const chainTimeout = 20 * time.Second

type serveFlags struct {
	server.Config
	proxies   []string
	relays    []string
	chain     string
	witnesses []string
	oidc      oidcFlags
	hooks     hookFlags
	logFormat string
	logLevel  string
}

func serveCommand(t *terminal) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: `Run a server of waiting rooms until it is told to stop.

Without a database URL it starts a private PostgreSQL in the data directory. The
first start writes the management token to DIR/admin-token, and the key that
seals the rooms' keys to DIR/master-key. With a database URL, give a master key
made by "proofline master-key": every server of one database needs the same.`,
		Example: `  proofline serve
  proofline serve --addr :8080 --public-url https://queue.example.com
  DATABASE_URL=postgres://db.example.com/proofline proofline serve --master-key /etc/proofline/master-key`,
		Args:    cobra.NoArgs,
		PreRunE: t.fromEnv,
		RunE:    runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	flags.StringVar(&f.Addr, "addr", "127.0.0.1:8080", "listen on this `HOST:PORT`; port 0 takes any that is free")
	flags.StringVar(&f.Data, "data", t.dataDir(), "keep data and secrets in this `DIR`")
	flags.StringVar(&f.PublicURL, "public-url", "", "`URL` that visitors reach the server under (default http:// and the address)")
	flags.StringVar(&f.DatabaseURL, "database-url", "", "`URL` of a PostgreSQL (default a private one in the data directory)")
	flags.StringVar(&f.MasterKey, "master-key", "", "`FILE` of the key that seals the rooms' keys; the variable may hold the key itself (default DIR/master-key)")
	flags.StringVar(&f.TokenFile, "admin-token-file", "", "`FILE` of the management token (default DIR/admin-token)")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil, "`NETWORKS` whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.relays, "beacon-relays", nil, "`URLS` of drand relays, such as "+relay.Public()[0]+"; with them new rooms draw with public randomness")
	flags.StringVar(&f.chain, "beacon-chain", "", "`HASH` of the relays' drand chain (default quicknet)")
	flags.StringSliceVar(&f.witnesses, "witnesses", nil, "`KEY=URL` of each witness who is asked to cosign, its verifier key and address")
	flags.IntVar(&f.MaxStreams, "max-streams", web.DefaultStreams, "tell at most `N` visitors near the front of every change at once; the others ask")
	f.oidc.add(flags)
	f.hooks.add(flags)
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT`, text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`, debug, info, warn or error")
	inEnv(flags, "addr", "data", "public-url", "database-url", "master-key", "admin-token-file", "trusted-proxies", "beacon-relays", "beacon-chain", "witnesses", "max-streams", "log-format", "log-level")
	return c
}

func (f *serveFlags) run(ctx context.Context, t *terminal) error {
	if err := f.check(t); err != nil {
		return err
	}
	if err := f.findChain(ctx); err != nil {
		return err
	}
	s, err := server.Start(ctx, f.Config)
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // told to stop before it was up
	}
	if err != nil {
		return explain(err)
	}
	if err := t.greet(s); err != nil {
		return errors.Join(err, s.Stop())
	}
	err = s.Wait(ctx)
	f.Log.Info("stopping")
	return errors.Join(err, s.Stop())
}

// greet says where the server is, and, as long as nobody owns it, how to begin.
func (t *terminal) greet(s *server.Server) error {
	if err := t.printf("listening on %s\n", s.URL); err != nil || s.SetupLink == "" {
		return err
	}
	return t.printf("make the first account at %s - this link works once, for a day\n", s.SetupLink)
}

// check reads the flags that are more than texts.
func (f *serveFlags) check(t *terminal) (err error) {
	if f.Log, err = t.logger(f.logFormat, f.logLevel); err != nil {
		return usage(err, "run proofline serve --help")
	}
	if f.PublicURL != "" {
		if f.PublicURL, err = server.ParsePublicURL(f.PublicURL); err != nil {
			return usage(fmt.Errorf("--public-url: %w", err), "give scheme and host, such as https://queue.example.com")
		}
	}
	for _, text := range f.proxies {
		_, network, err := net.ParseCIDR(strings.TrimSpace(text))
		if err != nil {
			return usage(fmt.Errorf("--trusted-proxies: %w", err), "give networks such as 10.0.0.0/8,192.0.2.7/32")
		}
		f.TrustedProxies = append(f.TrustedProxies, network)
	}
	if f.Witnesses, err = parseWitnesses(f.witnesses); err != nil {
		return usage(fmt.Errorf("--witnesses: %w", err), "give each as KEY=URL, as proofline-verify witness prints them")
	}
	if f.OIDC, err = f.oidc.config(); err != nil {
		return err
	}
	if err := f.hooks.check(&f.Config); err != nil {
		return err
	}
	f.Version = versionText()
	f.Data, err = filepath.Abs(f.Data)
	return err
}

// parseWitnesses reads KEY=URL of witnesses.
func parseWitnesses(list []string) (witnesses []room.Witness, err error) {
	for _, text := range list {
		vkey, address, ok := strings.Cut(text, "=")
		u, err := url.Parse(address)
		if !ok || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("%.100q has no address of a witness", text)
		}
		key, err := audit.ParseWitness(vkey)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(witnesses, func(w room.Witness) bool { return w.Key.Key == key.Key }) {
			return nil, fmt.Errorf("%s has the key of another one", key.Name())
		}
		if len(witnesses) == fairness.MaxWitnesses {
			return nil, fmt.Errorf("there are more than %d", fairness.MaxWitnesses)
		}
		client := &witness.Client{URL: address, Key: key, Now: time.Now}
		witnesses = append(witnesses, room.Witness{Key: key, Cosigner: client})
	}
	return witnesses, nil
}

// findChain finds the beacon of the relays. Quicknet is known; any other chain
// is asked for, and vouched for by its hash.
func (f *serveFlags) findChain(ctx context.Context) error {
	if len(f.relays) == 0 {
		if f.chain != "" {
			return usage(errors.New("--beacon-chain: there are no --beacon-relays to have it from"), "give the URLs of its relays")
		}
		return nil
	}
	client := &relay.Client{Chain: beacon.Quicknet(), Log: f.Log}
	for _, text := range f.relays {
		address, err := relay.ParseURL(text)
		if err != nil {
			return usage(fmt.Errorf("--beacon-relays: %w", err), "give addresses such as "+relay.Public()[0])
		}
		client.URLs = append(client.URLs, address)
	}
	if f.chain != "" {
		hash, err := hex.DecodeString(f.chain)
		if err != nil || len(hash) != 32 {
			return usage(errors.New("--beacon-chain: not the hash of a chain"), "give 64 hex digits, as relays and proofline beacon serve say them")
		}
		ctx, cancel := context.WithTimeout(ctx, chainTimeout)
		defer cancel()
		chain, err := client.Find(ctx, [32]byte(hash))
		if err != nil {
			return failed(fmt.Errorf("--beacon-chain: %w", err), "check --beacon-relays")
		}
		client.Chain = chain
	}
	if f.chain == "" {
		go warnOfRelays(ctx, client)
	}
	f.Chains = []room.Chain{{Chain: client.Chain, Rounds: client}}
	return nil
}

// warnOfRelays tells of relays that do not serve the chain. With those no draw
// would ever be made; but a server starts without them, for they may come back.
func warnOfRelays(ctx context.Context, client *relay.Client) {
	ctx, cancel := context.WithTimeout(ctx, chainTimeout)
	defer cancel()
	_, err := client.Info(ctx)
	switch {
	case errors.Is(err, relay.ErrChain):
		client.Log.Error("no relay serves quicknet: name the chain that they serve with --beacon-chain", "err", err)
	case err != nil && !errors.Is(ctx.Err(), context.Canceled):
		client.Log.Warn("no relay of the beacon answers; draws wait for one", "err", err)
	}
}

// logger returns the structured log to standard error.
func (t *terminal) logger(format, level string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is none of debug, info, warn, error", level)
	}
	options.Level = parsed
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(t.err, &options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(t.err, &options)), nil
	}
	return nil, fmt.Errorf("--log-format: %q is neither text nor json", format)
}

// explain says what can be done about a server that does not start.
func explain(err error) error {
	var unreachable *pgconn.ConnectError
	switch {
	case errors.Is(err, server.ErrNoMasterKey):
		return usage(err, "make one with: proofline master-key FILE; then give it with --master-key FILE, or its text in PROOFLINE_MASTER_KEY")
	case errors.Is(err, room.ErrMasterKey) || errors.Is(err, server.ErrKeyLost):
		return failed(err, "rooms open only with the key they were made with; bring it back from your backup")
	case errors.Is(err, secret.ErrExposed):
		return failed(err, "make it yours alone: chmod 600 FILE")
	case errors.As(err, &unreachable):
		return &exit{exitUnreachable, err, "check the database URL, and that the database runs"}
	case errors.Is(err, syscall.EADDRINUSE):
		return failed(err, "another program listens there: choose another address with --addr")
	case errors.Is(err, fs.ErrPermission):
		return failed(err, "choose another directory with --data, or run as its owner")
	}
	return failed(err, "")
}

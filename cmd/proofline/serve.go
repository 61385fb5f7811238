package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/migrations"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/web"
)

// chainTimeout bounds the request for the relays' chain.
const chainTimeout = 20 * time.Second

type serveFlags struct {
	server.Config
	proxies   []string
	relays    []string
	chain     string
	witnesses []string
	limits    limitFlags
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
		Long: `Run a server of waiting rooms until it is interrupted.

Without a database URL it starts a private PostgreSQL in the data directory. The
first start writes the management token to DIR/admin-token, the key that encrypts
the rooms' keys to DIR/master-key, and the link that creates the first account to
DIR/setup-link, where it stays until it is used. With a database URL, also give a
master key made by "proofline master-key": all servers of a database need the
same one.`,
		Example: `  proofline serve
  proofline serve --addr :8080 --public-url https://queue.example.com
  DATABASE_URL=postgres://db.example.com/proofline proofline serve --master-key /etc/proofline/master-key`,
		Args:    cobra.NoArgs,
		PreRunE: t.fromEnv,
		RunE:    runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	flags.StringVar(&f.Addr, "addr", "127.0.0.1:8080", "listen on this `HOST:PORT`; port 0 picks a free one")
	flags.StringVar(&f.MetricsAddr, "metrics-addr", "",
		"serve /metrics for Prometheus and /debug/pprof/ on this `HOST:PORT`, to every client that reaches it (default off)")
	flags.StringVar(&f.Data, "data", t.dataDir(), "keep data and secrets in this `DIR`")
	flags.StringVar(&f.PublicURL, "public-url", "",
		"`URL` at which visitors reach the server (default http:// and the address)")
	flags.StringVar(&f.DatabaseURL, "database-url", "",
		"`URL` of a PostgreSQL database (default a private one in the data directory)")
	flags.StringVar(&f.OwnerURL, "owner-database-url", "",
		"`URL` of that database for the owner of its schema, who runs the migrations (default the database URL)")
	flags.DurationVar(&f.DatabaseWait, "database-wait", 0,
		"maximum `TIME` that a start waits for a database that does not answer (default no limit)")
	flags.StringVar(&f.MasterKey, "master-key", "",
		"`FILE` of the key that encrypts the rooms' keys; the variable may hold the key itself (default DIR/master-key)")
	flags.StringVar(&f.TokenFile, "admin-token-file", "", "`FILE` of the management token (default DIR/admin-token)")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil,
		"`NETWORKS` whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.relays, "beacon-relays", relay.Public(),
		"`URLS` of drand relays, the source of public randomness for draws; "+noRelays+
			" turns it off: rooms then reach level 1 at most")
	flags.StringVar(&f.chain, "beacon-chain", "", "`HASH` of the relays' drand chain (default quicknet)")
	flags.StringSliceVar(&f.witnesses, "witnesses", nil,
		"`KEY=URL` of each witness to ask for cosignatures: its verifier key and address")
	flags.IntVar(&f.MaxStreams, "max-streams", web.DefaultStreams,
		"push changes at once to at most `N` visitors near the front; the others poll")
	flags.StringSliceVar(&f.Contacts, "security-contact", nil,
		"`URIS` for vulnerability reports in /.well-known/security.txt, such as mailto:security@example.com (default no file)")
	f.limits.add(flags, &f.Limits)
	f.oidc.add(flags)
	f.hooks.add(flags)
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT`, text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`, debug, info, warn or error")
	inEnv(flags, "addr", "metrics-addr", "data", "public-url", "database-url", "owner-database-url", "database-wait",
		"master-key", "admin-token-file", "trusted-proxies", "beacon-relays", "beacon-chain", "witnesses", "max-streams",
		"security-contact", "log-format", "log-level")
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
		return nil //nolint:nilerr // interrupted during the start
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

// greet prints the server's address and, until there is an owner, how to create the
// first account. It prints the link itself only to a terminal: other output may be
// stored and read by others.
func (t *terminal) greet(s *server.Server) error {
	if err := t.printf("listening on %s\n", s.URL); err != nil {
		return err
	}
	if s.MetricsURL != "" {
		if err := t.printf("metrics on %s\n", s.MetricsURL); err != nil {
			return err
		}
	}
	if s.SetupLink == "" {
		return nil
	}
	if t.interactive(t.out) {
		return t.printf("create the first account at %s - this link works once, within a day\n", s.SetupLink)
	}
	return t.printf("create the first account with the link in %s, which works once, within a day\n", s.SetupFile)
}

// check parses the flags into the configuration.
func (f *serveFlags) check(t *terminal) (err error) {
	if f.Log, err = t.logger(f.logFormat, f.logLevel); err != nil {
		return usage(err, "run proofline serve --help")
	}
	if f.PublicURL != "" {
		if f.PublicURL, err = server.ParsePublicURL(f.PublicURL); err != nil {
			return usage(fmt.Errorf("--public-url: %w", err), "give scheme and host, such as https://queue.example.com")
		}
	}
	if f.TrustedProxies, err = parseNetworks("--trusted-proxies", f.proxies); err != nil {
		return err
	}
	if err = f.limits.check(&f.Limits); err != nil {
		return err
	}
	if f.Witnesses, err = parseWitnesses(f.witnesses); err != nil {
		return usage(fmt.Errorf("--witnesses: %w", err), "give each as KEY=URL, as printed by proofline-verify witness")
	}
	if err = checkContacts(f.Contacts); err != nil {
		return err
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

// contactForm matches the contacts of RFC 9116.
var contactForm = regexp.MustCompile(`^(mailto:[^\s@]+@[^\s@]+|https://\S+|tel:\+?[0-9-]+)$`)

func checkContacts(list []string) error {
	for _, contact := range list {
		if !contactForm.MatchString(contact) {
			return usage(fmt.Errorf("--security-contact: %.200q is not a contact URI", contact),
				"give mailto:ADDRESS, an https URL or tel:NUMBER")
		}
	}
	return nil
}

// parseNetworks parses networks in CIDR notation.
func parseNetworks(flag string, list []string) (networks []netip.Prefix, err error) {
	for _, text := range list {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, usage(fmt.Errorf("%s: %w", flag, err), "give networks such as 10.0.0.0/8,192.0.2.7/32")
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// parseWitnesses parses the KEY=URL of witnesses.
func parseWitnesses(list []string) (witnesses []room.Witness, err error) {
	for _, text := range list {
		vkey, address, ok := strings.Cut(text, "=")
		u, err := url.Parse(address)
		if !ok || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("%.100q is not KEY=URL", text)
		}
		key, err := audit.ParseWitness(vkey)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(witnesses, func(w room.Witness) bool { return w.Key.Key == key.Key }) {
			return nil, fmt.Errorf("%s has the same key as another witness", key.Name())
		}
		if len(witnesses) == fairness.MaxWitnesses {
			return nil, fmt.Errorf("more than %d witnesses", fairness.MaxWitnesses)
		}
		client := &witness.Client{URL: address, Key: key, Now: time.Now}
		witnesses = append(witnesses, room.Witness{Key: key, Cosigner: client})
	}
	return witnesses, nil
}

// noRelays is the value of --beacon-relays that turns the beacon off.
const noRelays = "none"

// findChain finds the relays' chain. Quicknet is built in; any other chain is
// fetched from the relays and checked against its hash.
func (f *serveFlags) findChain(ctx context.Context) error {
	if len(f.relays) == 0 || slices.Equal(f.relays, []string{noRelays}) {
		if f.chain != "" {
			return usage(errors.New("--beacon-chain needs --beacon-relays"), "give the URLs of its relays")
		}
		f.Log.Warn("public randomness is off: the operator could choose the draws of new rooms, and audits say so (level 1)")
		return nil
	}
	client := &relay.Client{Chain: beacon.Quicknet(), Log: f.Log}
	for _, text := range f.relays {
		address, err := relay.ParseURL(text)
		if err != nil {
			return usage(fmt.Errorf("--beacon-relays: %w", err),
				"give addresses such as "+relay.Public()[0]+", or "+noRelays)
		}
		client.URLs = append(client.URLs, address)
	}
	if f.chain != "" {
		hash, err := hex.DecodeString(f.chain)
		if err != nil || len(hash) != 32 {
			return usage(errors.New("--beacon-chain: not the hash of a chain"),
				"give the 64 hex digits that relays and proofline beacon serve print")
		}
		ctx, cancel := context.WithTimeout(ctx, chainTimeout)
		defer cancel()
		chain, err := client.Find(ctx, [32]byte(hash))
		if err != nil {
			return failed(fmt.Errorf("--beacon-chain: %w", err), "check --beacon-relays")
		}
		client.Chain = chain
	}
	known := room.Chain{Chain: client.Chain, Rounds: client}
	monitor := &relay.Monitor{Client: client, OnChange: func(err error) { f.reportRelays(ctx, client, err) }}
	known.Reach = monitor
	go monitor.Run(ctx)
	f.Chains = []room.Chain{known}
	return nil
}

// reportRelays logs whether the relays of a chain can be reached. A server also
// starts without them, as they may come back.
func (f *serveFlags) reportRelays(ctx context.Context, client *relay.Client, err error) {
	log := f.Log.With("chain", client.Chain.ID)
	if err == nil {
		log.Info("beacon relays answer")
		return
	}
	if _, other := client.Info(ctx); errors.Is(other, relay.ErrChain) {
		log.Error("no relay serves this chain: give the chain that they serve with --beacon-chain", "err", other)
		return
	}
	log.Warn("cannot reach the beacon relays: draws wait for one, and new rooms must name a beacon or none; "+
		"to work without public randomness, start with --beacon-relays "+noRelays, "err", err)
}

// logger returns a logger that writes to standard error.
func (t *terminal) logger(format, level string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is not one of debug, info, warn, error", level)
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

// explain adds exit code and hint to an error of a server's start.
func explain(err error) error {
	var unreachable *pgconn.ConnectError
	switch {
	case errors.Is(err, server.ErrNoMasterKey):
		return usage(err, "make one with: proofline master-key FILE; "+
			"then give it with --master-key FILE, or its text in PROOFLINE_MASTER_KEY")
	case errors.Is(err, server.ErrNoDatabase):
		return usage(err, "also give --database-url, the URL for the server's own role")
	case errors.Is(err, migrations.ErrOwner):
		return failed(err, "start once with --owner-database-url, the URL of the schema's owner")
	case errors.Is(err, keys.ErrMasterKey) || errors.Is(err, server.ErrKeyLost):
		return failed(err, "rooms open only with the key they were created with: restore it from your backup")
	case errors.Is(err, secret.ErrExposed):
		return failed(err, "restrict that file to its owner with chmod 600")
	case errors.Is(err, pglog.ErrPooler):
		return failed(err, "give the address of PostgreSQL itself, or of a pool with pool_mode = session")
	case errors.As(err, &unreachable):
		return &exit{exitUnreachable, err, "check the database URL, and that the database is running"}
	case errors.Is(err, server.ErrMetricsAddr):
		return failed(err, "choose another address with --metrics-addr, such as 127.0.0.1:9090")
	case errors.Is(err, syscall.EADDRINUSE):
		return failed(err, "another program listens there: choose another address with --addr")
	case errors.Is(err, fs.ErrPermission):
		return failed(err, "choose another directory with --data, or run as its owner")
	}
	return failed(err, "")
}

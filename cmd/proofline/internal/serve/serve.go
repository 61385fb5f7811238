// Package serve implements the commands that run a server or work on its data: "proofline serve",
// "proofline recover" and "proofline master-key".
package serve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/internal/heap"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/web"
)

// garbage is the memory in bytes that a server's garbage may take.
const garbage = 64 << 20

type serveFlags struct {
	server.Config
	proxies   []string
	relays    []string
	chain     string
	witnesses []string
	limits    limitFlags
	oidc      oidcFlags
	captcha   captchaFlags
	visitors  visitorOIDCFlags
	webhooks  webhookFlags
	https     https.Flags
	issuer    string
	logFormat string
	logLevel  string
}

// Command returns "proofline serve".
func Command(t *cli.Terminal) *cobra.Command {
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
		PreRunE: t.FromEnv,
		RunE:    cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	f.add(c.Flags(), t)
	return c
}

// add adds the flags.
func (f *serveFlags) add(flags *pflag.FlagSet, t *cli.Terminal) {
	flags.StringVar(&f.Addr, "addr", "127.0.0.1:8080", "listen on this `HOST:PORT`; port 0 picks a free one")
	flags.StringVar(&f.MetricsAddr, "metrics-addr", "",
		"serve /metrics for Prometheus, /livez, /readyz and /debug/pprof/ on this `HOST:PORT`, to every client that "+
			"reaches it (default off)")
	addStorage(flags, t, &f.Config)
	flags.StringVar(&f.PublicURL, "public-url", "",
		"`URL` at which visitors reach the server (default http:// and the address)")
	flags.DurationVar(&f.DatabaseWait, "database-wait", 0,
		"maximum `TIME` that a start waits for a database that does not answer (default no limit)")
	flags.StringVar(&f.TokenFile, "admin-token-file", "", "`FILE` of the management token (default DIR/admin-token)")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil,
		"`NETWORKS` whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.relays, "beacon-relays", relay.Public(),
		"`URLS` of drand relays, the source of public randomness for draws; "+NoRelays+
			" turns it off: rooms then reach level 1 at most")
	flags.StringVar(&f.chain, "beacon-chain", "", "`HASH` of the relays' drand chain (default quicknet)")
	flags.StringSliceVar(&f.witnesses, "witnesses", nil,
		"`KEY=URL` of each witness to ask for cosignatures: its verifier key and address")
	flags.IntVar(&f.MaxStreams, "max-streams", web.DefaultStreams,
		"push changes at once to at most `N` visitors near the front; the others poll")
	flags.StringSliceVar(&f.Contacts, "security-contact", nil,
		"`URIS` for vulnerability reports in /.well-known/security.txt, "+
			"such as mailto:security@example.com (default no file)")
	flags.StringVar(&f.issuer, "issuer", "",
		"whether the server runs an issuer of its own for methods with the key own: `own` or off; of several servers of "+
			"a database only one may (default own with a private PostgreSQL, otherwise off)")
	flags.DurationVar(&f.Watch, "watch", time.Minute,
		"watch the server's own rooms as an outsider would, and raise an alarm if a freeze, a draw or a proof is late by "+
			"this `TIME`; 0 turns the watch off")
	f.limits.add(flags, &f.Limits)
	f.oidc.add(flags)
	f.captcha.add(flags)
	f.visitors.add(flags)
	f.webhooks.add(flags)
	f.https.Add(flags)
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT`, text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`, debug, info, warn or error")
	cli.InEnv(flags, "addr", "metrics-addr", "public-url", "database-wait", "admin-token-file", "trusted-proxies",
		"beacon-relays", "beacon-chain", "witnesses", "max-streams", "security-contact", "issuer", "watch",
		"log-format", "log-level")
}

// addStorage adds the flags for the server's database, data directory and keys.
func addStorage(flags *pflag.FlagSet, t *cli.Terminal, c *server.Config) {
	flags.StringVar(&c.Data, "data", t.DataDir(), "data `DIR` of the server, with its secrets")
	flags.StringVar(&c.DatabaseURL, "database-url", "",
		"`URL` of the server's PostgreSQL (default a private one in the data directory)")
	flags.StringVar(&c.OwnerURL, "owner-database-url", "",
		"`URL` of that database for the owner of its schema, who runs the migrations (default the database URL)")
	flags.StringVar(&c.MasterKey, "master-key", "",
		"`FILE` of the key that encrypts the rooms' keys; the variable may hold the key itself (default DIR/master-key)")
	flags.StringVar(&c.MarksS3, "marks-s3", "",
		"`URL` of a bucket, such as s3://bucket/prefix, that also keeps the marks of how far each log was seen; endpoint, "+
			"region and credentials come from the AWS_* variables (default none)")
	flags.StringVar(&c.ArchiveDir, "archive-dir", "",
		"`DIR` with the transcripts that proofline offload has moved out of the database (default none)")
	cli.InEnv(flags, "data", "database-url", "owner-database-url", "master-key", "marks-s3", "archive-dir")
}

func (f *serveFlags) run(ctx context.Context, t *cli.Terminal) error {
	if err := f.check(t); err != nil {
		return err
	}
	if err := f.findChain(ctx); err != nil {
		return err
	}
	tracer, err := traces.Open(ctx, t.Version, f.Log)
	if err != nil {
		return cli.Usage(err, "see docs/operate/OBSERVE.md, or set OTEL_SDK_DISABLED=true")
	}
	if f.Tracer = tracer; f.Mail != nil {
		f.Mail.Tracer = tracer
	}
	heap.Tune(garbage)
	s, err := server.Start(ctx, f.Config)
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // interrupted during the start
	}
	if err != nil {
		return server.Explain(err)
	}
	if err := greet(t, s); err != nil {
		return errors.Join(err, s.Stop())
	}
	err = s.Wait(ctx)
	f.Log.Info("stopping")
	return errors.Join(err, s.Stop())
}

// greet prints the server's address and, until there is an owner, how to create the first account.
// It prints the link itself only on a terminal, because other people may read stored output.
func greet(t *cli.Terminal, s *server.Server) error {
	if err := t.Printf("listening on %s\n", s.URL); err != nil {
		return err
	}
	if s.RedirectURL != "" {
		if err := t.Printf("redirecting to https on %s\n", s.RedirectURL); err != nil {
			return err
		}
	}
	if s.MetricsURL != "" {
		if err := t.Printf("metrics on %s\n", s.MetricsURL); err != nil {
			return err
		}
	}
	if s.SetupLink == "" {
		return nil
	}
	if t.Interactive(t.Out) {
		return t.Printf("create the first account at %s - this link works once, within a day\n", s.SetupLink)
	}
	return t.Printf("create the first account with the link in %s, which works once, within a day\n", s.SetupFile)
}

// check parses the flags into the configuration.
func (f *serveFlags) check(t *cli.Terminal) (err error) {
	if f.Log, err = t.Logger(f.logFormat, f.logLevel); err != nil {
		return cli.Usage(err, "run proofline serve --help")
	}
	if f.PublicURL != "" {
		if f.PublicURL, err = server.ParsePublicURL(f.PublicURL); err != nil {
			return cli.Usage(fmt.Errorf("--public-url: %w", err),
				"give scheme and host, such as https://queue.example.com")
		}
	}
	if f.TrustedProxies, err = parseNetworks("--trusted-proxies", f.proxies); err != nil {
		return err
	}
	if err = f.limits.check(&f.Limits); err != nil {
		return err
	}
	f.JoinsPerMinute = uint32(f.limits.all) //nolint:gosec // check has compared it with maxLimit
	if f.Watch != 0 && f.Watch < time.Second {
		return cli.Usage(errors.New("--watch is too short"), "give at least 1s, or 0 to turn the watch off")
	}
	if f.Witnesses, err = parseWitnesses(f.witnesses); err != nil {
		return cli.Usage(fmt.Errorf("--witnesses: %w", err),
			"give each as KEY=URL, as printed by proofline-verify witness")
	}
	if err = checkContacts(f.Contacts); err != nil {
		return err
	}
	if f.OIDC, err = f.oidc.config(); err != nil {
		return err
	}
	if err := f.webhooks.check(&f.Config); err != nil {
		return err
	}
	if err = f.checkIssuer(); err != nil {
		return err
	}
	f.Version = t.Version
	if f.Data, err = filepath.Abs(f.Data); err != nil {
		return err
	}
	f.HTTPS, err = f.https.Open(f.Data, f.Log)
	return err
}

// checkIssuer parses the flags of the server's own issuer.
func (f *serveFlags) checkIssuer() (err error) {
	switch f.issuer {
	case "":
		f.OwnIssuer = f.DatabaseURL == ""
	case "own":
		f.OwnIssuer = true
	case "off":
	default:
		return cli.Usage(fmt.Errorf("--issuer: %q is neither own nor off", f.issuer),
			"another organization's issuer is a setting of a room: its methods have that issuer's key")
	}
	if f.captcha.service != "" && !f.OwnIssuer {
		return cli.Usage(errors.New("--captcha needs the server's own issuer, which is off"),
			"start with --issuer own, or give the CAPTCHA to proofline issuer")
	}
	if f.visitors.issuer != "" && !f.OwnIssuer {
		return cli.Usage(errors.New("--issuer-oidc needs the server's own issuer, which is off"),
			"start with --issuer own, or give the provider to proofline issuer")
	}
	if f.IssuerOIDC, err = f.visitors.config(); err != nil {
		return err
	}
	f.Captcha, err = f.captcha.config()
	return err
}

// contactForm matches the contacts of RFC 9116.
var contactForm = regexp.MustCompile(`^(mailto:[^\s@]+@[^\s@]+|https://\S+|tel:\+?[0-9-]+)$`)

func checkContacts(list []string) error {
	for _, contact := range list {
		if !contactForm.MatchString(contact) {
			return cli.Usage(fmt.Errorf("--security-contact: %.200q is not a contact URI", contact),
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
			return nil, cli.Usage(fmt.Errorf("%s: %w", flag, err), "give networks such as 10.0.0.0/8,192.0.2.7/32")
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// parseWitnesses parses the KEY=URL of witnesses.
func parseWitnesses(list []string) (witnesses []evidence.Witness, err error) {
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
		if slices.ContainsFunc(witnesses, func(w evidence.Witness) bool { return w.Key.Key == key.Key }) {
			return nil, fmt.Errorf("%s has the same key as another witness", key.Name())
		}
		if len(witnesses) == fairness.MaxWitnesses {
			return nil, fmt.Errorf("more than %d witnesses", fairness.MaxWitnesses)
		}
		client := &witness.Client{URL: address, Key: key, Now: time.Now}
		witnesses = append(witnesses, evidence.Witness{Key: key, Cosigner: client})
	}
	return witnesses, nil
}

// Package beacon implements "proofline beacon", which runs a beacon for rehearsals.
package beacon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/listen"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
)

// Command returns "proofline beacon".
func Command(t *cli.Terminal) *cobra.Command {
	c := &cobra.Command{
		Use:     "beacon",
		Short:   "Run a beacon of your own, for rehearsals",
		Example: "  proofline beacon serve --period 1s",
		Args:    cobra.NoArgs,
		RunE:    cli.CommandMissing,
	}
	c.AddCommand(serveCommand(t))
	return c
}

// serveFlags are the flags of beacon serve.
type serveFlags struct {
	addr, key, id, genesis string
	period                 time.Duration
}

func serveCommand(t *cli.Terminal) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the rounds of a beacon with one key",
		Long: `Serve public randomness like a drand relay, but from a single key instead of a
group's. It is for rehearsals, tests and demos: the holder of the key knows every
round in advance, so it proves nothing to others.

Only the key is stored. The same key, id, period and genesis give the same chain
with the same rounds, including those during a downtime; other values give
another chain.`,
		Example: `  proofline beacon serve
  proofline beacon serve --addr :8090 --period 1s --key ./beacon-key
  curl http://127.0.0.1:8090/public/latest`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8090", "listen on this `HOST:PORT`; port 0 picks a free one")
	flags.StringVar(&f.key, "key", "",
		"`FILE` of the key, created if it does not exist (default "+filepath.Join(t.DataDir(), keyFile)+")")
	flags.DurationVar(&f.period, "period", 3*time.Second, "`TIME` from one round to the next, in whole seconds")
	flags.StringVar(&f.genesis, "genesis", "2026-01-01T00:00:00Z", "`TIME` of the first round")
	flags.StringVar(&f.id, "id", "local", "`NAME` of the chain")
	return c
}

const keyFile = "beacon-key" // name of the key's file in the data directory

func (f *serveFlags) run(ctx context.Context, t *cli.Terminal) error {
	b, err := f.open(t)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return cli.Failed(err, "another program listens there: choose another address with --addr")
	}
	if err != nil {
		return cli.Failed(err, "")
	}
	t.Warn("a beacon you run yourself proves nothing to others: its key reveals every round in advance")
	if err := describe(t, b.Chain(), "http://"+listen.Address(l.Addr())); err != nil {
		return errors.Join(err, l.Close())
	}
	const limit = 5 * time.Second // time limit of a small request, and of stopping
	return listen.Serve(ctx, l, limit, &http.Server{
		Handler: b.Handler(), ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	})
}

// open parses the flags and reads the key.
func (f *serveFlags) open(t *cli.Terminal) (*local.Beacon, error) {
	genesis, err := time.Parse(time.RFC3339, f.genesis)
	if err != nil || genesis.Nanosecond() != 0 {
		return nil, cli.Usage(fmt.Errorf("--genesis: %q is not a time in whole seconds", f.genesis),
			"give one such as 2026-01-01T00:00:00Z")
	}
	if f.period < time.Second || f.period%time.Second != 0 || f.period > 1<<31*time.Second {
		return nil, cli.Usage(fmt.Errorf("--period: %s is not a number of whole seconds", f.period),
			"give one such as 3s")
	}
	if f.key == "" {
		f.key = filepath.Join(t.DataDir(), keyFile)
		//nolint:gosec // under root another user runs the private PostgreSQL inside it
		if err := os.MkdirAll(t.DataDir(), 0o711); err != nil {
			return nil, cli.Failed(err, "choose another file with --key")
		}
	}
	text, err := secret.Ensure(f.key, func() (string, error) { return local.NewKey().Encode(), nil })
	if errors.Is(err, secret.ErrExposed) {
		return nil, cli.Failed(err, "restrict it to its owner: chmod 600 "+f.key)
	}
	if err != nil {
		return nil, cli.Failed(err, "choose another file with --key")
	}
	key, err := local.ParseKey(text)
	if err != nil {
		return nil, cli.Failed(fmt.Errorf("%s: %w", f.key, err),
			"choose another file with --key; it is created if it does not exist")
	}
	b, err := local.New(key, local.Config{ID: f.id, Genesis: genesis.Unix(), Period: uint32(f.period / time.Second)})
	if err != nil {
		return nil, cli.Usage(err, "run proofline beacon serve --help")
	}
	return b, nil
}

// describe prints the parameters that others need to use the beacon, and the address it listens on.
func describe(t *cli.Terminal, c beacon.Chain, url string) error {
	genesis := time.Unix(c.Genesis, 0).UTC().Format(time.RFC3339)
	return t.Printf("chain       %x\npublic key  %x\nscheme      %s\nrounds      every %ds from %s on\n"+
		"info        %s/%x/info\nuse it      proofline serve --beacon-relays %s --beacon-chain %x\nlistening on %s\n",
		c.Hash(), c.PublicKey, beacon.Scheme, c.Period, genesis, url, c.Hash(), url, c.Hash(), url)
}

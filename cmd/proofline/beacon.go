package main

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

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
)

func beaconCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use:     "beacon",
		Short:   "Run a beacon of your own, for rehearsals",
		Example: "  proofline beacon serve --period 1s",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return errors.New("a command is missing after beacon") },
	}
	c.AddCommand(beaconServeCommand(t))
	return c
}

// beaconFlags are the flags of beacon serve.
type beaconFlags struct {
	addr, key, id, genesis string
	period                 time.Duration
}

func beaconServeCommand(t *terminal) *cobra.Command {
	var f beaconFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the rounds of a beacon with one key",
		Long: `Serve public randomness like a drand relay, but from a single key instead of a
group's. It is for rehearsals, tests and demos: the holder of the key knows every
round in advance, so to strangers it proves nothing.

Only the key is stored. The same key, id, period and genesis give the same chain
with the same rounds, including those during a downtime; other values give
another chain.`,
		Example: `  proofline beacon serve
  proofline beacon serve --addr :8090 --period 1s --key ./beacon-key
  curl http://127.0.0.1:8090/public/latest`,
		Args: cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8090", "listen on this `HOST:PORT`; port 0 picks a free one")
	flags.StringVar(&f.key, "key", "",
		"`FILE` of the key, created if it does not exist (default "+filepath.Join(t.dataDir(), beaconKeyFile)+")")
	flags.DurationVar(&f.period, "period", 3*time.Second, "`TIME` from one round to the next, in whole seconds")
	flags.StringVar(&f.genesis, "genesis", "2026-01-01T00:00:00Z", "`TIME` of the first round")
	flags.StringVar(&f.id, "id", "local", "`NAME` of the chain")
	return c
}

const beaconKeyFile = "beacon-key" // in the data directory

func (f *beaconFlags) run(ctx context.Context, t *terminal) error {
	b, err := f.open(t)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return failed(err, "another program listens there: choose another address with --addr")
	}
	if err != nil {
		return failed(err, "")
	}
	t.warn("a beacon you run yourself proves nothing to strangers: its key tells every round in advance")
	if err := t.describeBeacon(b.Chain(), "http://"+reachable(l.Addr())); err != nil {
		return errors.Join(err, l.Close())
	}
	const limit = 5 * time.Second // for a small request, and for stopping
	return serveHTTP(ctx, l, limit, &http.Server{
		Handler: b.Handler(), ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	})
}

// open parses the flags and reads the key.
func (f *beaconFlags) open(t *terminal) (*local.Beacon, error) {
	genesis, err := time.Parse(time.RFC3339, f.genesis)
	if err != nil || genesis.Nanosecond() != 0 {
		return nil, usage(fmt.Errorf("--genesis: %q is not a time in whole seconds", f.genesis),
			"give one such as 2026-01-01T00:00:00Z")
	}
	if f.period < time.Second || f.period%time.Second != 0 || f.period > 1<<31*time.Second {
		return nil, usage(fmt.Errorf("--period: %s is not a number of whole seconds", f.period), "give one such as 3s")
	}
	if f.key == "" {
		f.key = filepath.Join(t.dataDir(), beaconKeyFile)
		//nolint:gosec // under root another user runs the private PostgreSQL inside it
		if err := os.MkdirAll(t.dataDir(), 0o711); err != nil {
			return nil, failed(err, "choose another file with --key")
		}
	}
	text, err := secret.Ensure(f.key, func() (string, error) { return local.NewKey().Encode(), nil })
	if errors.Is(err, secret.ErrExposed) {
		return nil, failed(err, "restrict it to its owner: chmod 600 "+f.key)
	}
	if err != nil {
		return nil, failed(err, "choose another file with --key")
	}
	key, err := local.ParseKey(text)
	if err != nil {
		return nil, failed(fmt.Errorf("%s: %w", f.key, err),
			"choose another file with --key; it is created if it does not exist")
	}
	b, err := local.New(key, local.Config{ID: f.id, Genesis: genesis.Unix(), Period: uint32(f.period / time.Second)})
	if err != nil {
		return nil, usage(err, "run proofline beacon serve --help")
	}
	return b, nil
}

// describeBeacon prints the parameters that others need to use the beacon, and then
// that it listens.
func (t *terminal) describeBeacon(c beacon.Chain, url string) error {
	genesis := time.Unix(c.Genesis, 0).UTC().Format(time.RFC3339)
	return t.printf("chain       %x\npublic key  %x\nscheme      %s\nrounds      every %ds from %s on\n"+
		"info        %s/%x/info\nuse it      proofline serve --beacon-relays %s --beacon-chain %x\nlistening on %s\n",
		c.Hash(), c.PublicKey, beacon.Scheme, c.Period, genesis, url, c.Hash(), url, c.Hash(), url)
}

// reachable returns the host:port at which programs on this machine reach a listener
// on a.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("localhost", fmt.Sprint(tcp.Port))
}

// serveHTTP serves on l until ctx ends, and then waits up to stopping for open
// requests.
func serveHTTP(ctx context.Context, l net.Listener, stopping time.Duration, server *http.Server) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}

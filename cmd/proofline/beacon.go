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

// beaconFlags say which beacon to run.
type beaconFlags struct {
	addr, key, id, genesis string
	period                 time.Duration
}

func beaconServeCommand(t *terminal) *cobra.Command {
	var f beaconFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the rounds of a beacon with one key",
		Long: `Serve public randomness as a relay of drand does, from one key instead of a
group's, until told to stop. It is for rehearsals, tests and demos: whoever has
the key knows every round in advance, so to strangers it proves nothing.

Nothing is stored but the key. With the same key, id, period and genesis it is
the same chain with the same rounds, also those of the time it was away; with
others it is another chain.`,
		Example: `  proofline beacon serve
  proofline beacon serve --addr :8090 --period 1s --key ./beacon-key
  curl http://127.0.0.1:8090/public/latest`,
		Args: cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8090", "listen on this `HOST:PORT`; port 0 takes any that is free")
	flags.StringVar(&f.key, "key", "", "`FILE` of the key, made if it does not exist (default "+filepath.Join(t.dataDir(), beaconKeyFile)+")")
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
	t.warn("a beacon you run yourself proves nothing to strangers: whoever has its key knows every round in advance")
	if err := t.describeBeacon(b.Chain(), "http://"+reachable(l.Addr())); err != nil {
		return errors.Join(err, l.Close())
	}
	const limit = 5 * time.Second // of a small request, and of a stop
	return serveHTTP(ctx, l, limit, &http.Server{
		Handler: b.Handler(), ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	})
}

// open reads the flags that are more than texts, and the key.
func (f *beaconFlags) open(t *terminal) (*local.Beacon, error) {
	genesis, err := time.Parse(time.RFC3339, f.genesis)
	if err != nil || genesis.Nanosecond() != 0 {
		return nil, usage(fmt.Errorf("--genesis: %q is not a time of whole seconds", f.genesis), "give one such as 2026-01-01T00:00:00Z")
	}
	if f.period < time.Second || f.period%time.Second != 0 || f.period > 1<<31*time.Second {
		return nil, usage(fmt.Errorf("--period: %s is not a number of whole seconds", f.period), "give one such as 3s")
	}
	if f.key == "" {
		f.key = filepath.Join(t.dataDir(), beaconKeyFile)
		//nolint:gosec // a server run by root has a PostgreSQL of another user below it
		if err := os.MkdirAll(t.dataDir(), 0o711); err != nil {
			return nil, failed(err, "choose another file with --key")
		}
	}
	text, err := secret.Ensure(f.key, func() (string, error) { return local.NewKey().Encode(), nil })
	if errors.Is(err, secret.ErrExposed) {
		return nil, failed(err, "make it yours alone: chmod 600 "+f.key)
	}
	if err != nil {
		return nil, failed(err, "choose another file with --key")
	}
	key, err := local.ParseKey(text)
	if err != nil {
		return nil, failed(fmt.Errorf("%s: %w", f.key, err), "choose another file with --key; one that does not exist is made")
	}
	b, err := local.New(key, local.Config{ID: f.id, Genesis: genesis.Unix(), Period: uint32(f.period / time.Second)})
	if err != nil {
		return nil, usage(err, "run proofline beacon serve --help")
	}
	return b, nil
}

// describeBeacon prints what others need to use a beacon, and last that it is up.
func (t *terminal) describeBeacon(c beacon.Chain, url string) error {
	return t.printf("chain       %x\npublic key  %x\nscheme      %s\nrounds      every %ds from %s on\ninfo        %s/%x/info\nuse it      proofline serve --beacon-relays %s --beacon-chain %x\nlistening on %s\n",
		c.Hash(), c.PublicKey, beacon.Scheme, c.Period, time.Unix(c.Genesis, 0).UTC().Format(time.RFC3339), url, c.Hash(), url, c.Hash(), url)
}

// reachable is where this machine reaches what listens on a.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("localhost", fmt.Sprint(tcp.Port))
}

// serveHTTP answers on l until ctx ends, and then finishes what is under way,
// as long as that takes no longer than stopping.
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

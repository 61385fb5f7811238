// Package demo runs and narrates a whole sale on this machine, and checks everything
// it sees. It starts a server with its own PostgreSQL, a beacon, two witnesses, and a
// shop behind the real proxy. A crowd of visitors joins, waits and claims over HTTP,
// an organizer pauses the sale, the standalone verifier audits the transcript, and
// finds the forged byte in a copy of it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
)

// ErrFailed is returned when a check failed. The narrator has told which one.
var ErrFailed = errors.New("checks of the demo failed")

// Limits on the number of visitors.
const (
	MinVisitors = 50
	MaxVisitors = 20_000
)

// timeout bounds the sale and its audit.
const timeout = 2 * time.Minute

// Options configure a demo.
type Options struct {
	Visitors int    // MinVisitors to MaxVisitors
	Addr     string // of the server, host:port
	Data     string // data directory; empty: a temporary one
	Keep     bool   // keep data and server until the context ends
	Shop     bool   // instead of a sale, open the shop for a browser until the context ends
	Program  string // path of this binary, which also runs the proxy
	Verifier string // path of proofline-verify
	Narrator *Narrator
	Log      *slog.Logger
	ProxyLog io.Writer
}

// demo is one run. The fields below the options are set chapter by chapter.
type demo struct {
	Options
	dir          string // data directory
	thirdParties thirdParties
	server       *server.Server
	organizer    *api.Client
	visitor      *api.Client // with the room as its base
	room         api.Room
	front        front
	plan         plan
	crowd        []*visitor
	kept         string // file with a checkpoint from the middle of the sale
	size         uint64 // of the transcript at the end, in entries
	windows      int    // with arrivals
	tally        tally

	replacements int // visitors called in place of no-shows
}

// Run runs the sale, or opens the shop. It returns [ErrFailed] when a check failed,
// and other errors when the sale could not continue.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o}
	cleanup, err := d.makeDir()
	if err != nil {
		return err
	}
	defer cleanup()
	defer d.thirdParties.stop()
	if err := d.startThirdParties(); err != nil {
		return err
	}
	d.Narrator.Say("A server starts, with its own PostgreSQL in %s,", d.dir)
	d.Narrator.Say("along with a beacon and two witnesses. In a real sale these three must not be run by the organizer.")
	// Without limits per network, as the whole crowd comes from this machine.
	d.server, err = server.Start(ctx, server.Config{
		Addr: o.Addr, Data: d.dir, Log: o.Log, Chains: d.thirdParties.chains, Witnesses: d.thirdParties.asked,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.server.Stop()) }()
	defer func() { err = errors.Join(err, d.front.close()) }()
	if o.Shop {
		return d.open(ctx)
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	if d.Keep {
		d.Narrator.Print("\nServer and data stay until you press Ctrl-C.\n")
		return d.server.Wait(ctx)
	}
	return nil
}

// makeDir makes the data directory. Other users may enter a temporary one but not
// list it: under root another user runs PostgreSQL inside it.
func (d *demo) makeDir() (cleanup func(), err error) {
	if d.dir = d.Data; d.dir != "" {
		d.dir, err = filepath.Abs(d.dir)
		return func() {}, err
	}
	if d.dir, err = os.MkdirTemp("", "proofline-demo-"); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	cleanup = func() { _ = os.RemoveAll(d.dir) }
	if d.Keep {
		cleanup = func() { d.Narrator.Print("The data is in %s.\n", d.dir) }
	}
	return cleanup, os.Chmod(d.dir, 0o711) //nolint:gosec // see above
}

// play runs the sale and its audit, chapter by chapter.
func (d *demo) play(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the sale is not over after %s", timeout))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	go func() {
		if err := d.server.Wait(ctx); err != nil {
			fail(fmt.Errorf("the server failed: %w", err))
		}
	}()
	defer fail(nil)
	if err := d.makeSale(ctx); err != nil {
		return err
	}
	go d.front.watch(ctx, fail)
	for _, chapter := range []func(context.Context) error{
		d.joinTooEarly, d.sell, d.tryBypasses, d.end, d.checkVisitors, d.checkShop, d.checkTranscript, d.audit, d.forge,
	} {
		if err := chapter(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
	}
	d.summarize()
	if n := d.tally.failures(); n > 0 {
		return fmt.Errorf("%w: %d, see above", ErrFailed, n)
	}
	return nil
}

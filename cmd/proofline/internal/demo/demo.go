// Package demo runs a whole sale: a real server on a PostgreSQL of its own,
// visitors who join, wait and claim over HTTP, an organizer who interferes, an
// auditor who checks what was published, and a forger who is found out. It
// narrates in plain words, and holds everything it sees against what must be.
// Some of the visitors come from a shop, which stands behind the real proxy.
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

// ErrFailed is returned when something was not as it must be. What it was has
// been narrated.
var ErrFailed = errors.New("the demo saw what must not be")

// Bounds of the number of visitors.
const (
	MinVisitors = 50
	MaxVisitors = 20_000
)

// limit is how long the sale and its audit may take.
const limit = 2 * time.Minute

// Options say what to show.
type Options struct {
	Visitors int    // MinVisitors to MaxVisitors
	Addr     string // where the server listens
	Data     string // data directory; empty for one that is removed at the end
	Keep     bool   // keep data and server until the context ends
	Shop     bool   // instead of a sale, a shop for a browser until the context ends
	Program  string // this binary, which is the proxy too
	Verifier string // the binary proofline-verify
	Narrator *Narrator
	Log      *slog.Logger

	Complaints io.Writer // gets what the proxy logs
}

// demo is one run. The fields below the options are set chapter by chapter.
type demo struct {
	Options
	dir       string // of the data
	outsiders outsiders
	server    *server.Server
	organizer *api.Client
	visitor   *api.Client // its base is the room
	room      api.Room
	front     front
	plan      plan
	crowd     []*visitor
	kept      string // file of a checkpoint from the middle of the sale
	size      uint64 // of the transcript at the end
	inStead   int    // called in the place of people who did not come
	windows   int    // with arrivals
	seen      seen
}

// Run shows the sale, or opens the shop. It returns [ErrFailed] when something was not as it must
// be, and other errors when the sale could not go on.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o}
	cleanup, err := d.makeDir()
	if err != nil {
		return err
	}
	defer cleanup()
	defer d.outsiders.stop()
	if err := d.startOutsiders(); err != nil {
		return err
	}
	d.Narrator.Say("A server starts, on a PostgreSQL of its own in %s,", d.dir)
	d.Narrator.Say("and beside it a beacon and two witnesses. In a real sale none of these three may be the organizer's.")
	// It has no limits by network: the whole crowd comes from this machine.
	d.server, err = server.Start(ctx, server.Config{Addr: o.Addr, Data: d.dir, Log: o.Log, Chains: d.outsiders.chains, Witnesses: d.outsiders.asked})
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

// makeDir makes the data directory. A temporary one is closed to others but
// for passing through, as the user that runs PostgreSQL must under root.
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

// play is the sale and its audit, chapter by chapter.
func (d *demo) play(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the sale is not over after %s", limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	go func() {
		if err := d.server.Wait(ctx); err != nil {
			fail(fmt.Errorf("the server died: %w", err))
		}
	}()
	defer fail(nil)
	if err := d.makeSale(ctx); err != nil {
		return err
	}
	go d.front.watch(ctx, fail)
	for _, chapter := range []func(context.Context) error{d.comeTooEarly, d.sell, d.intrude, d.end, d.checkVisitors, d.checkShop, d.checkTranscript, d.audit, d.forge} {
		if err := chapter(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
	}
	d.summarize()
	if n := d.seen.count(); n > 0 {
		return fmt.Errorf("%w: %d times", ErrFailed, n)
	}
	return nil
}

// Package demo runs and narrates a whole sale on this machine, and checks everything it sees. It
// starts a server with its own PostgreSQL, a beacon, two witnesses, and a shop behind the real
// proxy. A crowd of visitors joins, waits and claims over HTTP, an organizer pauses the sale, and
// the standalone verifier audits the transcript and finds a forged byte in a copy of it.
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

	"github.com/proofline/proofline/cmd/proofline/internal/demo/shop"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/web/limit"
)

// ErrFailed is returned when a check failed. The narrator has reported which one.
var ErrFailed = errors.New("checks of the demo failed")

// Limits on the number of visitors.
const (
	MinVisitors = 50
	MaxVisitors = 20_000
)

// timeout limits the sale and its audit.
const timeout = 2 * time.Minute

// Options configure a demo.
type Options struct {
	Visitors int    // from MinVisitors to MaxVisitors
	Addr     string // address of the server, host:port
	Data     string // data directory; empty: a temporary one
	Keep     bool   // keep data and server until the context ends
	Shop     bool   // instead of a sale, open the shop for a browser until the context ends
	Bots     bool   // instead of a sale, rehearse an attack by a script, with several doors
	Program  string // path of this binary, which also runs the proxy
	Verifier string // path of proofline-verify
	Narrator *Narrator
	Log      *slog.Logger
	ProxyLog io.Writer
}

// demo is one run. Its parts are made chapter by chapter.
type demo struct {
	Options
	dir          string // data directory
	checks       *checks
	local        listeners
	thirdParties thirdParties
	server       *server.Server
	room         *demoRoom
	front        *front
}

// Run runs the sale, or opens the shop. It returns [ErrFailed] when a check failed,
// and other errors when the sale could not continue.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, checks: newChecks(o.Narrator)}
	cleanup, err := d.makeDir()
	if err != nil {
		return err
	}
	defer cleanup()
	defer d.thirdParties.stop()
	defer d.local.stop()
	if err := d.thirdParties.start(&d.local, d.dir, d.Log); err != nil {
		return err
	}
	d.Narrator.Say("A server starts, with its own PostgreSQL in %s,", d.dir)
	d.Narrator.Say("along with a beacon and two witnesses. In a real sale these three must not be run by the organizer.")
	d.server, err = server.Start(ctx, d.config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.server.Stop()) }()
	defer func() { err = errors.Join(err, d.front.close()) }()
	if o.Shop {
		return d.open(ctx)
	}
	play := d.play
	if o.Bots {
		play = d.playAttacks
	}
	if err := play(ctx); err != nil {
		return err
	}
	if d.Keep {
		d.Narrator.Print("\nServer and data stay until you press Ctrl-C.\n")
		return d.server.Wait(ctx)
	}
	return nil
}

// config returns the configuration of the server. It has no limits per network, because the whole crowd is on this
// machine, unless an attack gives its joins other addresses.
func (d *demo) config() server.Config {
	c := server.Config{
		Addr: d.Addr, Data: d.dir, Log: d.Log, Chains: d.thirdParties.chains, Witnesses: d.thirdParties.asked,
	}
	if d.Bots {
		c.TrustedProxies, c.Limits = proxies, limit.Default()
		c.Limits.Tickets = ticketLimit(d.Visitors)
	}
	return c
}

// makeDir makes the data directory. Other users may enter a temporary one but not list it: if this
// process runs as root, another user runs PostgreSQL in there.
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

// makeRoom creates a room that the witnesses follow, like the log of rooms.
func (d *demo) makeRoom(ctx context.Context, slug string, config func() map[string]any) (err error) {
	if d.room, err = makeRoom(ctx, d.server, slug, config); err != nil {
		return err
	}
	register, err := d.server.RegisterKey(ctx)
	if err != nil {
		return err
	}
	return d.thirdParties.follow(d.room.VKey, register)
}

// openShop opens a shop with rows of seats behind the proxy.
func (d *demo) openShop(ctx context.Context, rows int) error {
	d.front = newFront(d.room, rows)
	site, err := d.local.listen(d.front.shop)
	if err != nil {
		return fmt.Errorf("open shop: %w", err)
	}
	args, err := d.room.protect(ctx, d.dir)
	if err != nil {
		return fmt.Errorf("protect shop: %w", err)
	}
	args = append(args, "--to", site, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
		"--key", filepath.Join(d.dir, "shop-key"), "--log-level", "warn")
	if err := d.front.start(ctx, d.Program, args, d.ProxyLog); err != nil {
		return fmt.Errorf("start proxy: %w", err)
	}
	return d.front.becomeTarget(ctx)
}

// play runs the sale and its audit, chapter by chapter.
func (d *demo) play(ctx context.Context) error {
	return d.guarded(ctx, timeout, func(ctx context.Context, fail context.CancelCauseFunc) error {
		s, err := d.makeSale(ctx)
		if err != nil {
			return err
		}
		go d.front.watch(ctx, fail)
		return d.runChapters(ctx, s)
	})
}

// guarded runs a sale while the server runs, for a limited time. The sale may call fail. It returns [ErrFailed] if
// checks failed.
func (d *demo) guarded(ctx context.Context, limit time.Duration,
	sell func(ctx context.Context, fail context.CancelCauseFunc) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the sale is not over after %s", limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	go func() {
		if err := d.server.Wait(ctx); err != nil {
			fail(fmt.Errorf("the server failed: %w", err))
		}
	}()
	defer fail(nil)
	if err := sell(ctx, fail); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	if n := d.checks.failures(); n > 0 {
		return fmt.Errorf("%w: %d, see above", ErrFailed, n)
	}
	return nil
}

// makeSale creates the sale's room, and the shop that it admits visitors to.
func (d *demo) makeSale(ctx context.Context) (*sale, error) {
	var p plan
	if err := d.makeRoom(ctx, "demo", func() map[string]any {
		p = newPlan(d.Visitors)
		return p.room()
	}); err != nil {
		return nil, err
	}
	say := d.Narrator.Say
	say("It listens on %s. The organizer creates a room, %s:", d.server.URL, d.room.URL)
	say("  joining opens at %s; arrivals of the first %s are shuffled among each other,",
		p.opens.Format("15:04:05"), early)
	say("  later ones within windows of %s; %s visitors a minute are admitted.",
		short, numeral.Group(p.perMinute))
	d.joinTooEarly(ctx, p.opens)
	if err := d.openShop(ctx, maxShoppers/shop.SeatsInRow); err != nil {
		return nil, err
	}
	say("A shop opens behind proofline proxy, on %s. Its tickets are for visitors who have waited.", d.front.url)
	c := newCrowd(d.room, d.front, d.checks, p.opens.Add(edge), guests(d.Visitors))
	return &sale{plan: p, room: d.room, crowd: c, checks: d.checks, dir: d.dir}, nil
}

// runChapters runs a sale and its audit, and prints what happened.
func (d *demo) runChapters(ctx context.Context, s *sale) error {
	check := inspector{sale: s}
	auditor := auditor{sale: s, program: d.Verifier, trust: d.thirdParties.trust()}
	for _, chapter := range []func(context.Context) error{
		s.sell, s.crowd.tryBypasses, s.end,
		check.visitors, check.shop, check.transcript, auditor.audit, auditor.forge,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	d.summarize(s, &check)
	return nil
}

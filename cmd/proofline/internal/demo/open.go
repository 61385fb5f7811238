package demo

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/demo/shop"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/internal/visitor"
)

// Parameters of the open shop. Simulated visitors keep its line from being empty.
const (
	openRows   = 10
	openWindow = 5 * time.Second
	openClaim  = 2 * time.Minute
	openRate   = 20 // admissions a minute
	openKept   = 40 // seats that the simulated visitors do not buy
	others     = 8  // simulated visitors at the opening

	otherInterval = 3500 * time.Millisecond // pause between later ones, longer than between admissions
)

// open opens the shop for a browser until ctx ends.
func (d *demo) open(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := d.makeRoom(ctx, "shop", openRoom); err != nil {
		return err
	}
	if err := d.openShop(ctx, openRows); err != nil {
		return err
	}
	go d.front.watch(ctx, fail)
	go func() {
		if err := d.server.Wait(ctx); err != nil {
			fail(err)
		}
	}()
	p := d.Narrator.Print
	p("\nThe shop is open. Simulated visitors come, wait, buy and leave.\n\n")
	p("  %s  the shop, for Chrome, Edge or Firefox: other browsers need https for its cookie\n", d.front.atLocalhost())
	p("  %s  its line\n", d.room.URL)
	if link := d.server.SetupLink; link != "" {
		p("  %s  the organizer's console\n", link)
	}
	p("\nPress Ctrl-C to end.\n")
	d.bringOthers(ctx)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// openRoom returns the configuration of a room that opens at once and admits slowly.
func openRoom() map[string]any {
	return map[string]any{
		"title": "Summer evening", "signed_return": true,
		"windows": []map[string]any{{"length": openWindow.String()}},
		"outflow": map[string]any{"per_minute": openRate, "max_active": 0},
		"claim":   openClaim.String(), "session": session.String(), "margin": margin.String(),
		"quorum": len(witnessNames),
	}
}

// bringOthers sends simulated visitors, who wait and buy, until ctx ends.
func (d *demo) bringOthers(ctx context.Context) {
	c := newCrowd(d.room, d.front, d.checks, time.Now(), nil)
	come := func() {
		v := newPerson(d.room.origin(), shopper, simulate.Guest{
			Arrives: simulate.Duration(time.Since(c.opens)), Patience: simulate.Forever, Stay: simulate.Forever,
		})
		if err := c.visit(ctx, v); err != nil && ctx.Err() == nil {
			d.Log.Warn("simulated visitor failed", "err", err)
		}
	}
	for range others {
		go come()
	}
	for visitor.Sleep(ctx, otherInterval) == nil {
		if len(d.front.shop.Sold()) < openRows*shop.SeatsInRow-openKept {
			go come()
		}
	}
}

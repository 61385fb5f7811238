package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/verifier/numeral"
)

// watchInterval is the time between two looks at the room.
const watchInterval = 250 * time.Millisecond

// origin returns the name of the room's log.
func (d *demo) origin() string {
	_, origin, _ := strings.Cut(d.room.URL, "://")
	return origin
}

// sell runs the sale, and returns when all visitors are admitted or skipped.
func (d *demo) sell(ctx context.Context) error {
	d.invite(d.origin())
	group, ctx := errgroup.WithContext(ctx)
	for _, v := range d.crowd {
		group.Go(func() error {
			if err := d.visit(ctx, v); err != nil {
				return fmt.Errorf("visitor %s: %w", v.ticket, err)
			}
			return nil
		})
	}
	group.Go(func() error { return d.sendMalformed(ctx) })
	group.Go(func() error { return d.pause(ctx) })
	group.Go(func() error { return d.watch(ctx) })
	if err := sleepUntil(ctx, d.plan.opens); err == nil {
		d.Narrator.Say("The room is open. %s visitors are on their way.", numeral.Group(d.Visitors))
	}
	err := group.Wait()
	d.Narrator.ClearStatus()
	return err
}

// manage sends a request about the room to the management API, and returns the room.
func (d *demo) manage(ctx context.Context, method, action string, body string) (room api.Room, err error) {
	_, err = d.organizer.Call(ctx, method, "/v1/rooms/"+d.room.Slug+action, []byte(body), &room)
	return room, err
}

// watch narrates the sale until all visitors are admitted or skipped.
func (d *demo) watch(ctx context.Context) error {
	told := map[uint64]bool{} // windows
	for {
		if err := sleepUntil(ctx, time.Now().Add(watchInterval)); err != nil {
			return err
		}
		room, err := d.manage(ctx, http.MethodGet, "", "")
		if err != nil {
			return err
		}
		state, err := d.visitor.State(ctx)
		if err != nil {
			return err
		}
		for _, w := range state.Windows {
			if w.Drawn && !told[w.Index] {
				told[w.Index] = true
				d.Narrator.Say("Window %d is over, frozen and drawn: places %s to %s.",
					w.Index, numeral.Group(w.First), numeral.Group(w.First+uint64(w.Arrivals)-1))
			}
		}
		n := room.Counts
		if n.Admitted+n.NoShows == uint64(d.Visitors) {
			return nil
		}
		d.Narrator.Status("%s joined, %s have a position, %s called, %s admitted, %s no-shows",
			numeral.Group(n.Arrivals), numeral.Group(n.Drawn), numeral.Group(n.Called),
			numeral.Group(n.Admitted), numeral.Group(n.NoShows))
	}
}

// pause pauses the sale for a moment. Meanwhile it stores a checkpoint, as a passing
// auditor might.
func (d *demo) pause(ctx context.Context) error {
	const message = "A short break: your place is safe."
	if err := sleepUntil(ctx, d.plan.starts.Add(pauseAt)); err != nil {
		return err
	}
	body := fmt.Sprintf(`{"message":{"texts":{"en":%q},"for":"1h"}}`, message)
	if _, err := d.manage(ctx, http.MethodPatch, "", body); err != nil {
		return err
	}
	before, err := d.manage(ctx, http.MethodPost, "/pause", "")
	if err != nil {
		return err
	}
	d.Narrator.Say("The organizer pauses the sale and shows visitors: %q", message)
	if err := sleepUntil(ctx, time.Now().Add(pauseFor)); err != nil {
		return err
	}
	state, err := d.visitor.State(ctx)
	if err != nil {
		return err
	}
	d.expect(state.Phase == "paused" && state.Message.Texts["en"] == message,
		"during the pause visitors see phase %q and the message %q", state.Phase, state.Message.Texts)
	after, err := d.manage(ctx, http.MethodGet, "", "")
	if err != nil {
		return err
	}
	called := after.Counts.Called - before.Counts.Called
	d.expect(called == 0, "%d visitors are called during the pause", called)
	if err := d.keepCheckpoint(ctx); err != nil {
		return err
	}
	if _, err := d.manage(ctx, http.MethodPost, "/resume", ""); err != nil {
		return err
	}
	d.Narrator.Say("No visitor was called meanwhile. The sale goes on.")
	return nil
}

func (d *demo) keepCheckpoint(ctx context.Context) error {
	a, err := d.visitor.Do(ctx, http.MethodGet, "/checkpoint", nil)
	if err != nil {
		return err
	}
	d.kept = filepath.Join(d.dir, d.room.Slug+".checkpoint")
	return os.WriteFile(d.kept, a.Body, 0o644) //nolint:gosec // published
}

// end ends the room, and checks that joins are refused and the counts are right.
func (d *demo) end(ctx context.Context) error {
	room, err := d.manage(ctx, http.MethodPost, "/end", "")
	if err != nil {
		return err
	}
	d.Narrator.Say("All visitors are admitted or skipped. The organizer ends the room.")
	_, err = d.visitor.Join(ctx, "")
	d.expectStatus(err, http.StatusGone, "a join after the end")
	absent, all := uint64(d.having(absent)), uint64(d.Visitors)
	want := api.Counts{Arrivals: all, Drawn: all, Assigned: all, Called: all, Admitted: all - absent, NoShows: absent}
	if room.Counts == nil {
		return errors.New("the server's answer has no counts")
	}
	d.expect(*room.Counts == want, "the counts at the end are %+v, not %+v", *room.Counts, want)
	d.size = room.Size
	return nil
}

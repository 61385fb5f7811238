package demo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/internal/visitor"
	"github.com/proofline/proofline/verifier/numeral"
)

// watchInterval is the interval at which watch reads the room.
const watchInterval = 250 * time.Millisecond

// sale is the sale from the organizer's point of view.
type sale struct {
	plan   plan
	room   *demoRoom
	crowd  *crowd
	checks *checks
	dir    string // directory for files

	kept string // file with a checkpoint from the middle of the sale
	size uint64 // number of entries of the transcript at the end
}

// sell runs the sale, and returns when all visitors are admitted or skipped.
func (s *sale) sell(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, v := range s.crowd.people {
		group.Go(func() error {
			if err := s.crowd.visit(ctx, v); err != nil {
				return fmt.Errorf("visitor %s: %w", v.ticket, err)
			}
			return nil
		})
	}
	group.Go(func() error { return s.sendMalformed(ctx) })
	group.Go(func() error { return s.pause(ctx) })
	group.Go(func() error { return s.watch(ctx) })
	if err := visitor.Sleep(ctx, time.Until(s.plan.opens)); err == nil {
		s.checks.Say("The room is open. %s visitors are on their way.", numeral.Group(len(s.crowd.people)))
	}
	err := group.Wait()
	s.checks.ClearStatus()
	return err
}

// watch narrates the sale until all visitors are admitted or skipped.
func (s *sale) watch(ctx context.Context) error {
	narrated := map[uint64]bool{} // windows
	for {
		if err := visitor.Sleep(ctx, watchInterval); err != nil {
			return err
		}
		room, err := s.room.manage(ctx, http.MethodGet, "", nil)
		if err != nil {
			return err
		}
		state, err := s.room.visitor.State(ctx)
		if err != nil {
			return err
		}
		for _, w := range state.Windows {
			if w.Drawn && !narrated[w.Index] {
				narrated[w.Index] = true
				s.checks.Say("Window %d is over, frozen and drawn: places %s to %s.",
					w.Index, numeral.Group(w.First), numeral.Group(w.First+uint64(w.Arrivals)-1))
			}
		}
		n := room.Counts
		if n.Admitted+n.NoShows == uint64(len(s.crowd.people)) {
			return nil
		}
		s.checks.Status("%s joined, %s have a position, %s called, %s admitted, %s no-shows",
			numeral.Group(n.Arrivals), numeral.Group(n.Drawn), numeral.Group(n.Called),
			numeral.Group(n.Admitted), numeral.Group(n.NoShows))
	}
}

// pause pauses the sale for a moment. Meanwhile it stores a checkpoint, as a passing
// auditor might.
func (s *sale) pause(ctx context.Context) error {
	const message = "A short break: your place is safe."
	if err := visitor.Sleep(ctx, time.Until(s.plan.starts.Add(pauseAt))); err != nil {
		return err
	}
	body := map[string]any{"message": map[string]any{"texts": map[string]string{"en": message}, "for": "1h"}}
	if _, err := s.room.manage(ctx, http.MethodPatch, "", body); err != nil {
		return err
	}
	before, err := s.room.manage(ctx, http.MethodPost, "/pause", nil)
	if err != nil {
		return err
	}
	s.checks.Say("The organizer pauses the sale and shows visitors: %q", message)
	if err := visitor.Sleep(ctx, pauseFor); err != nil {
		return err
	}
	state, err := s.room.visitor.State(ctx)
	if err != nil {
		return err
	}
	s.checks.expect(state.Phase == "paused" && state.Message.Texts["en"] == message,
		"during the pause visitors see phase %q and the message %q", state.Phase, state.Message.Texts)
	after, err := s.room.manage(ctx, http.MethodGet, "", nil)
	if err != nil {
		return err
	}
	called := after.Counts.Called - before.Counts.Called
	s.checks.expect(called == 0, "%d visitors are called during the pause", called)
	if err := s.keepCheckpoint(ctx); err != nil {
		return err
	}
	if _, err := s.room.manage(ctx, http.MethodPost, "/resume", nil); err != nil {
		return err
	}
	s.checks.Say("No visitor was called meanwhile. The sale continues.")
	return nil
}

func (s *sale) keepCheckpoint(ctx context.Context) error {
	a, err := s.room.visitor.Do(ctx, http.MethodGet, "/checkpoint", nil)
	if err != nil {
		return err
	}
	s.kept = filepath.Join(s.dir, s.room.Slug+".checkpoint")
	return os.WriteFile(s.kept, a.Body, 0o644) //nolint:gosec // published
}

// end ends the room, and checks that joins are refused and the counts are right.
func (s *sale) end(ctx context.Context) error {
	room, err := s.room.manage(ctx, http.MethodPost, "/end", nil)
	if err != nil {
		return err
	}
	s.checks.Say("All visitors are admitted or skipped. The organizer ends the room.")
	_, err = s.room.visitor.Join(ctx, "")
	s.checks.expectStatus(err, http.StatusGone, "a join after the end")
	absent, all := uint64(len(s.crowd.with(absent))), uint64(len(s.crowd.people))
	want := room.Counts // the server's counts also have windows and amendments
	want.Arrivals, want.Drawn, want.Assigned, want.Called = all, all, all, all
	want.Admitted, want.NoShows, want.Waiting = all-absent, absent, 0
	s.checks.expect(room.Counts == want, "the counts at the end are %+v, not %+v", room.Counts, want)
	s.size = room.Size
	return nil
}

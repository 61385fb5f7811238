// Package alarm looks at the figures of rooms, and has people told when they
// need one: when the line is full, when many who are called do not come, and
// when fewer people go in than the outflow says. It looks at tokens, too, and has
// people told before one that is in use ends.
//
// What needs no figures is told by package hook by itself.
package alarm

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/room"
)

const (
	lookEvery = 10 * time.Second
	// behindFor is how long the outflow is behind before somebody is told.
	behindFor = 2 * time.Minute
	// behindShare is the share of the outflow below which it is behind.
	behindShare = 0.8
	// leastSettled is how many people must have come or not before a share of
	// them says anything.
	leastSettled = 20
)

// Teller tells people. It is [hook.Hooks].
type Teller interface {
	// Wants tells whether an organization has somebody told of a kind.
	Wants(org uuid.UUID, kind hook.AlertKind) bool
	// NoShowPercent is the share of no-shows that is worth an alert.
	NoShowPercent(org uuid.UUID) int
	// Alert tells them, not again within [hook.AlertQuiet].
	Alert(ctx context.Context, org uuid.UUID, kind hook.AlertKind, room, text string) error
	// AlertOnce tells them of what is no room, once.
	AlertOnce(ctx context.Context, org uuid.UUID, kind hook.AlertKind, about, text string) error
}

// Options is what [New] needs.
type Options struct {
	Rooms   *room.Rooms
	Figures func(ctx context.Context, slug string) (live.Figures, error)
	// Endings are the tokens whose end people are told of.
	Endings func(ctx context.Context) ([]account.ExpiringToken, error)
	Teller  Teller
	Log     *slog.Logger
}

// Alarm looks after the rooms of a node.
type Alarm struct {
	Options
	behind map[uuid.UUID]time.Time // since when the outflow is, by room
}

// New returns an alarm.
func New(o Options) *Alarm { return &Alarm{Options: o, behind: map[uuid.UUID]time.Time{}} }

// Run looks until ctx ends.
func (a *Alarm) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ticker.C:
			a.look(ctx)
			if turn%tokensEvery == 0 {
				a.lookAtTokens(ctx)
			}
		case <-ctx.Done():
			return
		}
	}
}

var kinds = []hook.AlertKind{hook.AlertLineFull, hook.AlertNoShows, hook.AlertOutflowBehind}

// look looks at all rooms that are loaded, and live, and that somebody wants to
// be told of.
func (a *Alarm) look(ctx context.Context) {
	step := a.Rooms.Health().Step
	for _, r := range a.Rooms.Loaded() {
		if step != 0 {
			a.tell(ctx, r, hook.AlertDatabase, stepText(step))
		}
		if stuck := r.Stuck(); stuck > 0 {
			a.tell(ctx, r, hook.AlertDatabase, stuckText(stuck))
		}
		if r.Snapshot().Ended {
			delete(a.behind, r.ID)
			continue
		}
		if !a.isWanted(r.Owner.Org) {
			continue
		}
		f, err := a.Figures(ctx, r.Slug)
		if err != nil {
			if ctx.Err() == nil {
				a.Log.Warn("figures for alerts cannot be had", "room", r.Slug, "err", err)
			}
			continue
		}
		a.judge(ctx, r, f)
	}
}

func (a *Alarm) isWanted(org uuid.UUID) bool {
	for _, kind := range kinds {
		if a.Teller.Wants(org, kind) {
			return true
		}
	}
	return false
}

// judge has people told what the figures of a room say.
func (a *Alarm) judge(ctx context.Context, r *room.Room, f live.Figures) {
	tell := func(kind hook.AlertKind, text string) { a.tell(ctx, r, kind, text) }
	if r.IsFull() {
		settings, _ := r.Settings()
		tell(hook.AlertLineFull, fmt.Sprintf("%d people are in the line, as many as its limit of %d lets in. Whoever comes now is turned away without a place. Raise the limit in the room's settings if that is not what you want.", f.Waiting, settings.MaxWaiting))
	}
	tell(hook.AlertNoShows, noShows(f, a.Teller.NoShowPercent(r.Owner.Org)))
	if since, ok := a.behindSince(r.ID, f); ok && f.At.Sub(since) >= behindFor {
		tell(hook.AlertOutflowBehind, fmt.Sprintf("%.0f people a minute go in, and the outflow is %d a minute, since %s. Do people get to the site, and does it let them in?", *f.Outflow.Minute, f.Outflow.PerMinute, since.UTC().Format("15:04:05 UTC")))
	}
}

// tell has people told something about a room.
func (a *Alarm) tell(ctx context.Context, r *room.Room, kind hook.AlertKind, text string) {
	if text == "" || !a.Teller.Wants(r.Owner.Org, kind) {
		return
	}
	if err := a.Teller.Alert(ctx, r.Owner.Org, kind, r.Slug, text); err != nil && ctx.Err() == nil {
		a.Log.Error("alert is not sent", "kind", kind, "room", r.Slug, "err", err)
	}
}

func stepText(step time.Duration) string {
	return fmt.Sprintf("The database's clock has jumped by %s. Rooms go on by the time before, but passes are not redeemed and sessions not prolonged. Set that clock right; or, if it is right now, wait half a minute with servers whose own clocks agree, or confirm it with: proofline clock confirm", step.Round(time.Second))
}

func stuckText(stuck time.Duration) string {
	return fmt.Sprintf("A server has not been able to store anything in this room for %.0f seconds, although something is due. Joins, claims and calls wait. The server's log says why; see /readyz and the dashboard.", stuck.Seconds())
}

// noShows says that more people than a share do not come; empty when they do.
func noShows(f live.Figures, percent int) string {
	if f.Rates.Recent == nil || f.Admitted+f.NoShows < leastSettled || *f.Rates.Recent*100 < float64(percent) {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the people who were called in the last ten minutes did not come. Is the time to go in long enough, and does the site answer?", *f.Rates.Recent*100)
}

// behindSince returns since when fewer people go in than should.
func (a *Alarm) behindSince(id uuid.UUID, f live.Figures) (time.Time, bool) {
	full := f.Outflow.MaxActive > 0 && f.Active >= uint64(f.Outflow.MaxActive)
	someWait := f.Drawn > f.Called
	isBehind := isCalling(f.Phase) && !f.Outflow.Pull && someWait && !full && f.Outflow.Minute != nil && *f.Outflow.Minute < behindShare*float64(f.Outflow.PerMinute)
	if !isBehind {
		delete(a.behind, id)
		return time.Time{}, false
	}
	if _, ok := a.behind[id]; !ok {
		a.behind[id] = f.At
	}
	return a.behind[id], true
}

// isCalling tells whether people are called in a phase.
func isCalling(p room.Phase) bool { return p == room.PhaseServing || p == room.PhaseClosed }

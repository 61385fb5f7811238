// Package alert watches the rooms of a node and sends alerts through package webhook: when the line is full, when
// many called visitors do not show up, when admissions fall behind the outflow, when the database's clock jumps,
// when a room cannot be stored, when an issuer that visitors need is away, and when the database lacks entries of the
// log of rooms. It also warns before an API token in use expires.
//
// Package webhook itself sends the alerts that follow from a single event.
package alert

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/room"
)

const (
	checkInterval = 10 * time.Second
	// minBehind is how long admissions must stay behind the outflow before an alert.
	minBehind = 2 * time.Minute
	// behindShare is the share of the outflow below which admissions are behind.
	behindShare = 0.8
	// maxLag is how long marks may be missing in object storage before an alert.
	maxLag = 30 * time.Second
	// minSettled is the number of settled claims below which a no-show rate is meaningless.
	minSettled = 20
)

// Sender sends alerts to an organization's recipients. [webhook.Alerts] implements it.
type Sender interface {
	// Wants reports whether an organization has recipients for a kind of alert.
	Wants(org uuid.UUID, kind webhook.AlertKind) bool
	// NoShowPercent returns the no-show rate from which an organization wants an alert, in percent.
	NoShowPercent(org uuid.UUID) int
	// Send sends an alert about a room, unless one was sent within [webhook.AlertQuiet].
	Send(ctx context.Context, org uuid.UUID, kind webhook.AlertKind, room, text string) error
	// SendOnce sends an alert that is not about a room, once for each value of about.
	SendOnce(ctx context.Context, org uuid.UUID, kind webhook.AlertKind, about, text string) error
}

// Options configures [New]. All fields are required.
type Options struct {
	Rooms   *room.Rooms
	Figures func(ctx context.Context, slug string) (live.Figures, error)
	// Issuers returns what is known of the issuers that a room needs.
	Issuers func(*room.Room) []issuers.Finding
	// ExpiringTokens lists the tokens of all organizations with a notice due.
	ExpiringTokens func(ctx context.Context) ([]account.ExpiringToken, error)
	Sender         Sender
	Log            *slog.Logger
}

// Watcher watches the rooms of a node.
type Watcher struct {
	Options
	behind map[uuid.UUID]time.Time // by room: when admissions began to be behind the outflow
}

// New returns a watcher.
func New(o Options) *Watcher { return &Watcher{Options: o, behind: map[uuid.UUID]time.Time{}} }

// Run checks rooms and tokens until ctx is done.
func (w *Watcher) Run(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ticker.C:
			w.check(ctx)
			if turn%checksPerTokenCheck == 0 {
				w.checkTokens(ctx)
			}
		case <-ctx.Done():
			return
		}
	}
}

var kinds = []webhook.AlertKind{webhook.AlertLineFull, webhook.AlertNoShows, webhook.AlertOutflowBehind}

// check checks all loaded rooms whose organizations want alerts. Ended rooms are checked for problems
// with the database only.
func (w *Watcher) check(ctx context.Context) {
	health, isHeld := w.Rooms.Health(), w.Rooms.Register.IsHeld()
	for _, r := range w.Rooms.Loaded() {
		if health.Step != 0 {
			w.send(ctx, r, webhook.AlertDatabase, stepText(health.Step))
		}
		if lag := max(health.Away, health.Lag); lag > maxLag {
			w.send(ctx, r, webhook.AlertDatabase, lagText(lag))
		}
		if isHeld {
			w.send(ctx, r, webhook.AlertForkSeen, registerText)
		}
		if stuck := r.Stuck(); stuck > 0 {
			w.send(ctx, r, webhook.AlertDatabase, stuckText(stuck))
		}
		if r.Snapshot().Ended {
			delete(w.behind, r.ID)
			continue
		}
		w.send(ctx, r, webhook.AlertIssuerAway, issuersText(w.Issuers(r)))
		if !w.isWanted(r.Owner.Org) {
			continue
		}
		f, err := w.Figures(ctx, r.Slug)
		if err != nil {
			if ctx.Err() == nil {
				w.Log.Warn("cannot compute figures for alerts", "room", r.Slug, "err", err)
			}
			continue
		}
		w.checkFigures(ctx, r, f)
	}
}

func (w *Watcher) isWanted(org uuid.UUID) bool {
	for _, kind := range kinds {
		if w.Sender.Wants(org, kind) {
			return true
		}
	}
	return false
}

// checkFigures sends the alerts that follow from a room's figures.
func (w *Watcher) checkFigures(ctx context.Context, r *room.Room, f live.Figures) {
	send := func(kind webhook.AlertKind, text string) { w.send(ctx, r, kind, text) }
	if r.IsFull() {
		settings, _ := r.Settings()
		text := "New visitors are turned away without a place: the organization has used up its quota of visitors in line " +
			"or of entries. Ask the server's administrator for more."
		if !r.Quota.IsFull() {
			text = fmt.Sprintf("The line is full: %d people are waiting, and the limit is %d. "+
				"New visitors are turned away without a place. To let more in, raise the limit in the room's settings.",
				f.Waiting, settings.MaxWaiting)
		}
		send(webhook.AlertLineFull, text)
	}
	send(webhook.AlertNoShows, noShows(f, w.Sender.NoShowPercent(r.Owner.Org)))
	if since, ok := w.behindSince(r.ID, f); ok && f.At.Sub(since) >= minBehind {
		send(webhook.AlertOutflowBehind,
			fmt.Sprintf("%.0f people a minute are admitted, but the outflow is %d a minute, since %s. "+
				"Check that visitors can reach the site and that it lets them in.",
				*f.Outflow.Minute, f.Outflow.PerMinute, webhook.Moment(since)))
	}
}

// send sends an alert about a room, unless text is empty or the organization does not want it.
func (w *Watcher) send(ctx context.Context, r *room.Room, kind webhook.AlertKind, text string) {
	if text == "" || !w.Sender.Wants(r.Owner.Org, kind) {
		return
	}
	if err := w.Sender.Send(ctx, r.Owner.Org, kind, r.Slug, text); err != nil && ctx.Err() == nil {
		w.Log.Error("cannot send alert", "kind", kind, "room", r.Slug, "err", err)
	}
}

func stepText(step time.Duration) string {
	return fmt.Sprintf("The database's clock has jumped by %s. Rooms continue on the time before the jump, but passes are "+
		"not redeemed and sessions not extended. Correct the database's clock. If it is right now, wait half a minute "+
		"while the servers' own clocks agree with it, or confirm it with: proofline clock confirm",
		step.Round(time.Second))
}

func lagText(lag time.Duration) string {
	return fmt.Sprintf("A server has been unable to store its marks of the rooms in object storage for %.0f seconds. Rooms go on. "+
		"But if the database and the servers' data directories were lost now, missing entries might go unnoticed. The "+
		"server's log has the reason; see also room/RECOVERY.md.", lag.Seconds())
}

const registerText = "The database lacks entries of the server's log of rooms that were published, so no room can be created and the " +
	"log is not shown. Rooms that exist go on. Run: proofline recover /rooms"

func stuckText(stuck time.Duration) string {
	return fmt.Sprintf("A server has been unable to store pending entries of this room for %.0f seconds. Joins, claims "+
		"and calls are waiting. The server's log has the reason; see also /readyz and the dashboard.", stuck.Seconds())
}

// issuersText says which issuers are away; empty: none.
func issuersText(found []issuers.Finding) string {
	var texts []string
	for _, f := range found {
		if text, do := f.Text(); f.State == issuers.Away {
			texts = append(texts, text+" "+do)
		}
	}
	return strings.Join(texts, "\n\n")
}

// noShows returns the text of an alert if the recent no-show rate reaches percent, else "".
func noShows(f live.Figures, percent int) string {
	if f.Rates.Recent == nil || f.Admitted+f.NoShows < minSettled || *f.Rates.Recent*100 < float64(percent) {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the visitors called in the last ten minutes did not show up. "+
		"Check that the claim time is long enough and that the site responds.", *f.Rates.Recent*100)
}

// behindSince returns when admissions began to be behind the outflow; false if they are not.
func (w *Watcher) behindSince(id uuid.UUID, f live.Figures) (time.Time, bool) {
	full := f.Outflow.MaxActive > 0 && f.Active >= uint64(f.Outflow.MaxActive)
	someWait := f.Drawn > f.Called
	isBehind := isCalling(f.Phase) && !f.Outflow.Pull && someWait && !full && f.Outflow.Minute != nil &&
		*f.Outflow.Minute < behindShare*float64(f.Outflow.PerMinute)
	if !isBehind {
		delete(w.behind, id)
		return time.Time{}, false
	}
	if _, ok := w.behind[id]; !ok {
		w.behind[id] = f.At
	}
	return w.behind[id], true
}

// isCalling reports whether the room calls visitors in a phase.
func isCalling(p room.Phase) bool { return p == room.PhaseServing || p == room.PhaseClosed }

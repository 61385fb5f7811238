package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/qrcode"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/sse"
)

// recheckEvery is how often a stream looks whether who listens may still.
const recheckEvery = 30 * time.Second

// liveRoutes are the dashboard of a room, and its history.
func (c *Console) liveRoutes() []route {
	if c.Live == nil {
		return nil
	}
	return []route{
		{GET, "/rooms/:slug", account.Read, c.ofRoom(c.showLive)},
		{GET, "/rooms/:slug/live", account.Read, c.watchLive},
		{GET, "/rooms/:slug/history", account.Read, c.ofRoom(c.showHistory)},
		{GET, "/rooms/:slug/history/minutes", account.Read, c.ofRoom(c.minutes)},
		{GET, "/rooms/:slug/history.csv", account.Read, c.ofRoom(c.historyTable)},
		{GET, "/rooms/:slug/history.json", account.Read, c.ofRoom(c.historyDocument)},
	}
}

// livePage is what the dashboard shows.
type livePage struct {
	Slug     string
	URL      string       // of the visitors' page
	QR       *qrcode.Code // of URL; nil if it is too long for one
	Figures  live.Figures
	Controls controlView
	Sites    roomSites
}

// showLive answers with the dashboard as of now; its script keeps it so.
func (c *Console) showLive(ctx context.Context, x *request, r *room.Room) error {
	f, err := c.Live.Figures(ctx, r.Slug)
	if err != nil {
		return err
	}
	sites, err := c.sitesOf(ctx, x.Actor, r)
	if err != nil {
		return err
	}
	page := livePage{Slug: r.Slug, URL: r.URL, Figures: f, Controls: controlsOf(r), Sites: sites}
	if code, err := qrcode.Encode(r.URL); err == nil {
		page.QR = &code
	}
	return x.page("room-live", page)
}

// watchLive sends the figures as server-sent events: first "past", the latest
// 15 minutes for the charts, then figures, at most once a second. It ends when
// the session does, or the right to look.
func (c *Console) watchLive(x *request) error {
	slug := x.Param("slug")
	if err := c.mayWatch(x, slug, x.Actor.Org); err != nil {
		return err
	}
	if x.Request().Method == http.MethodHead { // a script asks what is wrong with its stream
		return x.NoContent(http.StatusNoContent)
	}
	ctx, cancel := context.WithCancel(x.Request().Context())
	defer cancel()
	go func() {
		select {
		case <-c.Closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	w, err := c.Live.Watch(ctx, slug, x.Actor.ID)
	if err != nil {
		return err
	}
	defer w.Close()
	out, err := sse.Open(x.Context)
	if err != nil {
		return invalid.Field("", err.Error())
	}
	figures, past := w.Now()
	if err := errors.Join(out.Send("past", past), out.Send("", figures)); err != nil {
		return nil //nolint:nilerr // nobody listens any more
	}
	c.stream(ctx, x, w, out)
	return nil
}

// stream sends what comes until somebody has enough.
func (c *Console) stream(ctx context.Context, x *request, w *live.Watch, out *sse.Stream) {
	began, checked, org := c.Now(), c.Now(), x.Actor.Org
	for c.Now().Sub(began) < sse.Life {
		waiting, cancel := context.WithTimeout(ctx, sse.Idle)
		figures, err := w.Next(waiting)
		cancel()
		switch {
		case err == nil:
			err = out.Send("", figures)
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			err = out.Alive()
		}
		if err != nil {
			return
		}
		if c.Now().Sub(checked) < recheckEvery {
			continue
		}
		checked = c.Now()
		if c.mayWatch(x, x.Param("slug"), org) != nil {
			return
		}
	}
}

// mayWatch tells whether the session goes on, in that organization, and may see
// the room.
func (c *Console) mayWatch(x *request, slug string, org uuid.UUID) error {
	ctx, cancel := x.wait()
	defer cancel()
	if err := x.Identify(account.Read); err != nil {
		return err
	}
	if x.Actor.Org != org {
		return ErrSignIn
	}
	_, err := c.Control.Room(ctx, x.Actor, slug)
	return err
}

// historyPage is what became of a room.
type historyPage struct {
	Slug    string
	Title   string
	Phase   room.Phase
	Summary *live.Summary // nil as long as the room goes on, or it is not made
	Making  bool          // it is being made

	Switches []room.GateSwitch // of the gate, the latest first
	FailOpen []room.FailOpen   // the latest first
}

func (c *Console) showHistory(ctx context.Context, x *request, r *room.Room) error {
	s := r.Snapshot()
	p := historyPage{Slug: r.Slug, Title: s.Title, Phase: s.Phase(r.Now())}
	p.Switches, p.FailOpen = backward(r.Vitals().Gate)
	switch summary, err := c.Live.Summary(ctx, r.Slug); {
	case err == nil:
		p.Summary = &summary
	case errors.Is(err, live.ErrComputing):
		p.Making = true
	case !errors.Is(err, live.ErrNotEnded):
		return err
	}
	return x.page("room-history", p)
}

// backward returns the latest switches and fail-open intervals, the latest first.
func backward(g room.GateVitals) ([]room.GateSwitch, []room.FailOpen) {
	switches, failOpen := slices.Clone(g.Switches), slices.Clone(g.FailOpen)
	slices.Reverse(switches)
	slices.Reverse(failOpen)
	return switches, failOpen
}

// minutes answers with the history as JSON, for the charts: by default as many
// steps as a chart can show.
func (c *Console) minutes(ctx context.Context, x *request, r *room.Room) error {
	list, err := c.Live.History(ctx, r.Slug, time.Time{}, time.Time{}, 0)
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, map[string]any{"minutes": list})
}

// historyTable answers with a table as CSV: minutes, windows or the summary.
func (c *Console) historyTable(ctx context.Context, x *request, r *room.Room) error {
	var (
		b    bytes.Buffer
		err  error
		name = x.QueryParam("table")
	)
	switch name {
	case "", "minutes":
		name = "minutes"
		var list []live.Minute
		if list, err = c.Live.History(ctx, r.Slug, time.Time{}, time.Time{}, time.Minute); err == nil {
			err = live.WriteMinutes(&b, list)
		}
	case "windows", "summary":
		var s live.Summary
		if s, err = c.Live.Summary(ctx, r.Slug); err == nil {
			err = writeSummary(&b, name, r.Snapshot().Title, s)
		}
	default:
		err = invalid.Field("table", "must be minutes, windows or summary")
	}
	if err != nil {
		return err
	}
	return x.Download(fmt.Sprintf("%s-%s.csv", r.Slug, name), "text/csv; charset=utf-8", b.Bytes())
}

func writeSummary(w io.Writer, name, title string, s live.Summary) error {
	if name == "windows" {
		return live.WriteWindows(w, s.Windows)
	}
	return live.WriteSummary(w, title, s)
}

// historyDocument answers with all that is known of a room's course, as JSON.
func (c *Console) historyDocument(ctx context.Context, x *request, r *room.Room) error {
	e, err := c.Live.Export(ctx, r.Slug)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return x.Download(r.Slug+"-history.json", "application/json", append(text, '\n'))
}

// turn says when a visitor who joins now is called.
func turn(f live.Figures) string {
	if f.Joining == nil {
		return dash
	}
	return spanAhead(f.At, *f.Joining)
}

// spanAhead says when something is expected, in whole minutes that are the
// coarser the further away they are.
func spanAhead(at time.Time, s live.Span) string {
	earliest, latest := s.Earliest.Sub(at).Minutes(), s.Latest.Sub(at).Minutes()
	step := 15.0
	switch {
	case latest < 1:
		return "within a minute"
	case latest < 60:
		step = 1
	case latest < 360:
		step = 5
	}
	from, to := math.Max(math.Floor(earliest/step)*step, 0), math.Ceil(latest/step)*step
	if latest >= 3000 { // days, and no promise
		return fmt.Sprintf("in %.0f to %.0f h", math.Floor(from/60), math.Ceil(to/60))
	}
	return fmt.Sprintf("in %.0f to %.0f min", from, to)
}

// windowState says what a window waits for.
func windowState(w live.Window) string {
	switch {
	case w.Drawn:
		return "drawn"
	case w.Frozen:
		return "waits for its draw"
	}
	return "open"
}

// ahead reports whether a moment is after another.
func ahead(at time.Time, moment any) bool {
	t, ok := givenMoment(moment)
	return ok && t.After(at)
}

func givenMoment(moment any) (time.Time, bool) {
	switch t := moment.(type) {
	case time.Time:
		return t, true
	case *time.Time:
		if t != nil {
			return *t, true
		}
	}
	return time.Time{}, false
}

// until writes how long it is until a moment, as a countdown: 0:42, 12:05,
// 3:12:05, 2 d 03:00.
func until(at time.Time, moment any) string {
	t, ok := givenMoment(moment)
	if !ok {
		return dash
	}
	seconds := int64(math.Ceil(t.Sub(at).Seconds()))
	switch days, hours, minutes, rest := seconds/86400, seconds/3600%24, seconds/60%60, seconds%60; {
	case seconds <= 0:
		return "now"
	case days > 0:
		return fmt.Sprintf("%d d %02d:%02d", days, hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, rest)
	default:
		return fmt.Sprintf("%d:%02d", minutes, rest)
	}
}

// emptied says when everyone now in line is called.
func emptied(f live.Figures) string {
	switch {
	case f.Waiting == 0:
		return "no line"
	case f.Phase == room.PhasePaused || f.Phase == room.PhaseClaimsFrozen:
		return "not while stopped"
	case f.Next.Called == nil:
		return dash
	}
	return spanAhead(f.At, *f.Next.Called)
}

package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/qrcode"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/sse"
)

// recheckEvery is the interval at which a stream rechecks its session.
const recheckEvery = 30 * time.Second

// dashboard serves the live page of a room and its history.
type dashboard struct {
	figures *live.Live
	rooms   Rooms
	reports Reports
	sites   Sites
	closing <-chan struct{}
}

func (h *dashboard) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug", account.Read, shell.OfRoom(h.rooms, h.show)),
		shell.Get("/rooms/:slug/live", account.Read, h.watch),
		shell.Get("/rooms/:slug/history", account.Read, shell.OfRoom(h.rooms, h.history)),
		shell.Get("/rooms/:slug/history/minutes", account.Read, shell.OfRoom(h.rooms, h.minutes)),
		shell.Get("/rooms/:slug/history.csv", account.Read, shell.OfRoom(h.rooms, h.table)),
		shell.Get("/rooms/:slug/history.json", account.Read, shell.OfRoom(h.rooms, h.document)),
	}
}

// livePage is the data of the dashboard.
type livePage struct {
	Slug     string
	URL      string       // URL of the visitors' page
	QR       *qrcode.Code // QR code of URL; nil: the URL is too long
	Figures  live.Figures
	Controls controlView
	Sites    roomSites
}

// show answers with the current dashboard. Its script keeps it up to date.
func (h *dashboard) show(ctx context.Context, x *shell.Request, r *room.Room) error {
	f, err := h.figures.Figures(ctx, r.Slug)
	if err != nil {
		return err
	}
	protected, err := sitesOf(ctx, h.sites, x.Actor, r)
	if err != nil {
		return err
	}
	report, isReported, err := h.reports.Of(ctx, r)
	if err != nil {
		return err
	}
	page := livePage{Slug: r.Slug, URL: r.URL, Figures: f, Controls: controlsOf(r), Sites: protected}
	if isReported {
		page.Controls.Report, page.Controls.Reported = r.URL+"/report", &report.Made
	}
	if code, err := qrcode.Encode(r.URL); err == nil {
		page.QR = &code
	}
	return x.Page("room-live", page)
}

// watch sends the figures as server-sent events: first "past" with the last 15 minutes for the charts,
// then the figures at most once a second. It ends when the session ends or loses access to the room.
func (h *dashboard) watch(x *shell.Request) error {
	slug := x.Param("slug")
	if err := h.mayWatch(x, slug, x.Actor.Org); err != nil {
		return err
	}
	if x.Request().Method == http.MethodHead { // a script uses this to find out why its stream failed
		return x.NoContent(http.StatusNoContent)
	}
	ctx, cancel := context.WithCancel(x.Request().Context())
	defer cancel()
	go func() {
		select {
		case <-h.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	w, err := h.figures.Watch(ctx, slug, x.Actor.ID)
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
		return nil //nolint:nilerr // the client has disconnected
	}
	h.stream(ctx, x, w, out)
	return nil
}

// stream sends figures until the client, the session or the server ends it.
func (h *dashboard) stream(ctx context.Context, x *shell.Request, w *live.Watch, out *sse.Stream) {
	began, checked, org := x.Now(), x.Now(), x.Actor.Org
	for x.Now().Sub(began) < sse.Life {
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
		if x.Now().Sub(checked) < recheckEvery {
			continue
		}
		checked = x.Now()
		if h.mayWatch(x, x.Param("slug"), org) != nil {
			return
		}
	}
}

// mayWatch returns an error unless the session is still in that organization and may see the room.
func (h *dashboard) mayWatch(x *shell.Request, slug string, org uuid.UUID) error {
	ctx, cancel := x.Wait()
	defer cancel()
	if err := x.Identify(account.Read); err != nil {
		return err
	}
	if x.Actor.Org != org {
		return shell.ErrSignIn
	}
	_, err := h.rooms.Room(ctx, x.Actor, slug)
	return err
}

// historyPage is the data of the history of a room.
type historyPage struct {
	Slug    string
	Title   string
	Phase   room.Phase
	Summary *live.Summary // nil: the room has not ended, or the summary is not ready
	Making  bool          // the summary is being computed

	Switches []projection.GateSwitch // switches of the gate, latest first
	FailOpen []projection.FailOpen   // latest first
}

func (h *dashboard) history(ctx context.Context, x *shell.Request, r *room.Room) error {
	s := r.Snapshot()
	p := historyPage{Slug: r.Slug, Title: s.Title, Phase: s.Phase(r.Now())}
	p.Switches, p.FailOpen = backward(r.Metrics().Gate)
	switch summary, err := h.figures.Summary(ctx, r.Slug); {
	case err == nil:
		p.Summary = &summary
	case errors.Is(err, live.ErrComputing):
		p.Making = true
	case !errors.Is(err, live.ErrNotEnded):
		return err
	}
	return x.Page("room-history", p)
}

// backward returns the latest switches and fail-open intervals, latest first.
func backward(g room.GateMetrics) ([]projection.GateSwitch, []projection.FailOpen) {
	switches, failOpen := slices.Clone(g.Switches), slices.Clone(g.FailOpen)
	slices.Reverse(switches)
	slices.Reverse(failOpen)
	return switches, failOpen
}

// minutes answers with the history as JSON for the charts, with as many steps as a chart can show.
func (h *dashboard) minutes(ctx context.Context, x *shell.Request, r *room.Room) error {
	list, err := h.figures.History(ctx, r.Slug, time.Time{}, time.Time{}, 0)
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, map[string]any{"minutes": list})
}

// table answers with a table as CSV: minutes, windows or the summary.
func (h *dashboard) table(ctx context.Context, x *shell.Request, r *room.Room) error {
	var (
		b    bytes.Buffer
		err  error
		name = x.QueryParam("table")
	)
	switch name {
	case "", "minutes":
		name = "minutes"
		var list []live.Minute
		if list, err = h.figures.History(ctx, r.Slug, time.Time{}, time.Time{}, time.Minute); err == nil {
			err = live.WriteMinutes(&b, list)
		}
	case "windows", "summary":
		var s live.Summary
		if s, err = h.figures.Summary(ctx, r.Slug); err == nil {
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

// document answers with the complete history as JSON.
func (h *dashboard) document(ctx context.Context, x *shell.Request, r *room.Room) error {
	e, err := h.figures.Export(ctx, r.Slug)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return x.Download(r.Slug+"-history.json", "application/json", append(text, '\n'))
}

// roomSites is the list of sites that a room protects.
type roomSites struct {
	Names  []string
	Slug   string // slug of the room
	MayAdd bool   // the room can protect another site
}

// sitesOf finds the sites whose rules name a room.
func sitesOf(ctx context.Context, sites Sites, by account.Actor, r *room.Room) (found roomSites, err error) {
	if sites == nil {
		return found, nil
	}
	found.Slug, found.MayAdd = r.Slug, by.May(account.Operate) && !r.Snapshot().Ended
	found.Names, err = sites.NamesOf(ctx, by, r.URL)
	return found, err
}

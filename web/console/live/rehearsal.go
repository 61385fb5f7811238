package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// rehearsals serves the pages of rehearsals with synthetic visitors.
type rehearsals struct{ rooms *control.Rooms }

func (h *rehearsals) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug/rehearsal", account.Operate, h.showRehearsals),
		shell.Post("/rooms/:slug/rehearsal", account.Operate, h.startRehearsal),
		shell.Post("/rooms/:slug/rehearsal/stop", account.Operate, h.stopRehearsal),
		shell.Get("/drafts/:id/rehearsal", account.Operate, h.showRehearsals),
		shell.Post("/drafts/:id/rehearsal", account.Operate, h.startRehearsal),
		shell.Post("/drafts/:id/rehearsal/stop", account.Operate, h.stopRehearsal),
	}
}

// rehearsed is the room or the draft of a page about rehearsals.
type rehearsed struct {
	Slug, Title string
	Path        string    // path of its pages, below [Path]
	ID          uuid.UUID // id of the room or draft
	Draft       bool
	PerMinute   uint32 // visitors called a minute
}

// rehearsed finds the room or the draft in the path.
func (h *rehearsals) rehearsed(x *shell.Request) (rehearsed, error) {
	ctx := x.Request().Context()
	if text := x.Param("id"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			return rehearsed{}, control.ErrDraftUnknown
		}
		draft, err := h.rooms.Drafts.Get(ctx, x.Actor, id)
		c, _ := room.ParseConfig(draft.Draft.Config) // its problems are shown when the rehearsal starts
		return rehearsed{
			draft.Slug, cmp.Or(draft.Title, draft.Slug, "New room"), "/drafts/" + id.String(), id, true,
			cmp.Or(c.Outflow.PerMinute, room.DefaultPerMinute),
		}, err
	}
	r, err := h.rooms.Room(ctx, x.Actor, x.Param("slug"))
	if err != nil {
		return rehearsed{}, err
	}
	c := r.Config()
	return rehearsed{r.Slug, c.Title, "/rooms/" + r.Slug, r.ID, false, c.Outflow.PerMinute}, nil
}

// rehearsalPage is the data of the page of rehearsals.
type rehearsalPage struct {
	rehearsed
	Visitors string
	Before   string // maximum seconds from opening to start
	Window   string // maximum seconds of a window
	Pace     string // visitors called a minute
	Work     int    // maximum bits of work
	Script   string // name of the chosen script
	Scripts  []script
	Of       []rehearse.Rehearsal
	Other    *rehearse.Rehearsal // a running rehearsal of another room: only one can run
	Running  bool
}

// usefulPace is the smallest pace that the form suggests: it calls the usual number of visitors in five minutes.
const usefulPace = rehearse.DefaultVisitors / 5

// IsSlow reports whether a rehearsal at the room's own pace would take longer than the form suggests.
func (p rehearsalPage) IsSlow() bool { return p.PerMinute < usefulPace }

// Minutes is how long the usual number of visitors takes at the room's own pace.
func (p rehearsalPage) Minutes() int {
	return (rehearse.DefaultVisitors + int(p.PerMinute) - 1) / int(max(1, p.PerMinute))
}

func (h *rehearsals) rehearsalPage(x *shell.Request) (rehearsalPage, error) {
	of, err := h.rehearsed(x)
	if err != nil {
		return rehearsalPage{}, err
	}
	list, err := h.rooms.ListRehearsals(x.Actor)
	if err != nil {
		return rehearsalPage{}, err
	}
	v := rehearsalPage{rehearsed: of, Visitors: strconv.Itoa(rehearse.DefaultVisitors), Before: "60", Window: "30",
		Work: rehearse.MaxWork, Scripts: scripts, Pace: strconv.Itoa(int(max(of.PerMinute, usefulPace)))}
	for _, one := range list {
		switch isOwn := one.Of != nil && *one.Of == of.ID || !of.Draft && one.Slug == of.Slug; {
		case isOwn:
			v.Of = append(v.Of, one)
			v.Running = v.Running || !one.Over
		case !one.Over:
			v.Other = &one
		}
	}
	return v, nil
}

func (h *rehearsals) showRehearsals(x *shell.Request) error {
	v, err := h.rehearsalPage(x)
	if err != nil {
		return err
	}
	return x.Page("room-rehearsal", v)
}

// script is a script that a rehearsal can have.
type script struct {
	Name, Label string
	rehearse.Script
}

// scripts are those that the form offers.
var scripts = []script{
	{"", "No script", rehearse.Script{}},
	{"machine", "1,000 tickets from one machine", rehearse.Script{Tickets: 1_000, Networks: 1}},
	{"networks", "1,000 tickets from a thousand networks", rehearse.Script{Tickets: 1_000, Networks: 1_000}},
	{"small", "100 tickets from one machine", rehearse.Script{Tickets: 100, Networks: 1}},
}

// readRehearsal reads the form of a rehearsal.
func readRehearsal(x *shell.Request) (rehearse.Plan, error) {
	var p rehearse.Plan
	numbers := map[string]int{}
	for _, name := range []string{"visitors", "before", "window", "per_minute"} {
		text := strings.TrimSpace(x.Form(name))
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 || n > 1_000_000 {
			return p, invalid.Field(name, "must be a whole number above 0")
		}
		numbers[name] = n
	}
	p.Visitors, p.PerMinute = numbers["visitors"], uint32(numbers["per_minute"]) //nolint:gosec // at most a million
	chosen := slices.IndexFunc(scripts, func(s script) bool { return s.Name == x.Form("script") })
	if chosen < 0 {
		return p, invalid.Field("script", "must be one of the list")
	}
	p.Script = scripts[chosen].Script
	p.Before, p.Window = time.Duration(numbers["before"])*time.Second, time.Duration(numbers["window"])*time.Second
	return p, nil
}

func (h *rehearsals) startRehearsal(x *shell.Request) error {
	of, err := h.rehearsed(x)
	if err != nil {
		return err
	}
	p, err := readRehearsal(x)
	switch {
	case err != nil:
	case of.Draft:
		_, err = h.rooms.RehearseDraft(x.Request().Context(), x.Actor, of.ID, p)
	default:
		_, err = h.rooms.Rehearse(x.Request().Context(), x.Actor, of.Slug, p)
	}
	if err == nil {
		return x.Done(of.Path+"/rehearsal", "rehearsal-started")
	}
	v, failed := h.rehearsalPage(x)
	if failed != nil {
		return failed
	}
	for name, into := range map[string]*string{"visitors": &v.Visitors, "before": &v.Before, "window": &v.Window,
		"script": &v.Script, "per_minute": &v.Pace} {
		if sent := x.Form(name); sent != "" {
			*into = sent
		}
	}
	if errors.Is(err, rehearse.ErrRunning) || errors.Is(err, rehearse.ErrBusy) {
		err = invalid.Field("", err.Error())
	}
	return x.Invalid("room-rehearsal", v, err)
}

func (h *rehearsals) stopRehearsal(x *shell.Request) error {
	of, err := h.rehearsed(x)
	if err != nil {
		return err
	}
	if err := h.rooms.StopRehearsal(x.Request().Context(), x.Actor, x.Form("rehearsal")); err != nil {
		return err
	}
	return x.Done(of.Path+"/rehearsal", "rehearsal-stopped")
}

// verdict describes the state or the result of a rehearsal.
func verdict(r rehearse.Rehearsal) string {
	in := fmt.Sprintf("%s of %s visitors were let in", format.Number(r.Admitted), format.Number(r.Visitors))
	switch {
	case !r.Over && r.Called == 0:
		return fmt.Sprintf("Running: %s of %s visitors have joined, and none has been called yet.",
			format.Number(r.Joined),
			format.Number(r.Visitors))
	case !r.Over:
		return "Running: " + in + " so far."
	case r.Failed > 0:
		return fmt.Sprintf("Problems: %s could not join, and %s.", format.Number(r.Failed), in)
	case r.Admitted+r.Missed+r.Left < r.Visitors:
		return "Stopped early: " + in + "."
	}
	return "It worked: " + in + ", and the others left or did not show up."
}

package console

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/room"
)

// rehearsalRoutes are those of rehearsals with synthetic visitors.
func (c *Console) rehearsalRoutes() []route {
	if c.Desk == nil || c.Desk.Rehearsals == nil {
		return nil
	}
	return []route{
		{GET, "/rooms/:slug/rehearsal", account.Operate, c.showRehearsals},
		{POST, "/rooms/:slug/rehearsal", account.Operate, c.startRehearsal},
		{POST, "/rooms/:slug/rehearsal/stop", account.Operate, c.stopRehearsal},
		{POST, "/drafts/:id/rehearsal", account.Operate, c.rehearseDraft},
	}
}

// rehearsalPage is what the page of a room's rehearsals shows.
type rehearsalPage struct {
	Slug, Title string
	Visitors    string
	Before      string // seconds from opening to start, at most
	Window      string // seconds of a window, at most
	Of          []rehearse.Rehearsal
	Other       *rehearse.Rehearsal // of another room, under way: there is one at a time
	Running     bool
}

func (c *Console) rehearsalPage(x *request) (rehearsalPage, error) {
	r, err := c.Desk.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return rehearsalPage{}, err
	}
	list, err := c.Desk.ListRehearsals(x.Actor)
	if err != nil {
		return rehearsalPage{}, err
	}
	v := rehearsalPage{Slug: r.Slug, Title: r.Config().Title, Visitors: strconv.Itoa(rehearse.DefaultVisitors), Before: "60", Window: "30"}
	for _, one := range list {
		switch isOwn := one.Of != nil && *one.Of == r.ID || one.Slug == r.Slug; {
		case isOwn:
			v.Of = append(v.Of, one)
			v.Running = v.Running || !one.Over
		case !one.Over:
			v.Other = &one
		}
	}
	return v, nil
}

func (c *Console) showRehearsals(x *request) error {
	v, err := c.rehearsalPage(x)
	if err != nil {
		return err
	}
	return x.page("room-rehearsal", v)
}

// readRehearsal reads the form of a rehearsal.
func readRehearsal(x *request) (rehearse.Plan, error) {
	var p rehearse.Plan
	numbers := map[string]int{}
	for _, name := range []string{"visitors", "before", "window"} {
		text := strings.TrimSpace(x.form(name))
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 || n > 1_000_000 {
			return p, problemAt(name, "must be a whole number above 0")
		}
		numbers[name] = n
	}
	p.Visitors = numbers["visitors"]
	p.Before, p.Window = time.Duration(numbers["before"])*time.Second, time.Duration(numbers["window"])*time.Second
	return p, nil
}

func (c *Console) startRehearsal(x *request) error {
	slug := x.Param("slug")
	p, err := readRehearsal(x)
	if err == nil {
		_, err = c.Desk.Rehearse(x.Request().Context(), x.Actor, slug, p)
	}
	if err == nil {
		return x.done("/rooms/"+slug+"/rehearsal", "rehearsal-started")
	}
	v, failed := c.rehearsalPage(x)
	if failed != nil {
		return failed
	}
	for name, into := range map[string]*string{"visitors": &v.Visitors, "before": &v.Before, "window": &v.Window} {
		if sent := x.form(name); sent != "" {
			*into = sent
		}
	}
	if errors.Is(err, rehearse.ErrRunning) || errors.Is(err, rehearse.ErrBusy) {
		err = problemAt("", err.Error())
	}
	return x.invalid("room-rehearsal", v, err)
}

// rehearseDraft rehearses a room that is not published; its page is the copy's.
func (c *Console) rehearseDraft(x *request) error {
	id, err := uuid.Parse(x.Param("id"))
	if err != nil {
		return room.ErrNotFound
	}
	p, err := readRehearsal(x)
	if err != nil {
		return err
	}
	started, err := c.Desk.RehearseDraft(x.Request().Context(), x.Actor, id, p)
	if err != nil {
		return err
	}
	return x.done("/rooms/"+started.Slug+"/rehearsal", "rehearsal-started")
}

func (c *Console) stopRehearsal(x *request) error {
	slug := x.Param("slug")
	if _, err := c.Desk.Room(x.Request().Context(), x.Actor, slug); err != nil {
		return err
	}
	if err := c.Desk.StopRehearsal(x.Request().Context(), x.Actor, x.form("rehearsal")); err != nil {
		return err
	}
	return x.done("/rooms/"+slug+"/rehearsal", "rehearsal-stopped")
}

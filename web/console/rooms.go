package console

import (
	"fmt"
	"net/url"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// roomRoutes are the list of rooms and what is done from it.
func (c *Console) roomRoutes() []route {
	return []route{
		{GET, "/rooms", account.Read, c.listRooms},
		{POST, "/rooms/:slug/duplicate", account.Operate, c.duplicateRoom},
		{POST, "/rooms/:slug/archive", account.Operate, c.archiveRoom(true)},
		{POST, "/rooms/:slug/unarchive", account.Operate, c.archiveRoom(false)},
	}
}

// roomsPage is what the list shows.
type roomsPage struct {
	Drafts   []control.Draft // on the first page, without a search
	Rooms    []roomRow
	Search   string
	Archived bool
	Later    bool   // not the first page
	Next     string // address of the next page; empty: there is none
}

// Empty tells whether there is nothing at all, rather than nothing that matches.
func (p roomsPage) Empty() bool {
	return len(p.Drafts) == 0 && len(p.Rooms) == 0 && p.Search == "" && !p.Archived && !p.Later
}

// roomRow is one room of the list. Of rooms that have ended there are no figures.
type roomRow struct {
	control.Summary
	State  badge
	InLine uint64 // neither let in, nor passed over, nor gone
	Over   bool
}

func newRoomRow(s control.Summary) roomRow {
	row := roomRow{Summary: s, State: format.Phase(s.Phase), Over: s.Phase == room.PhaseEnded}
	if s.Snapshot != nil {
		row.InLine = inLine(s.Snapshot.Counts)
	}
	return row
}

// inLine is how many people hold a place that is not settled.
func inLine(n fairness.Counts) uint64 {
	gone := n.Admitted + n.NoShows + n.Left + n.Revoked
	return n.Arrivals - min(gone, n.Arrivals)
}

func (c *Console) listRooms(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	f := control.Filter{Search: cleanText(x.QueryParam("q")), Archived: x.QueryParam("archived") == "1", Cursor: x.QueryParam("after")}
	list, err := c.Control.List(ctx, x.Actor, f)
	if err != nil {
		return err
	}
	p := roomsPage{Search: f.Search, Archived: f.Archived, Later: f.Cursor != ""}
	for _, s := range list.List {
		p.Rooms = append(p.Rooms, newRoomRow(s))
	}
	if list.Next != "" {
		p.Next = Path + "/rooms?" + listQuery(f, list.Next)
	}
	if f.Search == "" && !f.Archived && f.Cursor == "" {
		if p.Drafts, err = c.Control.Drafts(ctx, x.Actor); err != nil {
			return err
		}
	}
	return x.page("rooms", p)
}

// listQuery leads to another page of the same list.
func listQuery(f control.Filter, cursor string) string {
	q := url.Values{"after": {cursor}}
	if f.Search != "" {
		q.Set("q", f.Search)
	}
	if f.Archived {
		q.Set("archived", "1")
	}
	return q.Encode()
}

func (c *Console) duplicateRoom(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	d, err := c.Control.Duplicate(ctx, x.Actor, x.Param("slug"))
	if err != nil {
		return err
	}
	return x.done(fmt.Sprintf("/drafts/%s", d.ID), "room-duplicated")
}

func (c *Console) archiveRoom(archived bool) func(*request) error {
	notice := "room-archived"
	if !archived {
		notice = "room-unarchived"
	}
	return func(x *request) error {
		ctx, cancel := x.wait()
		defer cancel()
		if _, err := c.Control.Archive(ctx, x.Actor, x.Param("slug"), archived); err != nil {
			return err
		}
		return x.done("/rooms", notice)
	}
}

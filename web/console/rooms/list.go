package rooms

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// list serves the list of rooms and its actions.
type list struct{ control *control.Rooms }

func (h *list) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms", account.Read, h.show),
		shell.Post("/rooms/:slug/duplicate", account.Operate, h.duplicate),
		shell.Post("/rooms/:slug/archive", account.Operate, h.archive),
		shell.Post("/rooms/:slug/unarchive", account.Operate, h.unarchive),
	}
}

// roomsPage is the data of the list.
type roomsPage struct {
	Drafts   []control.Draft // only on the first page, without a search
	Rooms    []roomRow
	Search   string
	Archived bool
	Later    bool   // not the first page
	Next     string // URL of the next page; empty: none
}

// Empty reports whether there are no rooms at all, rather than no matches.
func (p roomsPage) Empty() bool {
	return len(p.Drafts) == 0 && len(p.Rooms) == 0 && p.Search == "" && !p.Archived && !p.Later
}

// roomRow is a room in the list. Ended rooms have no figures.
type roomRow struct {
	control.Summary
	State  format.Badge
	InLine uint64 // visitors in line
	Over   bool
}

func newRoomRow(s control.Summary) roomRow {
	row := roomRow{Summary: s, State: format.Phase(s.Phase), Over: s.Phase == room.PhaseEnded}
	if s.Snapshot != nil {
		row.InLine = s.Snapshot.Counts.Unsettled()
	}
	return row
}

func (h *list) show(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	f := control.Filter{Search: format.Clean(x.QueryParam("q")), Archived: x.QueryParam("archived") == "1",
		Cursor: x.QueryParam("after")}
	list, err := h.control.List(ctx, x.Actor, f)
	if err != nil {
		return err
	}
	p := roomsPage{Search: f.Search, Archived: f.Archived, Later: f.Cursor != ""}
	for _, s := range list.List {
		p.Rooms = append(p.Rooms, newRoomRow(s))
	}
	if list.Next != "" {
		p.Next = shell.Path + "/rooms?" + listQuery(f, list.Next)
	}
	if f.Search == "" && !f.Archived && f.Cursor == "" {
		if p.Drafts, err = h.control.Drafts.List(ctx, x.Actor); err != nil {
			return err
		}
	}
	return x.Render(http.StatusOK, "rooms", shell.View{Data: p, Beacon: beaconWarning(h.control)})
}

// listQuery returns the query of another page of the list.
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

func (h *list) duplicate(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	d, err := h.control.Drafts.Duplicate(ctx, x.Actor, x.Param("slug"))
	if err != nil {
		return err
	}
	return x.Done(fmt.Sprintf("/drafts/%s", d.ID), "room-duplicated")
}

func (h *list) archive(x *shell.Request) error { return h.setArchived(x, true, "room-archived") }

func (h *list) unarchive(x *shell.Request) error { return h.setArchived(x, false, "room-unarchived") }

func (h *list) setArchived(x *shell.Request, archived bool, notice string) error {
	ctx, cancel := x.Wait()
	defer cancel()
	if _, err := h.control.Archive(ctx, x.Actor, x.Param("slug"), archived); err != nil {
		return err
	}
	return x.Done("/rooms", notice)
}

package live

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// controls serves the controls of a running sale. Each control is a form on the live page, and also has a separate
// page, for browsers without scripts and for problems with the form.
type controls struct {
	rooms *control.Rooms
	sites Sites
}

func (h *controls) routes() []shell.Route {
	list := []shell.Route{
		shell.Get("/rooms/:slug/ticket", account.Read, h.showTicket),
		shell.Post("/rooms/:slug/report", account.Operate, h.publishReport),
	}
	for name, each := range roomControls {
		list = append(list,
			shell.Get("/rooms/:slug/"+name, account.Operate, h.showControl(name)),
			shell.Post("/rooms/:slug/"+name, account.Operate, h.doControl(name, each)),
		)
	}
	return list
}

// roomControl is an action on a running room.
type roomControl struct {
	ask    func(*controls, *shell.Request, *room.Room) (shell.Question, error) // checks the form
	do     func(*controls, *shell.Request, *room.Room) error
	notice string // notice shown after the action
}

var roomControls = map[string]roomControl{
	"pause":         {(*controls).askPause, (*controls).pause, "paused"},
	"freeze-claims": {(*controls).askFreezeClaims, (*controls).freezeClaims, "claims-frozen"},
	"resume":        {(*controls).askResume, (*controls).resume, "resumed"},
	"outflow":       {(*controls).askOutflow, (*controls).changeOutflow, "outflow-changed"},
	"message":       {(*controls).askMessage, (*controls).broadcast, "message-shown"},
	"message-back":  {(*controls).askTakeBack, (*controls).takeBack, "message-back"},
	"revoke":        {(*controls).askRevoke, (*controls).revokeTicket, "revoked"},
	"restore":       {(*controls).askRestore, (*controls).restoreTicket, "restored"},
	"end":           {(*controls).askEnd, (*controls).endRoom, "ended"},
}

// controlView is the data of the control forms.
type controlView struct {
	Slug, Title  string
	Fair         string     // URL of the page about the room's proofs
	Report       string     // URL of the audit report; empty: not published
	Reported     *time.Time // when the report was published
	Phase        room.Phase
	Paused       bool
	ClaimsFrozen bool
	Ended        bool
	PerMinute    uint32
	MaxActive    uint32
	Message      messageView
	Reasons      []reasonView

	Only   string // the only control on the page; empty: all
	Ticket string // ticket to revoke or restore
	Reason string
	Typed  string // confirmation of the end
}

// reasonView is a class of reasons for revoking a place.
type reasonView struct{ Value, Words string }

var reasonViews = []reasonView{
	{string(fairness.RevokedBot), "a bot"},
	{string(fairness.RevokedDuplicate), "one of several places of the same visitor"},
	{string(fairness.RevokedFraud), "fraud"},
	{string(fairness.RevokedRequest), "the visitor asked for it"},
	{string(fairness.Revoked), "another reason"},
}

// controlsOf returns the data of the control forms of a room.
func controlsOf(r *room.Room) controlView {
	s := r.Snapshot()
	return controlView{
		Slug: r.Slug, Title: s.Title, Fair: r.URL + "/fair", Phase: s.Phase(r.Now()), Paused: s.Paused,
		ClaimsFrozen: s.ClaimsFrozen, Ended: s.Ended,
		PerMinute: s.Outflow.PerMinute, MaxActive: s.Outflow.MaxActive, Message: newMessageView(r),
		Reasons: reasonViews,
	}
}

// showControl returns a handler that shows the page of a control.
func (h *controls) showControl(name string) func(*shell.Request) error {
	return func(x *shell.Request) error {
		v, err := h.controlView(x, name)
		if err != nil {
			return err
		}
		return x.Page("room-control", v)
	}
}

func (h *controls) controlView(x *shell.Request, name string) (controlView, error) {
	r, err := h.rooms.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return controlView{}, err
	}
	v := controlsOf(r)
	v.Only, v.Ticket, v.Reason = name, x.QueryParam("ticket"), string(fairness.RevokedBot)
	return v, nil
}

// doControl returns a handler that checks the form, asks for confirmation, and then acts.
func (h *controls) doControl(name string, each roomControl) func(*shell.Request) error {
	return func(x *shell.Request) error {
		r, err := h.rooms.Room(x.Request().Context(), x.Actor, x.Param("slug"))
		if err != nil {
			return err
		}
		if v := controlsOf(r); name == "message" && v.Message.edit(x) {
			v.Only = name
			return x.Page("room-control", v)
		}
		q, err := each.ask(h, x, r)
		if err == nil && !x.IsConfirmed() {
			return x.Confirm(q, "/rooms/"+r.Slug)
		}
		if err == nil {
			err = each.do(h, x, r)
		}
		if err == nil {
			return x.Done("/rooms/"+r.Slug, each.notice)
		}
		return h.refuseControl(x, name, err)
	}
}

// refuseControl shows the form again with its problems.
func (h *controls) refuseControl(x *shell.Request, name string, err error) error {
	switch {
	case errors.Is(err, room.ErrTicketUnknown):
		err = invalid.Field("ticket", "This room has no such ticket.")
	case name == "restore":
		err = restoreWords(err)
	case errors.Is(err, room.ErrSettled):
		err = invalid.Field("ticket", "This visitor has already entered the shop or lost the place.")
	}
	v, failed := h.controlView(x, name)
	if failed != nil {
		return failed
	}
	for field, into := range map[string]*string{"ticket": &v.Ticket, "reason": &v.Reason, "slug": &v.Typed} {
		if sent := x.Form(field); sent != "" {
			*into = sent
		}
	}
	if name == "message" {
		v.Message.Form = readMessageForm(x.Request().PostForm)
	}
	return x.Invalid("room-control", v, err)
}

// standingWords describes the standing of a ticket.
func standingWords(st fairness.Standing) string {
	switch st.Status {
	case fairness.StatusDrawn:
		return fmt.Sprintf("place %s, %s ahead", format.Number(uint64(st.Position)), format.Number(st.AheadMin))
	case fairness.StatusCalled:
		return fmt.Sprintf("place %s, called", format.Number(uint64(st.Position)))
	case fairness.StatusAdmitted:
		return fmt.Sprintf("place %s, admitted", format.Number(uint64(st.Position)))
	case fairness.StatusSkipped:
		return "skipped: " + string(st.Reason)
	default:
		return "not drawn yet"
	}
}

// ticketView is the data of the page that looks up a ticket.
type ticketView struct {
	controlView
	Wanted   string
	Found    bool
	Standing fairness.Standing
	Words    string
	// CanRestore reports whether the ticket was revoked and can get its place back, now or later.
	CanRestore bool
}

// showTicket shows the standing of a ticket.
func (h *controls) showTicket(x *shell.Request) error {
	v, err := h.controlView(x, "")
	if err != nil {
		return err
	}
	page := ticketView{controlView: v, Wanted: strings.TrimSpace(x.QueryParam("id"))}
	if page.Wanted == "" {
		return x.Page("room-ticket", page)
	}
	t, err := fairness.ParseTicket(page.Wanted)
	if err != nil {
		return x.Invalid("room-ticket", page, invalid.Field("id",
			"must be a ticket, such as cda3f665-387e-8031-a3d9-8534adbd7fa3"))
	}
	r, err := h.rooms.Room(x.Request().Context(), x.Actor, v.Slug)
	if err != nil {
		return err
	}
	page.Standing, err = r.Place(x.Request().Context(), t)
	if errors.Is(err, room.ErrTicketUnknown) {
		return x.Render(http.StatusNotFound, "room-ticket", shell.View{Data: page})
	}
	if err != nil {
		return err
	}
	page.Found = true
	page.Words = standingWords(page.Standing)
	page.CanRestore = page.Standing.Reason.IsRevoked() && !page.Standing.Restored && !page.Ended
	return x.Page("room-ticket", page)
}

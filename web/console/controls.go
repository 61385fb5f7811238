package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// controlRoutes are what steers a sale. Each control is a form on the live
// page, and a page of its own: for browsers without scripts, and to say what was
// wrong with what was sent.
func (c *Console) controlRoutes() []route {
	list := []route{
		{GET, "/rooms/:slug/ticket", account.Read, c.showTicket},
	}
	for name, each := range controls {
		list = append(list,
			route{GET, "/rooms/:slug/" + name, account.Operate, c.showControl(name)},
			route{POST, "/rooms/:slug/" + name, account.Operate, c.doControl(name, each)},
		)
	}
	return list
}

// roomControl is one thing that can be done to a room that lives.
type roomControl struct {
	ask    func(*Console, *request, *room.Room) (question, error) // checks what was sent
	do     func(*Console, *request, *room.Room) error
	notice string // once it is done
}

var controls = map[string]roomControl{
	"pause":         {(*Console).askPause, (*Console).pause, "paused"},
	"freeze-claims": {(*Console).askFreezeClaims, (*Console).freezeClaims, "claims-frozen"},
	"resume":        {(*Console).askResume, (*Console).resume, "resumed"},
	"outflow":       {(*Console).askOutflow, (*Console).changeOutflow, "outflow-changed"},
	"message":       {(*Console).askMessage, (*Console).broadcast, "message-shown"},
	"message-back":  {(*Console).askTakeBack, (*Console).takeBack, "message-back"},
	"revoke":        {(*Console).askRevoke, (*Console).revokeTicket, "revoked"},
	"end":           {(*Console).askEnd, (*Console).endRoom, "ended"},
}

// controlView is what the forms of the controls show.
type controlView struct {
	Slug, Title  string
	Fair         string // address of the page that says what the room proves
	Phase        room.Phase
	Paused       bool
	ClaimsFrozen bool
	Ended        bool
	PerMinute    uint32
	MaxActive    uint32
	Message      messageView
	Reasons      []reasonView

	Only   string // the one control that a page of its own is about
	Ticket string // to be revoked
	Reason string
	Typed  string // to confirm an end
}

// reasonView is a class of reason for which a place is taken away.
type reasonView struct{ Value, Words string }

var reasonViews = []reasonView{
	{string(fairness.RevokedBot), "a bot"},
	{string(fairness.RevokedDuplicate), "one of several places of the same visitor"},
	{string(fairness.RevokedFraud), "fraud"},
	{string(fairness.RevokedRequest), "the visitor asked for it"},
	{string(fairness.Revoked), "another reason"},
}

// controlsOf is what the forms show of a room.
func controlsOf(r *room.Room) controlView {
	s := r.Snapshot()
	return controlView{
		Slug: r.Slug, Title: s.Title, Fair: r.URL + "/fair", Phase: s.Phase(r.Now()), Paused: s.Paused, ClaimsFrozen: s.ClaimsFrozen, Ended: s.Ended,
		PerMinute: s.Outflow.PerMinute, MaxActive: s.Outflow.MaxActive, Message: newMessageView(r), Reasons: reasonViews,
	}
}

// showControl answers with the page of one control.
func (c *Console) showControl(name string) func(*request) error {
	return func(x *request) error {
		v, err := c.controlView(x, name)
		if err != nil {
			return err
		}
		return x.page("room-control", v)
	}
}

func (c *Console) controlView(x *request, name string) (controlView, error) {
	r, err := c.Control.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return controlView{}, err
	}
	v := controlsOf(r)
	v.Only, v.Ticket, v.Reason = name, x.QueryParam("ticket"), string(fairness.RevokedBot)
	return v, nil
}

// doControl checks what was sent, asks, and then does it.
func (c *Console) doControl(name string, each roomControl) func(*request) error {
	return func(x *request) error {
		r, err := c.Control.Room(x.Request().Context(), x.Actor, x.Param("slug"))
		if err != nil {
			return err
		}
		if v := controlsOf(r); name == "message" && v.Message.edit(x) {
			v.Only = name
			return x.page("room-control", v)
		}
		q, err := each.ask(c, x, r)
		if err == nil && !x.isConfirmed() {
			return x.confirm(q, "/rooms/"+r.Slug)
		}
		if err == nil {
			err = each.do(c, x, r)
		}
		if err == nil {
			return x.done("/rooms/"+r.Slug, each.notice)
		}
		return c.refuseControl(x, name, err)
	}
}

// refuseControl shows the form again, with what was wrong.
func (c *Console) refuseControl(x *request, name string, err error) error {
	switch {
	case errors.Is(err, room.ErrTicketUnknown):
		err = invalid.Field("ticket", "This room has no such ticket.")
	case errors.Is(err, room.ErrSettled):
		err = invalid.Field("ticket", "This visitor has already entered the shop or lost the place.")
	}
	v, failed := c.controlView(x, name)
	if failed != nil {
		return failed
	}
	for field, into := range map[string]*string{"ticket": &v.Ticket, "reason": &v.Reason, "slug": &v.Typed} {
		if sent := x.form(field); sent != "" {
			*into = sent
		}
	}
	if name == "message" {
		v.Message.Form = readMessageForm(x.Request().PostForm)
	}
	return x.invalid("room-control", v, err)
}

// standingWords says where a ticket stands.
func standingWords(st fairness.Standing) string {
	switch st.Status {
	case fairness.StatusDrawn:
		return fmt.Sprintf("place %s, %s ahead", number(uint64(st.Position)), number(st.AheadMin))
	case fairness.StatusCalled:
		return fmt.Sprintf("place %s, called", number(uint64(st.Position)))
	case fairness.StatusAdmitted:
		return fmt.Sprintf("place %s, let in", number(uint64(st.Position)))
	case fairness.StatusSkipped:
		return "passed over: " + string(st.Reason)
	}
	return "not drawn yet"
}

// ticketView is one ticket, for somebody who was asked about it.
type ticketView struct {
	controlView
	Wanted   string
	Found    bool
	Standing fairness.Standing
	Words    string
}

// showTicket answers with where a ticket stands.
func (c *Console) showTicket(x *request) error {
	v, err := c.controlView(x, "")
	if err != nil {
		return err
	}
	page := ticketView{controlView: v, Wanted: strings.TrimSpace(x.QueryParam("id"))}
	if page.Wanted == "" {
		return x.page("room-ticket", page)
	}
	t, err := fairness.ParseTicket(page.Wanted)
	if err != nil {
		return x.invalid("room-ticket", page, invalid.Field("id", "must be a ticket, such as cda3f665-387e-8031-a3d9-8534adbd7fa3"))
	}
	r, err := c.Control.Room(x.Request().Context(), x.Actor, v.Slug)
	if err != nil {
		return err
	}
	page.Standing, err = r.Place(x.Request().Context(), t)
	if errors.Is(err, room.ErrTicketUnknown) {
		return x.render(http.StatusNotFound, "room-ticket", view{Data: page})
	}
	if err != nil {
		return err
	}
	page.Found = true
	page.Words = standingWords(page.Standing)
	return x.page("room-ticket", page)
}

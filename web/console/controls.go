package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// controlRoutes are what steers a sale. Each control is a form on the live
// page, and a page of its own: for browsers without scripts, and to say what was
// wrong with what was sent.
func (c *Console) controlRoutes() []route {
	list := []route{
		{GET, "/rooms/:slug/ticket", account.Read, c.showTicket},
	}
	for name, control := range controls {
		list = append(list,
			route{GET, "/rooms/:slug/" + name, account.Operate, c.showControl(name)},
			route{POST, "/rooms/:slug/" + name, account.Operate, c.doControl(name, control)},
		)
	}
	return list
}

// control is one thing that can be done to a room that lives.
type control struct {
	question func(*request, *room.Room) (string, error) // that is asked before
	action   string                                     // the words on the button
	do       func(*Console, *request, string) error
	notice   string // once it is done
}

// asks is the question of a control that needs no look at what was sent.
func asks(text string) func(*request, *room.Room) (string, error) {
	return func(*request, *room.Room) (string, error) { return text, nil }
}

var controls = map[string]control{
	"pause": {
		asks("Pause the line? Nobody is called until you resume. Everybody who was called may still go in, and keeps the time to do so. The pause stands in the public transcript."),
		"Pause", (*Console).pause, "paused",
	},
	"hold": {
		asks("Hold everybody? Nobody is called, and nobody who was called gets in until you resume. Their time to go in stands still. The pause stands in the public transcript."),
		"Hold everybody", (*Console).hold, "held",
	},
	"resume": {
		asks("Resume? People are called and let in again from now on. It stands in the public transcript."),
		"Resume", (*Console).resume, "resumed",
	},
	"outflow": {askOutflow, "Change the outflow", (*Console).changeOutflow, "outflow-changed"},
	"message": {
		asks("Show this message to everybody in the line? Its hash stands in the public transcript."),
		"Show the message", (*Console).broadcast, "message-shown",
	},
	"revoke": {askRevoke, "Take the place away", (*Console).revokeTicket, "revoked"},
	"end": {
		asks("End the room for good? Nobody is called or let in any more, and it cannot be opened again. The end stands in the public transcript."),
		"End the room", (*Console).endRoom, "ended",
	},
}

// controlView is what the forms of the controls show.
type controlView struct {
	Slug, Title string
	Phase       room.Phase
	Paused      bool
	Held        bool
	Ended       bool
	PerMinute   uint32
	MaxActive   uint32
	Message     string
	Reasons     []reasonView

	Only   string // the one control that a page of its own is about
	Ticket string // to be revoked
	Reason string
}

// reasonView is a class of reason for which a place is taken away.
type reasonView struct{ Value, Words string }

var reasonViews = []reasonView{
	{string(fairness.RevokedBot), "a bot"},
	{string(fairness.RevokedDuplicate), "one of several places of somebody"},
	{string(fairness.RevokedFraud), "fraud"},
	{string(fairness.RevokedRequest), "the visitor asked for it"},
	{string(fairness.Revoked), "another reason"},
}

// controlsOf is what the forms show of a room.
func controlsOf(r *room.Room) controlView {
	s := r.Snapshot()
	return controlView{
		Slug: r.Slug, Title: s.Title, Phase: s.Phase(r.Now()), Paused: s.Paused, Held: r.IsHeld(), Ended: s.Ended,
		PerMinute: s.Outflow.PerMinute, MaxActive: s.Outflow.MaxActive, Message: s.Message, Reasons: reasonViews,
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
	r, err := c.Desk.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return controlView{}, err
	}
	v := controlsOf(r)
	v.Only, v.Ticket, v.Reason = name, x.QueryParam("ticket"), string(fairness.RevokedBot)
	return v, nil
}

// doControl asks first, and then does it.
func (c *Console) doControl(name string, control control) func(*request) error {
	return func(x *request) error {
		slug := x.Param("slug")
		r, err := c.Desk.Room(x.Request().Context(), x.Actor, slug)
		if err != nil {
			return err
		}
		question, err := control.question(x, r)
		if err == nil && !x.isConfirmed() {
			return x.confirm(question, control.action, "/rooms/"+slug)
		}
		if err == nil {
			err = control.do(c, x, slug)
		}
		if err == nil {
			return x.done("/rooms/"+slug, control.notice)
		}
		return c.refuseControl(x, name, err)
	}
}

// refuseControl shows the form again, with what was wrong.
func (c *Console) refuseControl(x *request, name string, err error) error {
	switch {
	case errors.Is(err, room.ErrTicketUnknown):
		err = problemAt("ticket", "no such ticket in this room")
	case errors.Is(err, room.ErrSettled):
		err = problemAt("ticket", "has been let in or passed over already")
	}
	v, failed := c.controlView(x, name)
	if failed != nil {
		return failed
	}
	for field, into := range map[string]*string{"ticket": &v.Ticket, "reason": &v.Reason, "message": &v.Message} {
		if sent := x.form(field); sent != "" {
			*into = sent
		}
	}
	return x.invalid("room-control", v, err)
}

// problemAt says what is wrong with one field.
func problemAt(field, detail string) error {
	return &room.InvalidError{Problems: []fairness.Problem{{Field: field, Detail: detail}}}
}

func (c *Console) pause(x *request, slug string) error {
	_, err := c.Desk.Pause(x.Request().Context(), x.Actor, slug)
	return err
}

func (c *Console) hold(x *request, slug string) error {
	_, err := c.Desk.Hold(x.Request().Context(), x.Actor, slug)
	return err
}

func (c *Console) resume(x *request, slug string) error {
	_, err := c.Desk.Resume(x.Request().Context(), x.Actor, slug)
	return err
}

// endRoom wants the room's slug typed, for nothing brings a room back.
func (c *Console) endRoom(x *request, slug string) error {
	if strings.TrimSpace(x.form("slug")) != slug {
		return problemAt("slug", "must be the room's address, "+slug+", to show that you mean this one")
	}
	_, err := c.Desk.End(x.Request().Context(), x.Actor, slug)
	return err
}

// outflow reads the form of the outflow.
func outflow(x *request) (room.Amendment, error) {
	members := map[string]json.RawMessage{}
	for _, name := range []string{"per_minute", "max_active"} {
		if value := strings.TrimSpace(x.form(name)); value != "" {
			if _, err := strconv.ParseUint(value, 10, 32); err != nil {
				return room.Amendment{}, problemAt("outflow."+name, "must be a whole number")
			}
			members[name] = json.RawMessage(value)
		}
	}
	return amendment(map[string]any{"outflow": members})
}

// amendment makes one from what a form had.
func amendment(members map[string]any) (room.Amendment, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return room.Amendment{}, fmt.Errorf("write amendment: %w", err)
	}
	return room.ParseAmendment(text)
}

func askOutflow(x *request, r *room.Room) (string, error) {
	a, err := outflow(x)
	if err != nil {
		return "", err
	}
	was, now := r.Snapshot().Outflow, r.Snapshot().Outflow
	if a.Outflow.PerMinute != nil {
		now.PerMinute = *a.Outflow.PerMinute
	}
	if a.Outflow.MaxActive != nil {
		now.MaxActive = *a.Outflow.MaxActive
	}
	if now == was {
		return "", problemAt("outflow.per_minute", "and the limit are so already: there is nothing to change")
	}
	return fmt.Sprintf("Change the outflow from %s to %s? It stands in the public transcript, and the times that visitors see change.", outflowWords(was), outflowWords(now)), nil
}

func outflowWords(o fairness.Outflow) string {
	if o.MaxActive == 0 {
		return number(o.PerMinute) + " a minute"
	}
	return number(o.PerMinute) + " a minute, " + number(o.MaxActive) + " at once"
}

func (c *Console) changeOutflow(x *request, slug string) error {
	a, err := outflow(x)
	if err != nil {
		return err
	}
	_, err = c.Desk.Amend(x.Request().Context(), x.Actor, slug, a, nil)
	return err
}

func (c *Console) broadcast(x *request, slug string) error {
	a, err := amendment(map[string]any{"message": strings.ReplaceAll(x.form("message"), "\r\n", "\n")})
	if err != nil {
		return err
	}
	_, err = c.Desk.Amend(x.Request().Context(), x.Actor, slug, a, nil)
	return err
}

// askRevoke says whose place it is about.
func askRevoke(x *request, r *room.Room) (string, error) {
	t, err := fairness.ParseTicket(strings.TrimSpace(x.form("ticket")))
	if err != nil {
		return "", problemAt("ticket", "must be a ticket, such as cda3f665-387e-8031-a3d9-8534adbd7fa3; visitors see theirs under \"Check my place\", in the technical details")
	}
	st, ok := r.Standing(t)
	if !ok {
		return "", room.ErrTicketUnknown
	}
	return fmt.Sprintf("Take the place of ticket %s away (%s)? It cannot be given back. It stands in the public transcript, with the class of reason.", t, standingWords(st)), nil
}

func (c *Console) revokeTicket(x *request, slug string) error {
	t, err := fairness.ParseTicket(strings.TrimSpace(x.form("ticket")))
	if err != nil {
		return problemAt("ticket", "must be a ticket")
	}
	_, err = c.Desk.Revoke(x.Request().Context(), x.Actor, slug, t, fairness.Reason(x.form("reason")))
	return err
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
		return x.invalid("room-ticket", page, problemAt("id", "must be a ticket, such as cda3f665-387e-8031-a3d9-8534adbd7fa3"))
	}
	r, err := c.Desk.Room(x.Request().Context(), x.Actor, v.Slug)
	if err != nil {
		return err
	}
	if page.Standing, page.Found = r.Standing(t); !page.Found {
		return x.render(http.StatusNotFound, "room-ticket", view{Data: page})
	}
	page.Words = standingWords(page.Standing)
	return x.page("room-ticket", page)
}

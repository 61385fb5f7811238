package manage

import (
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// ticketJSON is where a ticket stands.
type ticketJSON struct {
	Ticket     string          `json:"ticket"`
	Index      uint64          `json:"index" doc:"Of its arrival in the transcript."`
	Joined     time.Time       `json:"joined"`
	Window     uint64          `json:"window"`
	WindowFrom time.Time       `json:"window_from"`
	WindowTo   time.Time       `json:"window_to"`
	Seq        uint32          `json:"seq" doc:"Which arrival of its window."`
	Lane       string          `json:"lane"`
	Status     fairness.Status `json:"status"`
	Reason     fairness.Reason `json:"reason,omitempty" doc:"Why it was skipped."`
	Position   *uint64         `json:"position" doc:"Null until drawn."`
	Ahead      aheadJSON       `json:"ahead" doc:"Bounds of the places before its own that are not called."`
	ETA        *spanJSON       `json:"eta" doc:"When it will be called if the outflow stays as it is; null when nobody can say."`
	LeftMS     *int64          `json:"left_ms,omitempty" doc:"When called: time left to claim."`
	Settled    *time.Time      `json:"settled,omitempty" doc:"When it was admitted or skipped."`
	SettledAt  *uint64         `json:"settled_index,omitempty" doc:"The entry that says so."`
}

type aheadJSON struct {
	Min uint64 `json:"min"`
	Max uint64 `json:"max"`
}

type spanJSON struct {
	Earliest time.Time  `json:"earliest"`
	Latest   *time.Time `json:"latest" doc:"Null while people can still join the group."`
}

func newTicketJSON(r *room.Room, st fairness.Standing) ticketJSON {
	out := ticketJSON{
		Ticket: st.Ticket.String(), Index: uint64(st.Index), Joined: timeOf(st.Joined),
		Window: uint64(st.Window.Index), WindowFrom: timeOf(st.Window.From), WindowTo: timeOf(st.Window.To),
		Seq: st.Seq, Lane: string(st.Lane), Status: st.Status, Ahead: aheadJSON{st.AheadMin, st.AheadMax},
	}
	if st.Position > 0 {
		position := uint64(st.Position)
		out.Position = &position
	}
	if span, ok := r.Snapshot().Expected(st, r.Now()); ok {
		out.ETA = &spanJSON{Earliest: span.Earliest.UTC()}
		if latest := span.Latest.UTC(); !r.Snapshot().Grows(st, r.Now()) {
			out.ETA.Latest = &latest
		}
	}
	switch st.Status {
	case fairness.StatusCalled:
		left := int64(st.Left)
		out.LeftMS = &left
	case fairness.StatusAdmitted, fairness.StatusSkipped:
		settled, index := timeOf(st.Settled), uint64(st.SettledIndex)
		out.Settled, out.SettledAt, out.Reason = &settled, &index, st.Reason
	}
	return out
}

// timeOf converts a moment of the transcript.
func timeOf(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }

// revokeInput says why a place is taken away.
type revokeInput struct {
	Reason fairness.Reason `json:"reason" enum:"revoked,revoked-bot,revoked-duplicate,revoked-fraud,revoked-request" doc:"A class of reason, which stands in the transcript. Default: revoked, for none of the others."`
}

func (a *API) ticketRoutes() []route {
	const tag = "tickets"
	return []route{
		{
			method: http.MethodGet, path: "rooms/{slug}/tickets/{ticket}", scope: account.Read, name: "showTicket", tag: tag,
			summary: "Show where a ticket stands", out: ticketJSON{}, do: a.showTicket,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/tickets/{ticket}/revoke", scope: account.Operate, name: "revokeTicket", tag: tag,
			summary: "Take a visitor's place away", more: "It is an entry of the transcript that everybody can see. Again is no error, and no second entry.",
			in: revokeInput{}, blank: true, example: `{"reason": "revoked-bot"}`, out: ticketJSON{}, key: keyKept, do: a.revoke,
		},
	}
}

func (a *API) showTicket(c *call) (reply, error) {
	r, err := a.Desk.Room(c, c.actor, c.param("slug"))
	if err != nil {
		return reply{}, err
	}
	t, err := c.ticketOf()
	if err != nil {
		return reply{}, err
	}
	return ticketIn(c, r, t)
}

func ticketIn(c *call, r *room.Room, t fairness.Ticket) (reply, error) {
	st, err := r.Place(c, t)
	if err != nil {
		return reply{}, err
	}
	return answer(newTicketJSON(r, st))
}

func (a *API) revoke(c *call) (reply, error) {
	in := revokeInput{fairness.Revoked}
	if len(c.body) > 0 {
		said, err := decode[revokeInput](c)
		if err != nil {
			return reply{}, err
		}
		if said.Reason != "" {
			in = said
		}
	}
	if _, err := a.Desk.Room(c, c.actor, c.param("slug")); err != nil {
		return reply{}, err
	}
	t, err := c.ticketOf()
	if err != nil {
		return reply{}, err
	}
	r, err := a.Desk.Revoke(c, c.actor, c.param("slug"), t, in.Reason)
	if err != nil {
		return reply{}, err
	}
	return ticketIn(c, r, t)
}

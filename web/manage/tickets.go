package manage

import (
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// ticketJSON is the state of a ticket.
type ticketJSON struct {
	Ticket     string          `json:"ticket"`
	Index      uint64          `json:"index" doc:"Index of its arrival in the transcript."`
	Joined     time.Time       `json:"joined"`
	Window     uint64          `json:"window"`
	WindowFrom time.Time       `json:"window_from"`
	WindowTo   time.Time       `json:"window_to"`
	Seq        uint32          `json:"seq" doc:"Number of the arrival within its window."`
	Lane       string          `json:"lane"`
	Status     fairness.Status `json:"status"`
	Reason     fairness.Reason `json:"reason,omitempty" doc:"Reason for which it was skipped."`
	Position   *uint64         `json:"position" doc:"Null until drawn."`
	Ahead      aheadJSON       `json:"ahead" doc:"Minimum and maximum number of uncalled places ahead of it."`
	ETA        *spanJSON       `json:"eta" doc:"Expected time of the call at the current outflow; null: unknown."`
	LeftMS     *int64          `json:"left_ms,omitempty" doc:"Time left to claim, if called."`
	Settled    *time.Time      `json:"settled,omitempty" doc:"Time at which it was admitted or skipped."`
	SettledAt  *uint64         `json:"settled_index,omitempty" doc:"Index of the entry that settled it."`
}

type aheadJSON struct {
	Min uint64 `json:"min"`
	Max uint64 `json:"max"`
}

type spanJSON struct {
	Earliest time.Time  `json:"earliest"`
	Latest   *time.Time `json:"latest" doc:"Null while visitors can still join the window."`
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

// timeOf converts a time of the transcript.
func timeOf(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }

// revokeInput is the reason for revoking a ticket.
type revokeInput struct {
	Reason fairness.Reason `json:"reason" enum:"revoked,revoked-bot,revoked-duplicate,revoked-fraud,revoked-request" doc:"Class of the reason, which is recorded in the transcript. Default: revoked, any other reason."`
}

func (a *API) ticketRoutes() []route {
	const tag = "tickets"
	return []route{
		{
			method: http.MethodGet, path: "rooms/{slug}/tickets/{ticket}", scope: account.Read, name: "showTicket", tag: tag,
			summary: "Show the state of a ticket", out: ticketJSON{}, do: a.showTicket,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/tickets/{ticket}/revoke", scope: account.Operate, name: "revokeTicket", tag: tag,
			summary: "Revoke a ticket", more: "It is recorded in the public transcript. Revoking a ticket again succeeds without a second entry.",
			in: revokeInput{}, blank: true, example: `{"reason": "revoked-bot"}`, out: ticketJSON{}, key: keyKept, do: a.revoke,
		},
	}
}

func (a *API) showTicket(c *call) (reply, error) {
	r, err := a.Control.Room(c, c.actor, c.param("slug"))
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
	if _, err := a.Control.Room(c, c.actor, c.param("slug")); err != nil {
		return reply{}, err
	}
	t, err := c.ticketOf()
	if err != nil {
		return reply{}, err
	}
	r, err := a.Control.Revoke(c, c.actor, c.param("slug"), t, in.Reason)
	if err != nil {
		return reply{}, err
	}
	return ticketIn(c, r, t)
}

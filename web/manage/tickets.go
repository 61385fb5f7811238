package manage

import (
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
)

func newTicket(r *room.Room, st fairness.Standing) wire.Ticket {
	out := wire.Ticket{
		Ticket: st.Ticket.String(), Index: uint64(st.Index), Joined: timeOf(st.Joined),
		Window: uint64(st.Window.Index), WindowFrom: timeOf(st.Window.From), WindowTo: timeOf(st.Window.To),
		Seq: st.Seq, Lane: string(st.Lane), Seats: st.Seats, Status: st.Status,
		Ahead: wire.Ahead{Min: st.AheadMin, Max: st.AheadMax},
	}
	if st.Position > 0 {
		position := uint64(st.Position)
		out.Position = &position
	}
	if span, ok := r.Snapshot().Expected(st, r.Now()); ok {
		out.ETA = &wire.Span{Earliest: span.Earliest.UTC()}
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
	default:
	}
	return out
}

// timeOf converts a time of the transcript.
func timeOf(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }

// tickets serves single tickets.
type tickets struct{ control *control.Rooms }

func (a tickets) routes() []route {
	const tag = "tickets"
	return []route{
		{
			method: http.MethodGet, path: "rooms/{slug}/tickets/{ticket}", scope: account.Read, name: "showTicket",
			tag:     tag,
			summary: "Show the state of a ticket", out: wire.Ticket{}, do: a.showTicket,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/tickets/{ticket}/revoke", scope: account.Operate,
			name: "revokeTicket", tag: tag,
			summary: "Revoke a ticket",
			more:    "It is recorded in the public transcript. Revoking a ticket again succeeds without a second entry.",
			in:      wire.RevokeInput{}, blank: true, example: `{"reason": "revoked-bot"}`, out: wire.Ticket{},
			key: keyKept,
			do:  a.revoke,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/tickets/{ticket}/restore", scope: account.Operate,
			name: "restoreTicket", tag: tag,
			summary: "Give a revoked ticket its place back",
			more: "It is recorded in the public transcript, and possible once per ticket. If the line has passed the place, the " +
				"ticket is called at once: that needs outflow and seats, and the room must not be paused.",
			out: wire.Ticket{}, key: keyKept, do: a.restore,
		},
	}
}

func (a tickets) showTicket(c *call) (reply, error) {
	r, err := a.control.Room(c, c.actor, c.param("slug"))
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
	return answer(newTicket(r, st))
}

func (a tickets) restore(c *call) (reply, error) {
	if _, err := a.control.Room(c, c.actor, c.param("slug")); err != nil {
		return reply{}, err
	}
	t, err := c.ticketOf()
	if err != nil {
		return reply{}, err
	}
	r, err := a.control.Restore(c, c.actor, c.param("slug"), t)
	if err != nil {
		return reply{}, err
	}
	return ticketIn(c, r, t)
}

func (a tickets) revoke(c *call) (reply, error) {
	in := wire.RevokeInput{Reason: fairness.Revoked}
	if len(c.body) > 0 {
		said, err := decode[wire.RevokeInput](c)
		if err != nil {
			return reply{}, err
		}
		if said.Reason != "" {
			in = said
		}
	}
	if _, err := a.control.Room(c, c.actor, c.param("slug")); err != nil {
		return reply{}, err
	}
	t, err := c.ticketOf()
	if err != nil {
		return reply{}, err
	}
	r, err := a.control.Revoke(c, c.actor, c.param("slug"), t, in.Reason)
	if err != nil {
		return reply{}, err
	}
	return ticketIn(c, r, t)
}

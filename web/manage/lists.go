package manage

import (
	"fmt"
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/revocation"
)

// lists serves operations on many tickets.
type lists struct{ control *control.Rooms }

// maxList is the maximum size of a request that names as many nullifiers as it may.
const maxList = 1 << 20

func (a lists) routes() []route {
	const tag = "tickets"
	return []route{
		{
			method: http.MethodPost, path: "rooms/{slug}/revocations", scope: account.Operate, name: "revokeTickets",
			tag:     tag,
			summary: "Revoke many tickets",
			more: "Names tickets, or a method whose credentials failed later: all of them, or those with certain nullifiers. All " +
				"of the tickets that wait or are called are revoked, or none. Each is recorded in the public transcript.",
			in: wire.RevocationsInput{}, most: maxList,
			example: `{"tickets": ["cda3f665-387e-8031-a3d9-8534adbd7fa3"], "reason": "revoked-bot", "check": true}`,
			out:     wire.Revocations{}, key: keyKept, do: a.revoke,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/restorations", scope: account.Operate, name: "restoreTickets",
			tag:     tag,
			summary: "Give many revoked tickets their places back",
			more: "Each is recorded in the public transcript, and possible once per ticket. Tickets whose places the line has passed " +
				"are called at once, for as long as outflow and seats allow; the others wait for the next request.",
			in: wire.RestorationsInput{}, most: maxList,
			example: `{"tickets": ["cda3f665-387e-8031-a3d9-8534adbd7fa3"], "check": true}`,
			out:     wire.Restorations{}, key: keyKept, do: a.restore,
		},
	}
}

// selectionOf reads which tickets a request names.
func selectionOf(in wire.Tickets, unknown bool) (s revocation.Selection, err error) {
	s = revocation.Selection{SkipUnknown: unknown, Method: in.Method, From: in.From}
	var problems invalid.List
	problems.Check(len(in.Tickets) == 0 || in.Method == "", "tickets", "cannot be given with a method")
	problems.Check(in.Method != "" || len(in.Nullifiers) == 0 && !in.All, "method", "must be given with nullifiers or all")
	problems.Check(in.Method == "" || len(in.Nullifiers) > 0 != in.All, "method", "must be given with either nullifiers or all")
	problems.Check(in.All || in.From == 0, "from", "can only be given with all")
	for i, text := range in.Tickets {
		t, err := fairness.ParseTicket(text)
		if s.Tickets = append(s.Tickets, t); err != nil && len(problems) < invalid.Max {
			problems.Add(fmt.Sprintf("tickets[%d]", i), "must be a lower-case UUID of version 8")
		}
	}
	for i, text := range in.Nullifiers {
		n, err := revocation.ParseNullifier(text)
		if s.Nullifiers = append(s.Nullifiers, n); err != nil && len(problems) < invalid.Max {
			problems.Add(fmt.Sprintf("nullifiers[%d]", i), err.Error())
		}
	}
	return s, problems.Err()
}

func newTally(t revocation.Tally) wire.TicketTally {
	out := wire.TicketTally{
		Waiting: t.Waiting, Called: t.Called, Drawing: t.Drawing, Admitted: t.Admitted, Gone: t.Gone, Revoked: t.Revoked,
		Again: t.Again, Passed: t.Passed, Unknown: t.Unknown, Repeated: t.Repeated,
	}
	if t.Next > 0 {
		out.Next = &t.Next
	}
	return out
}

func (a lists) revoke(c *call) (reply, error) {
	in, err := decode[wire.RevocationsInput](c)
	if err != nil {
		return reply{}, err
	}
	if in.Reason == "" {
		in.Reason = fairness.Revoked
	}
	s, err := selectionOf(in.Tickets, in.SkipUnknown)
	if err != nil {
		return reply{}, err
	}
	if in.Check {
		tally, err := a.control.Lists.Check(c, c.actor, c.param("slug"), s, 0)
		if err != nil {
			return reply{}, err
		}
		return answer(wire.Revocations{Tally: newTally(tally)})
	}
	done, err := a.control.Lists.Revoke(c, c.actor, c.param("slug"), s, in.Reason)
	if err != nil {
		return reply{}, err
	}
	out := wire.Revocations{Tally: newTally(done.Tally), Done: done.Length}
	if done.Length > 0 {
		out.First = &done.First
	}
	return answer(out)
}

func (a lists) restore(c *call) (reply, error) {
	in, err := decode[wire.RestorationsInput](c)
	if err != nil {
		return reply{}, err
	}
	s, err := selectionOf(in.Tickets, in.SkipUnknown)
	if err != nil {
		return reply{}, err
	}
	if in.Check {
		tally, err := a.control.Lists.Check(c, c.actor, c.param("slug"), s, in.Since)
		if err != nil {
			return reply{}, err
		}
		return answer(wire.Restorations{Tally: newTally(tally)})
	}
	done, err := a.control.Lists.Restore(c, c.actor, c.param("slug"), s, in.Since)
	if err != nil {
		return reply{}, err
	}
	return answer(wire.Restorations{Tally: newTally(done.Tally), Done: done.Length, Called: done.Called, Later: done.Later})
}

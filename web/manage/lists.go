package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
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
			example: `{"tickets": ["cda3f665-387e-8031-a3d9-8534adbd7fa3"], "reason": "revoked-bot", "check": true, "skip_unknown": true}`,
			out:     wire.Revocations{}, key: keyKept, do: a.revoke,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/restorations", scope: account.Operate, name: "restoreTickets",
			tag:     tag,
			summary: "Give many revoked tickets their places back",
			more: "Each is recorded in the public transcript, and possible once per ticket. Tickets whose places the line has passed " +
				"are called at once, for as long as outflow and seats allow; the others wait for the next request.",
			in: wire.RestorationsInput{}, most: maxList,
			example: `{"tickets": ["cda3f665-387e-8031-a3d9-8534adbd7fa3"], "check": true, "skip_unknown": true}`,
			out:     wire.Restorations{}, key: keyKept, do: a.restore,
		},
	}
}

func (a lists) revoke(c *call) (reply, error) {
	in, err := decode[wire.RevocationsInput](c)
	if err != nil {
		return reply{}, err
	}
	if in.Reason == "" {
		in.Reason = fairness.Revoked
	}
	s, err := in.Selection(in.SkipUnknown)
	if err != nil {
		return reply{}, err
	}
	if in.Check {
		tally, err := a.control.Lists.Check(c, c.actor, c.param("slug"), s, 0)
		if err != nil {
			return reply{}, err
		}
		return answer(wire.Revocations{Tally: wire.NewTicketTally(tally)})
	}
	done, err := a.control.Lists.Revoke(c, c.actor, c.param("slug"), s, in.Reason)
	if err != nil {
		return reply{}, err
	}
	out := wire.Revocations{Tally: wire.NewTicketTally(done.Tally), Done: done.Length}
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
	s, err := in.Selection(in.SkipUnknown)
	if err != nil {
		return reply{}, err
	}
	if in.Check {
		tally, err := a.control.Lists.Check(c, c.actor, c.param("slug"), s, in.Since)
		if err != nil {
			return reply{}, err
		}
		return answer(wire.Restorations{Tally: wire.NewTicketTally(tally)})
	}
	done, err := a.control.Lists.Restore(c, c.actor, c.param("slug"), s, in.Since)
	if err != nil {
		return reply{}, err
	}
	return answer(wire.Restorations{Tally: wire.NewTicketTally(done.Tally), Done: done.Length, Called: done.Called,
		Later: done.Later})
}

package manage

import (
	"context"
	"net/http"
	"strconv"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
)

// controls serves what changes how a room calls its visitors.
type controls struct{ control *control.Rooms }

func (a controls) routes() []route {
	const tag = "control"
	return []route{
		a.onRoom("pause", "pauseRoom", "Stop calling visitors; they can still join, and called visitors can still claim", "The claim time stands still. If claims are frozen, this unfreezes them. The pause is an entry in the transcript.", a.control.Pause),
		a.onRoom("freeze-claims", "freezeClaims", "Stop calling visitors, and freeze the claims of called ones", "The claim time stands still. The freeze is an entry in the transcript, distinct from that of a pause.", a.control.FreezeClaims),
		a.onRoom("resume", "resumeRoom", "End a pause or a freeze of claims", "", a.control.Resume),
		a.onRoom("end", "endRoom", "End a room for good",
			"No visitor can join or be called any more, and the transcript gets no more entries.", a.control.End),
		{
			method: http.MethodPost, path: "rooms/{slug}/tell", scope: account.Operate, name: "tell", tag: tag,
			summary: "State in the transcript how many seats are left, or what they cost",
			more:    "The statement is dated, signed and public for good. It changes nothing, and an audit lists statements that contradict each other.",
			in:      wire.TellInput{}, example: `{"subject": "stock", "category": "stalls", "left": 120}`,
			out: wire.Room{}, key: keyKept, tagged: true, do: a.tell,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/rotate-keys", scope: account.Operate, name: "rotateKeys",
			tag:     tag,
			summary: "Create a new signing key for passes",
			more:    "It signs passes from now on; the old key stays in jwks.json until its last pass has expired.",
			out:     wire.Keys{}, key: keyKept, do: a.rotateKeys,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/calls", scope: account.Pull, name: "showCalls", tag: tag,
			summary: "Show whether the clock or a backend calls visitors", out: wire.Calls{},
			do: func(c *call) (reply, error) { return callsOf(a.control.Puller(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPut, path: "rooms/{slug}/calls", scope: account.Pull, name: "setCalls", tag: tag,
			summary: "Set whether the clock or a backend calls visitors", in: wire.Calls{}, example: `{"by": "pull"}`,
			out: wire.Calls{}, do: a.setCalls,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/pull", scope: account.Pull, name: "pull", tag: tag,
			summary: "Call visitors now",
			more:    "Calls up to n visitors, as far as they are drawn and `max_active` and the outflow allow. A pull without an answer may have been carried out: send it with an Idempotency-Key.",
			query: []parameter{{name: "n", about: "Maximum number of visitors to call.",
				schema: schema{"type": "integer", "minimum": 1, "maximum": room.MaxPull}, needed: true}},
			out: wire.Pulled{}, key: keyKept, do: a.pull,
		},
	}
}

// onRoom returns the route of an operation on a room as a whole.
func (a controls) onRoom(verb, name, summary, more string,
	do func(context.Context, account.Actor, string) (*room.Room, error)) route {
	return route{
		method: http.MethodPost, path: "rooms/{slug}/" + verb, scope: account.Operate, name: name, tag: "control",
		summary: summary, more: more, out: wire.Room{}, key: keyKept, tagged: true,
		do: func(c *call) (reply, error) { return shown(do(c, c.actor, c.param("slug"))) },
	}
}

func (a controls) rotateKeys(c *call) (reply, error) {
	r, id, err := a.control.RotateKeys(c, c.actor, c.param("slug"))
	if err != nil {
		return reply{}, err
	}
	return answer(wire.Keys{ID: id, Keys: r.Sessions.PublicKeys()})
}

func (a controls) tell(c *call) (reply, error) {
	in, err := decode[wire.TellInput](c)
	if err != nil {
		return reply{}, err
	}
	return shown(a.control.Tell(c, c.actor, c.param("slug"), fairness.Tell{Subject: in.Subject,
		Name: fairness.Lane(in.Category), Count: in.Left, Min: in.Min, Max: in.Max, Currency: in.Currency}))
}

func callsOf(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	by := wire.ByRate
	if r.IsPull() {
		by = wire.ByPull
	}
	return answer(wire.Calls{By: by})
}

func (a controls) setCalls(c *call) (reply, error) {
	in, err := decode[wire.Calls](c)
	if err != nil {
		return reply{}, err
	}
	if in.By != wire.ByRate && in.By != wire.ByPull {
		return reply{}, invalid.Field("by", `must be "rate" or "pull"`)
	}
	return callsOf(a.control.SetPull(c, c.actor, c.param("slug"), in.By == wire.ByPull))
}

func (a controls) pull(c *call) (reply, error) {
	n, err := strconv.ParseUint(c.query("n"), 10, 32)
	if err != nil || n < 1 || n > room.MaxPull {
		return reply{}, invalid.Field("n",
			"must be a query parameter, a whole number from 1 to "+strconv.Itoa(room.MaxPull))
	}
	p, err := a.control.Pull(c, c.actor, c.param("slug"), n)
	if err != nil {
		return reply{}, err
	}
	return answer(wire.Pulled{Called: p.Called, UpTo: uint64(p.UpTo), Waiting: p.Waiting, Active: p.Active})
}

package manage

import (
	"context"
	"net/http"
	"strconv"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// keysJSON are the keys of a room's passes.
type keysJSON struct {
	ID   string         `json:"kid" doc:"Of the key that signs from now on."`
	Keys []room.PassKey `json:"keys" doc:"All that passes are out of, newest first."`
}

// callsJSON says who calls the people of a room.
type callsJSON struct {
	By string `json:"by" enum:"rate,pull" need:"true" doc:"rate: the clock, at the pace of the outflow; pull: a backend that asks for people, up to that pace."`
}

// Who calls.
const (
	ByRate = "rate" // the clock, at the pace of the outflow
	ByPull = "pull" // a backend that asks for people, up to that pace
)

// pulledJSON is what came of a pull.
type pulledJSON struct {
	Called  uint64 `json:"called" doc:"People, by this pull."`
	UpTo    uint64 `json:"up_to" doc:"The serving pointer now."`
	Waiting uint64 `json:"waiting" doc:"Called, not admitted yet and expected."`
	Active  uint64 `json:"active" doc:"These, and those at the site."`
}

func (a *API) controlRoutes() []route {
	const tag = "control"
	return []route{
		a.control("pause", "pauseRoom", "Stop calling people; they can still join, and called people can still go in", "The time to claim a call stands still. In a held room this lets called people in again. The pause is an entry of the transcript.", a.Desk.Pause),
		a.control("hold", "holdRoom", "Stop calling people and letting called people in", "The time to claim a call stands still. The hold is an entry of the transcript, and another one than a pause.", a.Desk.Hold),
		a.control("resume", "resumeRoom", "End a pause or a hold", "", a.Desk.Resume),
		a.control("end", "endRoom", "End a room for good", "Nobody can join any more, nobody is called, and nothing can follow in the transcript.", a.Desk.End),
		{
			method: http.MethodPost, path: "rooms/{slug}/rotate-keys", scope: account.Operate, name: "rotateKeys", tag: tag,
			summary: "Make a new key for passes",
			more:    "It signs from now on; the old one stays in jwks.json until its last pass has expired.",
			out:     keysJSON{}, key: keyKept, do: a.rotateKeys,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/calls", scope: account.Pull, name: "showCalls", tag: tag,
			summary: "Show who calls people", out: callsJSON{},
			do: func(c *call) (reply, error) { return callsOf(a.Desk.Puller(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPut, path: "rooms/{slug}/calls", scope: account.Pull, name: "setCalls", tag: tag,
			summary: "Say who calls people", in: callsJSON{}, example: `{"by": "pull"}`, out: callsJSON{}, do: a.setCalls,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/pull", scope: account.Pull, name: "pull", tag: tag,
			summary: "Call people now",
			more:    "As many as are wanted, or as are drawn, as `max_active` leaves and as the outflow has credit for. A pull without an answer may have happened: send it with an Idempotency-Key.",
			query:   []parameter{{name: "n", about: "How many.", schema: schema{"type": "integer", "minimum": 1, "maximum": room.MaxPull}, needed: true}},
			out:     pulledJSON{}, key: keyKept, do: a.pull,
		},
	}
}

// control is the route of something that is done to a room as a whole.
func (a *API) control(verb, name, summary, more string, do func(context.Context, account.Actor, string) (*room.Room, error)) route {
	return route{
		method: http.MethodPost, path: "rooms/{slug}/" + verb, scope: account.Operate, name: name, tag: "control",
		summary: summary, more: more, out: roomJSON{}, key: keyKept, tagged: true,
		do: func(c *call) (reply, error) { return shown(do(c, c.actor, c.param("slug"))) },
	}
}

func (a *API) rotateKeys(c *call) (reply, error) {
	r, id, err := a.Desk.RotateKeys(c, c.actor, c.param("slug"))
	if err != nil {
		return reply{}, err
	}
	return answer(keysJSON{id, r.PassKeys()})
}

func callsOf(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	by := ByRate
	if r.IsPull() {
		by = ByPull
	}
	return answer(callsJSON{by})
}

func (a *API) setCalls(c *call) (reply, error) {
	in, err := decode[callsJSON](c)
	if err != nil {
		return reply{}, err
	}
	if in.By != ByRate && in.By != ByPull {
		return reply{}, invalid("by", `must be "rate" or "pull"`)
	}
	return callsOf(a.Desk.SetPull(c, c.actor, c.param("slug"), in.By == ByPull))
}

func (a *API) pull(c *call) (reply, error) {
	n, err := strconv.ParseUint(c.query("n"), 10, 32)
	if err != nil || n < 1 || n > room.MaxPull {
		return reply{}, invalid("n", "must be in the query, a whole number from 1 to "+strconv.Itoa(room.MaxPull))
	}
	p, err := a.Desk.Pull(c, c.actor, c.param("slug"), n)
	if err != nil {
		return reply{}, err
	}
	return answer(pulledJSON{p.Called, uint64(p.UpTo), p.Waiting, p.Active})
}

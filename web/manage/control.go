package manage

import (
	"context"
	"net/http"
	"strconv"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// keysJSON lists the keys of a room's passes.
type keysJSON struct {
	ID   string         `json:"kid" doc:"ID of the key that signs from now on."`
	Keys []room.PassKey `json:"keys" doc:"Keys of all valid passes, newest first."`
}

// callsJSON sets what calls a room's visitors.
type callsJSON struct {
	By string `json:"by" enum:"rate,pull" need:"true" doc:"rate: the room's clock calls visitors at the pace of the outflow; pull: a backend calls them, up to that pace."`
}

// Values of callsJSON.By.
const (
	ByRate = "rate" // the room's clock, at the pace of the outflow
	ByPull = "pull" // a backend, up to that pace
)

// pulledJSON is the result of a pull.
type pulledJSON struct {
	Called  uint64 `json:"called" doc:"Number of visitors called by this pull."`
	UpTo    uint64 `json:"up_to" doc:"Position up to which visitors are called now."`
	Waiting uint64 `json:"waiting" doc:"Visitors who are called, can still claim, and have not yet."`
	Active  uint64 `json:"active" doc:"Waiting visitors, plus those at the site."`
}

func (a *API) controlRoutes() []route {
	const tag = "control"
	return []route{
		a.control("pause", "pauseRoom", "Stop calling people; they can still join, and called people can still go in", "The time to claim a call stands still. In a held room this lets called people in again. The pause is an entry of the transcript.", a.Control.Pause),
		a.control("freeze-claims", "freezeClaims", "Stop calling people and letting called people in", "The time to claim a call stands still. The freeze is an entry of the transcript, and another one than a pause.", a.Control.FreezeClaims),
		a.control("resume", "resumeRoom", "End a pause or a freeze of claims", "", a.Control.Resume),
		a.control("end", "endRoom", "End a room for good", "Nobody can join any more, nobody is called, and nothing can follow in the transcript.", a.Control.End),
		{
			method: http.MethodPost, path: "rooms/{slug}/rotate-keys", scope: account.Operate, name: "rotateKeys", tag: tag,
			summary: "Create a new signing key for passes",
			more:    "It signs from now on; the old one stays in jwks.json until its last pass has expired.",
			out:     keysJSON{}, key: keyKept, do: a.rotateKeys,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/calls", scope: account.Pull, name: "showCalls", tag: tag,
			summary: "Show whether the clock or a backend calls visitors", out: callsJSON{},
			do: func(c *call) (reply, error) { return callsOf(a.Control.Puller(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPut, path: "rooms/{slug}/calls", scope: account.Pull, name: "setCalls", tag: tag,
			summary: "Set whether the clock or a backend calls visitors", in: callsJSON{}, example: `{"by": "pull"}`, out: callsJSON{}, do: a.setCalls,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/pull", scope: account.Pull, name: "pull", tag: tag,
			summary: "Call visitors now",
			more:    "Calls up to n visitors, as far as they are drawn and `max_active` and the outflow allow. A pull without an answer may have happened: send it with an Idempotency-Key.",
			query:   []parameter{{name: "n", about: "Maximum number of visitors to call.", schema: schema{"type": "integer", "minimum": 1, "maximum": room.MaxPull}, needed: true}},
			out:     pulledJSON{}, key: keyKept, do: a.pull,
		},
	}
}

// control returns the route of an operation on a room as a whole.
func (a *API) control(verb, name, summary, more string, do func(context.Context, account.Actor, string) (*room.Room, error)) route {
	return route{
		method: http.MethodPost, path: "rooms/{slug}/" + verb, scope: account.Operate, name: name, tag: "control",
		summary: summary, more: more, out: roomJSON{}, key: keyKept, tagged: true,
		do: func(c *call) (reply, error) { return shown(do(c, c.actor, c.param("slug"))) },
	}
}

func (a *API) rotateKeys(c *call) (reply, error) {
	r, id, err := a.Control.RotateKeys(c, c.actor, c.param("slug"))
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
		return reply{}, invalid.Field("by", `must be "rate" or "pull"`)
	}
	return callsOf(a.Control.SetPull(c, c.actor, c.param("slug"), in.By == ByPull))
}

func (a *API) pull(c *call) (reply, error) {
	n, err := strconv.ParseUint(c.query("n"), 10, 32)
	if err != nil || n < 1 || n > room.MaxPull {
		return reply{}, invalid.Field("n", "must be a query parameter, a whole number from 1 to "+strconv.Itoa(room.MaxPull))
	}
	p, err := a.Control.Pull(c, c.actor, c.param("slug"), n)
	if err != nil {
		return reply{}, err
	}
	return answer(pulledJSON{p.Called, uint64(p.UpTo), p.Waiting, p.Active})
}

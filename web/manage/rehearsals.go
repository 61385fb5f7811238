package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/rehearse"
)

// rehearsalJSON is the state of a rehearsal. Numbers count simulated visitors.
type rehearsalJSON struct {
	Slug     string     `json:"slug" doc:"Slug of the copy."`
	Title    string     `json:"title"`
	URL      string     `json:"url" doc:"Address at which people can join it, too."`
	Of       *uuid.UUID `json:"of" doc:"ID of the room or draft that it rehearses."`
	Started  time.Time  `json:"started"`
	Opens    time.Time  `json:"opens"`
	Starts   time.Time  `json:"starts"`
	Ends     time.Time  `json:"ends" doc:"Latest end, or the actual end once it is over."`
	Over     bool       `json:"over"`
	Visitors int        `json:"visitors"`
	Joined   int        `json:"joined"`
	Called   int        `json:"called"`
	Admitted int        `json:"admitted"`
	Missed   int        `json:"missed" doc:"Number of visitors that were called but did not claim."`
	Left     int        `json:"left"`
	Failed   int        `json:"failed" doc:"Number of visitors that could not join."`
}

func newRehearsalJSON(r rehearse.Rehearsal) rehearsalJSON {
	return rehearsalJSON{
		Slug: r.Slug, Title: r.Title, URL: r.URL, Of: r.Of, Started: r.Started.UTC(), Opens: r.Opens.UTC(), Starts: r.Starts.UTC(), Ends: r.Ends.UTC(), Over: r.Over,
		Visitors: r.Visitors, Joined: r.Joined, Called: r.Called, Admitted: r.Admitted, Missed: r.Missed, Left: r.Left, Failed: r.Failed,
	}
}

type rehearsalList struct {
	Rehearsals []rehearsalJSON `json:"rehearsals"`
}

type rehearsalInput struct {
	Visitors int `json:"visitors" doc:"Number of simulated visitors, from 10 to 2000. Default: 200."`
}

func (a *API) rehearsalRoutes() []route {
	const tag = "rehearsals"
	start := route{
		method: http.MethodPost, path: "rooms/{slug}/rehearsals", scope: account.Operate, name: "rehearseRoom", tag: tag,
		summary: "Rehearse a room", more: "A copy of it opens at once, with hours shortened to minutes, and simulated visitors join it. One rehearsal runs at a time.",
		in: rehearsalInput{}, blank: true, example: `{"visitors": 10}`, out: rehearsalJSON{}, status: http.StatusCreated, key: keyKept, do: a.rehearseRoom,
	}
	draft := start
	draft.path, draft.name, draft.summary, draft.do = "drafts/{draft}/rehearsals", "rehearseDraft", "Rehearse a draft", a.rehearseDraft
	return []route{
		{
			method: http.MethodGet, path: "rehearsals", scope: account.Read, name: "listRehearsals", tag: tag,
			summary: "List the rehearsals of this node, newest first", out: rehearsalList{}, do: a.listRehearsals,
		},
		start, draft,
		{
			method: http.MethodPost, path: "rehearsals/{rehearsal}/stop", scope: account.Operate, name: "stopRehearsal", tag: tag,
			summary: "End a rehearsal and its room", status: http.StatusNoContent,
			do: func(c *call) (reply, error) {
				return reply{}, a.Control.StopRehearsal(c, c.actor, c.param("rehearsal"))
			},
		},
	}
}

func (a *API) listRehearsals(c *call) (reply, error) {
	list, err := a.Control.ListRehearsals(c.actor)
	if err != nil {
		return reply{}, err
	}
	out := rehearsalList{Rehearsals: make([]rehearsalJSON, len(list))}
	for i, r := range list {
		out.Rehearsals[i] = newRehearsalJSON(r)
	}
	return answer(out)
}

// crowd parses the crowd of a rehearsal.
func (c *call) crowd() (rehearse.Plan, error) {
	if len(c.body) == 0 {
		return rehearse.Plan{}, nil
	}
	in, err := decode[rehearsalInput](c)
	return rehearse.Plan{Visitors: in.Visitors}, err
}

func (a *API) rehearseRoom(c *call) (reply, error) {
	plan, err := c.crowd()
	if err != nil {
		return reply{}, err
	}
	return begun(a.Control.Rehearse(c, c.actor, c.param("slug"), plan))
}

func (a *API) rehearseDraft(c *call) (reply, error) {
	d, err := a.draft(c)
	if err != nil {
		return reply{}, err
	}
	plan, err := c.crowd()
	if err != nil {
		return reply{}, err
	}
	return begun(a.Control.RehearseDraft(c, c.actor, d.ID, plan))
}

func begun(r rehearse.Rehearsal, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return answer(newRehearsalJSON(r))
}

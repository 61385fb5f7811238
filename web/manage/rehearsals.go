package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/internal/wire"
)

func newRehearsal(r rehearse.Rehearsal) wire.Rehearsal {
	out := wire.Rehearsal{
		Slug: r.Slug, Title: r.Title, URL: r.URL, Of: r.Of, Started: r.Started.UTC(), Opens: r.Opens.UTC(),
		Starts: r.Starts.UTC(), Ends: r.Ends.UTC(), Over: r.Over,
		Visitors: r.Visitors, Joined: r.Joined, Called: r.Called, Admitted: r.Admitted, Missed: r.Missed, Left: r.Left,
		Failed: r.Failed,
	}
	if script := r.Script; script.Tickets > 0 {
		out.Script = &wire.ScriptResult{
			Tickets: script.Tickets, Networks: script.Networks, Lane: string(script.Lane),
			Needs: append([]string{}, script.Needs...), Holds: script.Holds, Joined: script.Joined,
			First: script.First, Drawn: script.Drawn, Ahead: script.Ahead,
			Predicted: script.Predicted, Refused: wire.Refused{
				Account: script.Refused[rehearse.ByAccount], Limit: script.Refused[rehearse.ByLimit],
				Network: script.Refused[rehearse.ByNetwork], Late: script.Refused[rehearse.TooLate],
			},
		}
	}
	return out
}

// rehearsals serves rehearsals of rooms and drafts.
type rehearsals struct{ control *control.Rooms }

func (a rehearsals) routes() []route {
	const tag = "rehearsals"
	start := route{
		method: http.MethodPost, path: "rooms/{slug}/rehearsals", scope: account.Operate, name: "rehearseRoom",
		tag:     tag,
		summary: "Rehearse a room",
		more: "A copy of it opens at once, with hours shortened to minutes, and simulated visitors join it, with what its joins need. " +
			"A script can ask for many tickets, too. One rehearsal runs at a time.",
		in: wire.RehearsalInput{}, blank: true, example: `{"visitors": 10}`, out: wire.Rehearsal{},
		status: http.StatusCreated, key: keyKept, do: a.rehearseRoom,
	}
	draft := start
	draft.path, draft.name, draft.summary, draft.do = "drafts/{draft}/rehearsals", "rehearseDraft", "Rehearse a draft",
		a.rehearseDraft
	return []route{
		{
			method: http.MethodGet, path: "rehearsals", scope: account.Read, name: "listRehearsals", tag: tag,
			summary: "List the rehearsals of this node, newest first", out: wire.RehearsalList{}, do: a.listRehearsals,
		},
		start, draft,
		{
			method: http.MethodPost, path: "rehearsals/{rehearsal}/stop", scope: account.Operate, name: "stopRehearsal",
			tag:     tag,
			summary: "End a rehearsal and its room", status: http.StatusNoContent,
			do: func(c *call) (reply, error) {
				return reply{}, a.control.StopRehearsal(c, c.actor, c.param("rehearsal"))
			},
		},
	}
}

func (a rehearsals) listRehearsals(c *call) (reply, error) {
	list, err := a.control.ListRehearsals(c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.RehearsalList{Rehearsals: make([]wire.Rehearsal, len(list))}
	for i, r := range list {
		out.Rehearsals[i] = newRehearsal(r)
	}
	return answer(out)
}

// crowd parses the crowd of a rehearsal.
func (c *call) crowd() (rehearse.Plan, error) {
	if len(c.body) == 0 {
		return rehearse.Plan{}, nil
	}
	in, err := decode[wire.RehearsalInput](c)
	return rehearse.Plan{
		Visitors: in.Visitors, PerMinute: in.PerMinute,
		Script: rehearse.Script{Tickets: in.Script, Networks: in.Networks},
	}, err
}

func (a rehearsals) rehearseRoom(c *call) (reply, error) {
	plan, err := c.crowd()
	if err != nil {
		return reply{}, err
	}
	return begun(a.control.Rehearse(c, c.actor, c.param("slug"), plan))
}

func (a rehearsals) rehearseDraft(c *call) (reply, error) {
	d, err := draftOf(c, a.control)
	if err != nil {
		return reply{}, err
	}
	plan, err := c.crowd()
	if err != nil {
		return reply{}, err
	}
	return begun(a.control.RehearseDraft(c, c.actor, d.ID, plan))
}

func begun(r rehearse.Rehearsal, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return answer(newRehearsal(r))
}

package manage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
)

// draftJSON is an unpublished room.
type draftJSON struct {
	ID       uuid.UUID       `json:"id"`
	Slug     string          `json:"slug" doc:"Empty if the configuration has none."`
	Title    string          `json:"title"`
	Host     string          `json:"host" doc:"Custom host to publish it under; empty: the server's own host."`
	Config   json.RawMessage `json:"config" doc:"Configuration of a room, complete or not."`
	Version  int64           `json:"version" doc:"Version number, incremented with each change."`
	Created  time.Time       `json:"created"`
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Problems []draftProblem  `json:"problems" doc:"Problems that prevent publishing it now."`
}

type draftProblem struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func newDraftJSON(d control.Draft) draftJSON {
	out := draftJSON{
		ID: d.ID, Slug: d.Slug, Title: d.Title, Host: d.Host, Config: d.Draft.Config, Version: d.Version,
		Created: d.Created.UTC(), Changed: d.Changed.UTC(), By: d.By, Problems: []draftProblem{},
	}
	for _, p := range d.Problems {
		out.Problems = append(out.Problems, draftProblem(p))
	}
	return out
}

type draftList struct {
	Drafts []draftJSON `json:"drafts"`
}

// draftInput is stored as it is.
type draftInput struct {
	Host   string          `json:"host" doc:"Custom host to publish it under; empty: the server's own host."`
	Config json.RawMessage `json:"config" need:"true" doc:"Configuration of a room, complete or not: any JSON object."`
}

func (a *API) draftRoutes() []route {
	const tag = "drafts"
	const example = `{"config": {"slug": "autumn", "title": "Autumn sale", "outflow": {"per_minute": 200}}}`
	return []route{
		{
			method: http.MethodGet, path: "drafts", scope: account.Read, name: "listDrafts", tag: tag,
			summary: "List the drafts, latest change first", out: draftList{}, do: a.listDrafts,
		},
		{
			method: http.MethodPost, path: "drafts", scope: account.Operate, name: "createDraft", tag: tag,
			summary: "Create a draft", in: draftInput{}, example: example,
			out: draftJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createDraft,
		},
		{
			method: http.MethodGet, path: "drafts/{draft}", scope: account.Read, name: "showDraft", tag: tag,
			summary: "Show a draft", out: draftJSON{}, tagged: true, do: a.showDraft,
		},
		{
			method: http.MethodPut, path: "drafts/{draft}", scope: account.Operate, name: "changeDraft", tag: tag,
			summary: "Replace a draft", in: draftInput{}, example: example, out: draftJSON{}, tagged: true, matches: true, do: a.changeDraft,
		},
		{
			method: http.MethodDelete, path: "drafts/{draft}", scope: account.Operate, name: "deleteDraft", tag: tag,
			summary: "Delete a draft", status: http.StatusNoContent, do: a.deleteDraft,
		},
		{
			method: http.MethodPost, path: "drafts/{draft}/publish", scope: account.Operate, name: "publishDraft", tag: tag,
			summary: "Publish a draft as a room, and delete the draft", more: "The draft stays after any error.",
			out: roomJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, matches: true, do: a.publish,
		},
	}
}

func (a *API) listDrafts(c *call) (reply, error) {
	list, err := a.Control.Drafts(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := draftList{Drafts: make([]draftJSON, len(list))}
	for i, d := range list {
		out.Drafts[i] = newDraftJSON(d)
	}
	return answer(out)
}

func shownDraft(d control.Draft, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{body: newDraftJSON(d), etag: draftTag(d)}, nil
}

func (a *API) madeDraft(d control.Draft, err error) (reply, error) {
	out, err := shownDraft(d, err)
	out.location = a.location("drafts", d.ID.String())
	return out, err
}

func (a *API) createDraft(c *call) (reply, error) {
	in, err := decode[draftInput](c)
	if err != nil {
		return reply{}, err
	}
	return a.madeDraft(a.Control.SaveDraft(c, c.actor, uuid.Nil, 0, in.Host, in.Config))
}

// draft returns the draft in the path.
func (a *API) draft(c *call) (control.Draft, error) {
	id, err := c.id("draft")
	if err != nil {
		return control.Draft{}, control.ErrDraftUnknown
	}
	return a.Control.Draft(c, c.actor, id)
}

func (a *API) showDraft(c *call) (reply, error) { return shownDraft(a.draft(c)) }

// expectedVersion returns the version of a draft that a request expects: the current one, or one that
// cannot exist.
func (c *call) expectedVersion(d control.Draft) int64 {
	if condition, ok := c.ifMatch(); ok && !matches(condition, draftTag(d)) {
		return 0
	}
	return d.Version
}

func (a *API) changeDraft(c *call) (reply, error) {
	d, err := a.draft(c)
	if err != nil {
		return reply{}, err
	}
	in, err := decode[draftInput](c)
	if err != nil {
		return reply{}, err
	}
	return shownDraft(a.Control.SaveDraft(c, c.actor, d.ID, c.expectedVersion(d), in.Host, in.Config))
}

func (a *API) deleteDraft(c *call) (reply, error) {
	id, err := c.id("draft")
	if err != nil {
		return reply{}, control.ErrDraftUnknown
	}
	return reply{}, a.Control.DeleteDraft(c, c.actor, id)
}

func (a *API) publish(c *call) (reply, error) {
	d, err := a.draft(c)
	if err != nil {
		return reply{}, err
	}
	r, err := a.Control.Publish(c, c.actor, d.ID, c.expectedVersion(d))
	out, err := shown(r, err)
	if err == nil {
		out.location = a.location("rooms", r.Slug)
	}
	return out, err
}

package manage

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/wire"
)

func newDraft(d control.Draft) wire.Draft {
	out := wire.Draft{
		ID: d.ID, Slug: d.Slug, Title: d.Title, Host: d.Host, Config: d.Draft.Config, Version: d.Version,
		Created: d.Created.UTC(), Changed: d.Changed.UTC(), By: d.By, Problems: []wire.DraftProblem{},
	}
	for _, p := range d.Problems {
		out.Problems = append(out.Problems, wire.DraftProblem(p))
	}
	return out
}

// drafts serves drafts of rooms.
type drafts struct {
	control *control.Rooms
	links   links
}

func (a drafts) routes() []route {
	const tag = "drafts"
	const example = `{"config": {"slug": "autumn", "title": "Autumn sale", "outflow": {"per_minute": 200}}}`
	return []route{
		{
			method: http.MethodGet, path: "drafts", scope: account.Read, name: "listDrafts", tag: tag,
			summary: "List the drafts, latest change first", out: wire.DraftList{}, do: a.listDrafts,
		},
		{
			method: http.MethodPost, path: "drafts", scope: account.Operate, name: "createDraft", tag: tag,
			summary: "Create a draft", in: wire.DraftInput{}, example: example,
			out: wire.Draft{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createDraft,
		},
		{
			method: http.MethodGet, path: "drafts/{draft}", scope: account.Read, name: "showDraft", tag: tag,
			summary: "Show a draft", out: wire.Draft{}, tagged: true, do: a.showDraft,
		},
		{
			method: http.MethodPut, path: "drafts/{draft}", scope: account.Operate, name: "changeDraft", tag: tag,
			summary: "Replace a draft", in: wire.DraftInput{}, example: example, out: wire.Draft{}, tagged: true,
			matches: true, do: a.changeDraft,
		},
		{
			method: http.MethodDelete, path: "drafts/{draft}", scope: account.Operate, name: "deleteDraft", tag: tag,
			summary: "Delete a draft", status: http.StatusNoContent, do: a.deleteDraft,
		},
		{
			method: http.MethodPost, path: "drafts/{draft}/publish", scope: account.Operate, name: "publishDraft",
			tag:     tag,
			summary: "Publish a draft as a room, and delete the draft", more: "The draft stays after any error.",
			out: wire.Room{}, status: http.StatusCreated, key: keyKept, tagged: true, matches: true, do: a.publish,
		},
	}
}

func (a drafts) listDrafts(c *call) (reply, error) {
	list, err := a.control.Drafts.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.DraftList{Drafts: make([]wire.Draft, len(list))}
	for i, d := range list {
		out.Drafts[i] = newDraft(d)
	}
	return answer(out)
}

func shownDraft(d control.Draft, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{body: newDraft(d), etag: draftTag(d)}, nil
}

func (l links) madeDraft(d control.Draft, err error) (reply, error) {
	out, err := shownDraft(d, err)
	out.location = l.to("drafts", d.ID.String())
	return out, err
}

func (a drafts) createDraft(c *call) (reply, error) {
	in, err := decode[wire.DraftInput](c)
	if err != nil {
		return reply{}, err
	}
	return a.links.madeDraft(a.control.Drafts.Save(c, c.actor, uuid.Nil, 0, in.Host, in.Config))
}

// draftOf returns the draft in the path.
func draftOf(c *call, r *control.Rooms) (control.Draft, error) {
	id, err := c.id("draft")
	if err != nil {
		return control.Draft{}, control.ErrDraftUnknown
	}
	return r.Drafts.Get(c, c.actor, id)
}

func (a drafts) showDraft(c *call) (reply, error) { return shownDraft(draftOf(c, a.control)) }

// expectedVersion returns the version of a draft that a request expects: the current one, or else one that cannot
// exist.
func (c *call) expectedVersion(d control.Draft) int64 {
	if condition, ok := c.ifMatch(); ok && !matches(condition, draftTag(d)) {
		return 0
	}
	return d.Version
}

func (a drafts) changeDraft(c *call) (reply, error) {
	d, err := draftOf(c, a.control)
	if err != nil {
		return reply{}, err
	}
	in, err := decode[wire.DraftInput](c)
	if err != nil {
		return reply{}, err
	}
	return shownDraft(a.control.Drafts.Save(c, c.actor, d.ID, c.expectedVersion(d), in.Host, in.Config))
}

func (a drafts) deleteDraft(c *call) (reply, error) {
	id, err := c.id("draft")
	if err != nil {
		return reply{}, control.ErrDraftUnknown
	}
	return reply{}, a.control.Drafts.Delete(c, c.actor, id)
}

func (a drafts) publish(c *call) (reply, error) {
	d, err := draftOf(c, a.control)
	if err != nil {
		return reply{}, err
	}
	r, err := a.control.Drafts.Publish(c, c.actor, d.ID, c.expectedVersion(d))
	out, err := shown(r, err)
	if err == nil {
		out.location = a.links.to("rooms", r.Slug)
	}
	return out, err
}

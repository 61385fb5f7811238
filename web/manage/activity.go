package manage

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
)

// activityLog serves the activity log.
type activityLog struct{ log *activity.Log }

func (a activityLog) routes() []route {
	return []route{{
		method: http.MethodGet, path: "activity", scope: account.Read, name: "listActivity", tag: "activity",
		summary: "List the activity log, newest first",
		query: append(paged(activity.MaxPage),
			parameter{
				name: "object", about: "Only entries about this object, such as a room's slug.",
				schema: schema{"type": "string"},
			}),
		out: wire.EntryList{}, do: a.listActivity,
	}}
}

func (a activityLog) listActivity(c *call) (reply, error) {
	most, err := c.limit(activity.MaxPage)
	if err != nil {
		return reply{}, err
	}
	var before uuid.UUID
	if cursor := c.query("cursor"); cursor != "" {
		if before, err = uuid.Parse(cursor); err != nil {
			return reply{}, invalid.Field("cursor", "must be the next cursor of a page of this list")
		}
	}
	page, err := a.log.Entries(c, c.actor, c.query("object"), before, most)
	if err != nil {
		return reply{}, err
	}
	out := wire.EntryList{Entries: make([]wire.Entry, len(page.Entries))}
	for i, e := range page.Entries {
		out.Entries[i] = wire.Entry{
			ID: e.ID, At: e.At.UTC(), By: wire.Actor{Kind: e.ActorKind, ID: e.ActorID, Name: e.Actor}, Verb: e.Verb,
			Object: e.Object, Detail: e.Detail, Outcome: e.Outcome,
		}
	}
	if page.Next != uuid.Nil {
		out.Next = cursorOf(page.Next.String())
	}
	return reply{body: out, next: out.Next}, nil
}

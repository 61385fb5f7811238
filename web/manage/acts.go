package manage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/internal/invalid"
)

// entryJSON is one entry of the activity log.
type entryJSON struct {
	ID      uuid.UUID        `json:"id"`
	At      time.Time        `json:"at"`
	By      actorJSON        `json:"by"`
	Verb    string           `json:"verb" doc:"Operation, such as room.pause."`
	Object  string           `json:"object" doc:"Object of the operation, such as a room's slug."`
	Detail  json.RawMessage  `json:"detail" doc:"Details, depending on the verb."`
	Outcome activity.Outcome `json:"outcome" doc:"Empty: unknown, because the server stopped in between."`
}

type actorJSON struct {
	Kind string    `json:"kind" enum:"person,token,server"`
	ID   uuid.UUID `json:"id" doc:"Zero for the server's own token."`
	Name string    `json:"name" doc:"E-mail address, or name of the token, at that time."`
}

type entryList struct {
	Entries []entryJSON `json:"acts"`
	Next    *string     `json:"next" doc:"Cursor of the next page; null on the last page."`
}

func (a *API) activityRoutes() []route {
	return []route{{
		method: http.MethodGet, path: "acts", scope: account.Read, name: "listActs", tag: "acts",
		summary: "List the activity log, newest first",
		query: append(paged(activity.MaxPage),
			parameter{name: "object", about: "Only entries about this object, such as a room's slug.", schema: schema{"type": "string"}}),
		out: entryList{}, do: a.listActivity,
	}}
}

func (a *API) listActivity(c *call) (reply, error) {
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
	page, err := a.Activity.Entries(c, c.actor, c.query("object"), before, most)
	if err != nil {
		return reply{}, err
	}
	out := entryList{Entries: make([]entryJSON, len(page.Entries))}
	for i, e := range page.Entries {
		out.Entries[i] = entryJSON{e.ID, e.At.UTC(), actorJSON{e.ActorKind, e.ActorID, e.Actor}, e.Verb, e.Object, e.Detail, e.Outcome}
	}
	if page.Next != uuid.Nil {
		out.Next = cursorOf(page.Next.String())
	}
	return reply{body: out, next: out.Next}, nil
}

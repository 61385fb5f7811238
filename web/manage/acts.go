package manage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/desk/pgdesk"
	"github.com/proofline/proofline/internal/invalid"
)

// actJSON is one entry of the activity log.
type actJSON struct {
	ID      uuid.UUID       `json:"id"`
	At      time.Time       `json:"at"`
	By      actorJSON       `json:"by"`
	Verb    string          `json:"verb" doc:"Operation, such as room.pause."`
	Object  string          `json:"object" doc:"Object of the operation, such as a room's slug."`
	Detail  json.RawMessage `json:"detail" doc:"Details, depending on the verb."`
	Outcome pgdesk.Outcome  `json:"outcome" doc:"Empty: unknown, because the server stopped in between."`
}

type actorJSON struct {
	Kind string    `json:"kind" enum:"person,token,server"`
	ID   uuid.UUID `json:"id" doc:"Zero for the server's own token."`
	Name string    `json:"name" doc:"E-mail address, or name of the token, at that time."`
}

type actList struct {
	Acts []actJSON `json:"acts"`
	Next *string   `json:"next" doc:"Cursor of the next page; null on the last page."`
}

func (a *API) actRoutes() []route {
	return []route{{
		method: http.MethodGet, path: "acts", scope: account.Read, name: "listActs", tag: "acts",
		summary: "List the activity log, newest first",
		query: append(paged(desk.MaxPage),
			parameter{name: "object", about: "Only entries about this object, such as a room's slug.", schema: schema{"type": "string"}}),
		out: actList{}, do: a.listActs,
	}}
}

func (a *API) listActs(c *call) (reply, error) {
	most, err := c.limit(desk.MaxPage)
	if err != nil {
		return reply{}, err
	}
	var before uuid.UUID
	if cursor := c.query("cursor"); cursor != "" {
		if before, err = uuid.Parse(cursor); err != nil {
			return reply{}, invalid.Field("cursor", "must be the next cursor of a page of this list")
		}
	}
	page, err := a.Desk.Acts(c, c.actor, c.query("object"), before, most)
	if err != nil {
		return reply{}, err
	}
	out := actList{Acts: make([]actJSON, len(page.List))}
	for i, act := range page.List {
		out.Acts[i] = actJSON{act.ID, act.At.UTC(), actorJSON{act.ActorKind, act.ActorID, act.Actor}, act.Verb, act.Object, act.Detail, act.Outcome}
	}
	if page.Next != uuid.Nil {
		out.Next = cursorOf(page.Next.String())
	}
	return reply{body: out, next: out.Next}, nil
}

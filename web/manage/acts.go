package manage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/desk/pgdesk"
)

// actJSON is one deed of a person or a program.
type actJSON struct {
	ID      uuid.UUID       `json:"id"`
	At      time.Time       `json:"at"`
	By      actorJSON       `json:"by"`
	Verb    string          `json:"verb" doc:"Such as room.pause."`
	Object  string          `json:"object" doc:"What it was done to, such as a room's slug."`
	Detail  json.RawMessage `json:"detail" doc:"More about it; which members there are depends on the verb."`
	Outcome pgdesk.Outcome  `json:"outcome" doc:"Empty: nobody knows, for the server stopped in between."`
}

type actorJSON struct {
	Kind string    `json:"kind" enum:"person,token,server"`
	ID   uuid.UUID `json:"id" doc:"All zero for the server's own token."`
	Name string    `json:"name" doc:"E-mail address or name of the token, as it was then."`
}

type actList struct {
	Acts []actJSON `json:"acts"`
	Next *string   `json:"next" doc:"The cursor of the next page; null at the end."`
}

func (a *API) actRoutes() []route {
	return []route{{
		method: http.MethodGet, path: "acts", scope: account.Read, name: "listActs", tag: "acts",
		summary: "List what people and programs did, newest first",
		query: append(paged(desk.MaxPage),
			parameter{name: "object", about: "Only what was done to this, such as a room's slug.", schema: schema{"type": "string"}}),
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
			return reply{}, invalid("cursor", "must be the next cursor of a page of this list")
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

package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// tokenJSON is a token of the organization, without its secret.
type tokenJSON struct {
	ID      uuid.UUID  `json:"id"`
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes" doc:"Scopes: any of read, pull, connect, operate and admin."`
	MadeBy  string     `json:"made_by"`
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Used    *time.Time `json:"used" doc:"Time of the latest use, to the minute; null: never."`
	Notice  string     `json:"notice,omitempty" enum:"soon,last,ended" doc:"For a token in use: it expires within two weeks, within three days, or has expired within the last week. An alert is sent for each."`
}

func newTokenJSON(t account.TokenInfo, notice account.Notice) tokenJSON {
	out := tokenJSON{t.ID, t.Name, t.Scopes.List(), t.MadeBy, t.Created.UTC(), t.Expires.UTC(), nil, string(notice)}
	if t.Used != nil {
		used := t.Used.UTC()
		out.Used = &used
	}
	return out
}

type tokenList struct {
	Tokens []tokenJSON `json:"tokens"`
}

type tokenInput struct {
	Name   string         `json:"name" need:"true"`
	Scopes []string       `json:"scopes" need:"true" doc:"Any of read, pull, connect, operate and admin that the requesting token has. Operate implies connect, pull and read; admin implies all."`
	Life   *room.Duration `json:"life" doc:"Lifetime, at most a year. Default: 90 days."`
}

type madeTokenJSON struct {
	tokenJSON
	Token string `json:"token" doc:"Bearer token. It is shown once."`
}

func (a *API) tokenRoutes() []route {
	const tag = "tokens"
	return []route{
		{
			method: http.MethodGet, path: "tokens", scope: account.Admin, name: "listTokens", tag: tag,
			summary: "List the tokens of the organization, newest first", out: tokenList{}, do: a.listTokens,
		},
		{
			method: http.MethodPost, path: "tokens", scope: account.Admin, name: "createToken", tag: tag,
			summary: "Create a token", in: tokenInput{}, example: `{"name": "shop backend", "scopes": ["pull"], "life": "720h"}`,
			out: madeTokenJSON{}, status: http.StatusCreated, key: keySecret, do: a.createToken,
		},
		{
			method: http.MethodDelete, path: "tokens/{token}", scope: account.Admin, name: "revokeToken", tag: tag,
			summary: "Revoke a token", more: "It takes effect at once on this node, and within five seconds on others.", status: http.StatusNoContent,
			do: a.onID("token", func(c *call, id uuid.UUID) error { return a.Accounts.Tokens.Revoke(c, c.actor, id) }),
		},
	}
}

func (a *API) listTokens(c *call) (reply, error) {
	list, err := a.Accounts.Tokens.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := tokenList{Tokens: make([]tokenJSON, len(list))}
	for i, t := range list {
		out.Tokens[i] = newTokenJSON(t, a.Accounts.Tokens.Notice(t))
	}
	return answer(out)
}

func (a *API) createToken(c *call) (reply, error) {
	in, err := decode[tokenInput](c)
	if err != nil {
		return reply{}, err
	}
	n := account.NewToken{Name: in.Name}
	for _, name := range in.Scopes {
		scope, err := account.ParseScope(name)
		if err != nil {
			return reply{}, invalid.Field("scopes", "must be of read, pull, connect, operate and admin")
		}
		n.Scopes |= scope
	}
	if in.Life != nil {
		if n.Life = time.Duration(*in.Life); n.Life == 0 {
			return reply{}, invalid.Field("life", "must be a minute to a year")
		}
	}
	text, info, err := a.Accounts.Tokens.Make(c, c.actor, n)
	if err != nil {
		return reply{}, err
	}
	return answer(madeTokenJSON{newTokenJSON(info, a.Accounts.Tokens.Notice(info)), text})
}

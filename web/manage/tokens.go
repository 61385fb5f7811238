package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
)

func newToken(t account.TokenInfo, notice account.Notice) wire.Token {
	out := wire.Token{
		ID: t.ID, Name: t.Name, Scopes: t.Scopes.List(), MadeBy: t.MadeBy, Created: t.Created.UTC(),
		Expires: t.Expires.UTC(), Used: nil, Notice: string(notice),
	}
	if t.Used != nil {
		used := t.Used.UTC()
		out.Used = &used
	}
	return out
}

// tokens serves API tokens.
type tokens struct{ tokens *account.Tokens }

func (a tokens) routes() []route {
	const tag = "tokens"
	return []route{
		{
			method: http.MethodGet, path: "tokens", scope: account.Admin, name: "listTokens", tag: tag,
			summary: "List the tokens of the organization, newest first", out: wire.TokenList{}, do: a.listTokens,
		},
		{
			method: http.MethodPost, path: "tokens", scope: account.Admin, name: "createToken", tag: tag,
			summary: "Create a token", in: wire.TokenInput{},
			example: `{"name": "shop backend", "scopes": ["pull"], "life": "720h"}`,
			out:     wire.MadeToken{}, status: http.StatusCreated, key: keySecret, do: a.createToken,
		},
		{
			method: http.MethodDelete, path: "tokens/{token}", scope: account.Admin, name: "revokeToken", tag: tag,
			summary: "Revoke a token", more: "It takes effect at once on this node, and within five seconds on others.",
			status: http.StatusNoContent,
			do:     onID("token", func(c *call, id uuid.UUID) error { return a.tokens.Revoke(c, c.actor, id) }),
		},
	}
}

func (a tokens) listTokens(c *call) (reply, error) {
	list, err := a.tokens.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.TokenList{Tokens: make([]wire.Token, len(list))}
	for i, t := range list {
		out.Tokens[i] = newToken(t, a.tokens.Notice(t))
	}
	return answer(out)
}

func (a tokens) createToken(c *call) (reply, error) {
	in, err := decode[wire.TokenInput](c)
	if err != nil {
		return reply{}, err
	}
	n := account.NewToken{Name: in.Name}
	for _, name := range in.Scopes {
		scope, err := account.ParseScope(name)
		if err != nil {
			return reply{}, invalid.Field("scopes", "must be one or more of read, pull, connect, operate and admin")
		}
		n.Scopes |= scope
	}
	if in.Life != nil {
		if n.Life = time.Duration(*in.Life); n.Life == 0 {
			return reply{}, invalid.Field("life", "must be from a minute to a year")
		}
	}
	text, info, err := a.tokens.Make(c, c.actor, n)
	if err != nil {
		return reply{}, err
	}
	return answer(wire.MadeToken{Token: newToken(info, a.tokens.Notice(info)), Secret: text})
}

package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/format"
)

// tokenRoutes are those of API tokens.
func (c *Console) tokenRoutes() []route {
	return []route{
		{GET, "/tokens", account.Admin, c.showTokens},
		{POST, "/tokens", account.Admin, c.sudo(c.makeToken)},
		{POST, "/tokens/:id/revoke", account.Admin, c.sudo(c.revokeToken)},
	}
}

// tokensPage is what the page of tokens shows.
type tokensPage struct {
	Tokens []tokenView
	Scopes []scopeChoice
	Days   []dayChoice
	Name   string // as it was sent
	Fresh  bool
	Next   string // this page, with what a link proposes
}

// tokenView is a token in the list.
type tokenView struct {
	account.TokenInfo
	Mark badge  // of its end; zero: there is nothing to say of it
	Next string // where the next one is made; empty: nobody needs it yet
}

func (c *Console) viewTokens(list []account.TokenInfo) (views []tokenView) {
	now := c.Now()
	for _, t := range list {
		v := tokenView{TokenInfo: t}
		left := t.Expires.Sub(now)
		switch notice := t.Notice(now); {
		case left <= 0:
			v.Mark = format.Bad("expired")
		case notice != account.NoNotice:
			v.Mark = format.Warn("ends " + account.InDays(left))
		}
		if v.Mark.Word != "" {
			v.Next = nextToken(t)
		}
		views = append(views, v)
	}
	return views
}

// nextToken is the page that makes a token like one that ends.
func nextToken(t account.TokenInfo) string {
	query := url.Values{"name": {t.Name}, "scope": t.Scopes.List()}
	for _, d := range tokenDays {
		if life := time.Duration(d) * 24 * time.Hour; t.Expires.Sub(t.Created) == life {
			query.Set("days", strconv.Itoa(d))
		}
	}
	return Path + "/tokens?" + query.Encode() + "#make"
}

// endingToken is a token that connectors use, and that ends.
type endingToken struct {
	account.ExpiringToken
	When string // "in 13 days"; empty: it has ended
	Next string
}

// endingTokens are the tokens that connectors may use and that end soon or have
// ended.
func (c *Console) endingTokens(ctx context.Context, by account.Actor) (list []endingToken, err error) {
	if c.Accounts == nil { // nobody has tokens
		return nil, nil
	}
	endings, err := c.Accounts.Tokens.Expiring(ctx, by)
	for _, e := range endings {
		if !e.Scopes.Has(account.Connect) {
			continue
		}
		one := endingToken{ExpiringToken: e, Next: nextToken(e.TokenInfo)}
		if e.Left > 0 {
			one.When = account.InDays(e.Left)
		}
		list = append(list, one)
	}
	return list, err
}

// scopeChoice is a scope in a form.
type scopeChoice struct {
	Name, Hint string
	Chosen     bool
}

// dayChoice is a number of days in a form.
type dayChoice struct {
	Days   int
	Chosen bool
}

// defaultDays is how long tokens live unless asked otherwise.
const defaultDays = int(account.TokenLife / (24 * time.Hour))

// tokenDays are the lives to choose from.
var tokenDays = []int{1, 7, 30, 90, 180, 365}

func (x *request) tokensPage(ctx context.Context) (tokensPage, error) {
	page := tokensPage{Fresh: x.isFresh(), Name: x.form("name"), Next: x.Request().URL.RequestURI(), Scopes: []scopeChoice{
		{Name: "read", Hint: "see everything of the organization"},
		{Name: "pull", Hint: "call people, as your backend does"},
		{Name: "connect", Hint: "read the rules of sites and report, as a connector does"},
		{Name: "operate", Hint: "create, change and control rooms, sites, brands and webhooks; implies read, pull and connect"},
		{Name: "admin", Hint: "members, tokens, hosts and the organization; implies everything"},
	}}
	chosen, life := x.Request().PostForm["scope"], x.form("days")
	if x.Request().Method == http.MethodGet { // a link may propose them
		page.Name, chosen, life = x.QueryParam("name"), x.QueryParams()["scope"], x.QueryParam("days")
	}
	for i, s := range page.Scopes {
		page.Scopes[i].Chosen = slices.Contains(chosen, s.Name)
	}
	days, err := strconv.Atoi(life)
	if err != nil || !slices.Contains(tokenDays, days) {
		days = defaultDays
	}
	for _, d := range tokenDays {
		page.Days = append(page.Days, dayChoice{d, d == days})
	}
	list, err := x.console.Accounts.Tokens.List(ctx, x.Actor)
	page.Tokens = x.console.viewTokens(list)
	return page, err
}

func (c *Console) showTokens(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.tokensPage(ctx)
	if err != nil {
		return err
	}
	return x.page("tokens", page)
}

// madeToken shows a new token, this once.
type madeToken struct {
	account.TokenInfo
	Text string
}

func (c *Console) makeToken(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.tokensPage(ctx)
	if err != nil {
		return err
	}
	n := account.NewToken{Name: x.form("name")}
	for _, name := range x.Request().PostForm["scope"] {
		s, err := account.ParseScope(name)
		if err != nil {
			return x.invalid("tokens", page, invalid.Field("scopes", "must be read, pull, connect, operate or admin"))
		}
		n.Scopes |= s
	}
	days, err := strconv.Atoi(x.form("days"))
	if err != nil || days < 1 || days > 365 {
		days = defaultDays
	}
	n.Life = time.Duration(days) * 24 * time.Hour
	text, info, err := c.Accounts.Tokens.Make(ctx, x.Actor, n)
	if err != nil {
		return x.refused("tokens", "", page, err)
	}
	return x.page("token-made", madeToken{info, text})
}

func (c *Console) revokeToken(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	id, err := x.id()
	if err != nil {
		return err
	}
	if !x.isConfirmed() {
		list, err := c.Accounts.Tokens.List(ctx, x.Actor)
		at := slices.IndexFunc(list, func(t account.TokenInfo) bool { return t.ID == id })
		if err != nil || at < 0 {
			return cmp.Or(err, account.ErrNotFound)
		}
		return x.confirm(plainQuestion("Revoke the token "+list[at].Name+"?", "Revoke", "Programs that use it are refused within five seconds.").Dangerous(), "/tokens")
	}
	if err := c.Accounts.Tokens.Revoke(ctx, x.Actor, id); err != nil {
		return err
	}
	return x.done("/tokens", "token-revoked")
}

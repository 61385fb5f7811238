package people

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
	"github.com/proofline/proofline/web/console/shell"
)

// tokens serves the pages of API tokens.
type tokens struct {
	tokens *account.Tokens
}

func (h *tokens) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/tokens", account.Admin, h.showTokens),
		shell.Post("/tokens", account.Admin, confirmed(h.makeToken)),
		shell.Post("/tokens/:id/revoke", account.Admin, confirmed(h.revokeToken)),
	}
}

// tokensPage is the data of the page of tokens.
type tokensPage struct {
	Tokens []tokenView
	Scopes []scopeChoice
	Days   []dayChoice
	Name   string // name as sent
	Fresh  bool
	Next   string // URL of this page with the fields that the link proposed
}

// tokenView is a token in the list.
type tokenView struct {
	account.TokenInfo
	Mark format.Badge // zero: not about to expire
	Next string       // URL of the page that creates a successor; empty: not needed yet
}

func viewTokens(now time.Time, list []account.TokenInfo) (views []tokenView) {
	for _, t := range list {
		v := tokenView{TokenInfo: t}
		left := t.Expires.Sub(now)
		switch notice := t.Notice(now); {
		case left <= 0:
			v.Mark = format.Bad("expired")
		case notice != account.NoNotice:
			v.Mark = format.Warn("expires " + account.InDays(left))
		}
		if v.Mark.Word != "" {
			v.Next = NextToken(t)
		}
		views = append(views, v)
	}
	return views
}

// NextToken returns the page that creates a successor of a token.
func NextToken(t account.TokenInfo) string {
	query := url.Values{"name": {t.Name}, "scope": t.Scopes.List()}
	for _, d := range tokenDays {
		if life := time.Duration(d) * 24 * time.Hour; t.Expires.Sub(t.Created) == life {
			query.Set("days", strconv.Itoa(d))
		}
	}
	return shell.Path + "/tokens?" + query.Encode() + "#make"
}

// scopeChoice is a scope in the form.
type scopeChoice struct {
	Name, Hint string
	Chosen     bool
}

// dayChoice is a lifetime in the form.
type dayChoice struct {
	Days   int
	Chosen bool
}

// defaultDays is the default lifetime of tokens.
const defaultDays = int(account.TokenLife / (24 * time.Hour))

// tokenDays are the lifetimes to choose from.
var tokenDays = []int{1, 7, 30, 90, 180, 365}

func (h *tokens) tokensPage(ctx context.Context, x *shell.Request) (tokensPage, error) {
	page := tokensPage{Fresh: isFresh(x), Name: x.Form("name"), Next: x.Request().URL.RequestURI(),
		Scopes: []scopeChoice{
			{Name: "read", Hint: "see everything in the organization"},
			{Name: "pull", Hint: "call visitors, as your backend does"},
			{Name: "connect", Hint: "read rules and send reports, as a connector does"},
			{Name: "operate",
				Hint: "create, change and control rooms, sites, brands and webhooks; implies read, pull and connect"},
			{Name: "admin", Hint: "manage members, tokens, hosts and the organization; implies all others"},
		}}
	chosen, life := x.Request().PostForm["scope"], x.Form("days")
	if x.Request().Method == http.MethodGet { // fields proposed by a link
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
	list, err := h.tokens.List(ctx, x.Actor)
	page.Tokens = viewTokens(x.Now(), list)
	return page, err
}

func (h *tokens) showTokens(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.tokensPage(ctx, x)
	if err != nil {
		return err
	}
	return x.Page("tokens", page)
}

// madeToken shows a new token once.
type madeToken struct {
	account.TokenInfo
	Text string
}

func (h *tokens) makeToken(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.tokensPage(ctx, x)
	if err != nil {
		return err
	}
	n := account.NewToken{Name: x.Form("name")}
	for _, name := range x.Request().PostForm["scope"] {
		s, err := account.ParseScope(name)
		if err != nil {
			return x.Invalid("tokens", page,
				&invalid.Error{Problems: invalid.List{{Field: "scopes",
					Detail: "must be read, pull, connect, operate or admin"}}})
		}
		n.Scopes |= s
	}
	days, err := strconv.Atoi(x.Form("days"))
	if err != nil || days < 1 || days > 365 {
		days = defaultDays
	}
	n.Life = time.Duration(days) * 24 * time.Hour
	text, info, err := h.tokens.Make(ctx, x.Actor, n)
	if err != nil {
		return refused(x, "tokens", "", page, err)
	}
	return x.Page("token-made", madeToken{info, text})
}

func (h *tokens) revokeToken(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	id, err := x.ID()
	if err != nil {
		return err
	}
	if !x.IsConfirmed() {
		list, err := h.tokens.List(ctx, x.Actor)
		at := slices.IndexFunc(list, func(t account.TokenInfo) bool { return t.ID == id })
		if err != nil || at < 0 {
			return cmp.Or(err, account.ErrNotFound)
		}
		return x.Confirm(shell.Ask("Revoke the token "+list[at].Name+"?", "Revoke",
			"Programs that use it are refused within five seconds.").Dangerous(), "/tokens")
	}
	if err := h.tokens.Revoke(ctx, x.Actor, id); err != nil {
		return err
	}
	return x.Done("/tokens", "token-revoked")
}

package manage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/site"
)

// Prefix is what the paths of all routes begin with.
const Prefix = "/v1/"

var (
	// ErrToken is returned when a request has no or a wrong token.
	ErrToken = errors.New("give a management token as Authorization: Bearer TOKEN")
	// ErrOrganization is returned when the header Proofline-Organization names
	// an organization that the token cannot act in.
	ErrOrganization = errors.New("there is no such organization, or the token is not for it")
	// ErrTooLarge is returned when a body is larger than its route takes.
	ErrTooLarge = errors.New("the body is too large")
	// ErrMediaType is returned when a body is not declared as JSON.
	ErrMediaType = errors.New("the body must be JSON, with Content-Type: application/json")
	// ErrKeyReused is returned when an idempotency key comes with another
	// request than before.
	ErrKeyReused = errors.New("this idempotency key came with another request before: use a new one")
	// ErrKeyUnderWay is returned when the request that brought a key first has
	// not been answered.
	ErrKeyUnderWay = errors.New("the first request with this idempotency key has no answer yet, or never got one: see whether it was done before you use another key")
	// ErrKeyDone is returned when a request was done whose answer had a secret,
	// which nobody keeps.
	ErrKeyDone = errors.New("the request with this idempotency key was done, and its answer held a secret that is shown once: revoke what it made if the answer was lost")
	// ErrSimulating is returned when as many simulations run as may.
	ErrSimulating = errors.New("another simulation is running")
)

// Options is what [New] needs. Of what is nil there are no routes.
type Options struct {
	Desk     *desk.Desk
	Accounts *account.Accounts
	Live     *live.Live
	Hooks    *hook.Hooks
	Sites    *site.Sites
	// ServerToken is the server's own bearer token, which acts in any
	// organization; empty: none does.
	ServerToken string
	// PublicURL is what the server is reached under, without a slash at its end.
	PublicURL string
	// Status is how an error is answered.
	Status func(error) int
}

// API is the management API. Safe for concurrent use.
type API struct {
	Options
	token      [sha256.Size]byte // of the server's token
	routes     []route
	document   func() []byte
	simulating chan struct{} // holds one value for each simulation that runs
	pruned     clock
}

// New returns the management API.
func New(o Options) *API {
	a := &API{Options: o, token: sha256.Sum256([]byte(o.ServerToken)), simulating: make(chan struct{}, maxSimulating)}
	if o.Desk != nil {
		a.routes = slices.Concat(a.routes, a.roomRoutes(), a.queueItRoutes(), a.brandRoutes(), a.controlRoutes(), a.ticketRoutes(), a.draftRoutes(), a.actRoutes(), a.simulationRoutes())
	}
	if o.Desk != nil && o.Desk.Rehearsals != nil {
		a.routes = append(a.routes, a.rehearsalRoutes()...)
	}
	if o.Desk != nil && o.Live != nil {
		a.routes = append(a.routes, a.figureRoutes()...)
	}
	if o.Accounts != nil {
		a.routes = slices.Concat(a.routes, a.organizationRoutes(), a.memberRoutes(), a.tokenRoutes(), a.hostRoutes())
	}
	if o.Desk != nil {
		a.routes = append(a.routes, a.clockRoutes()...)
	}
	if o.Hooks != nil {
		a.routes = slices.Concat(a.routes, a.hookRoutes(), a.alertRoutes())
	}
	if o.Sites != nil {
		a.routes = append(a.routes, a.siteRoutes()...)
	}
	if o.Sites != nil && o.Desk != nil {
		a.routes = append(a.routes, a.reportRoutes()...)
	}
	a.document = sync.OnceValue(func() []byte { return a.describe(false) })
	return a
}

// Route is one route, for whoever dispatches requests.
type Route struct {
	Method, Path string // as Echo writes it: /v1/rooms/:slug
	Handle       echo.HandlerFunc
}

// Routes returns the routes, to which [API.Guard] must be applied.
func (a *API) Routes() []Route {
	list := []Route{{http.MethodGet, documentPath, a.sendDocument}}
	for i := range a.routes {
		r := &a.routes[i]
		list = append(list, Route{r.method, r.echoPath(), func(c echo.Context) error { return a.serve(r, c) }})
	}
	return list
}

// Needs is what a route takes, for those who test who may use it.
type Needs struct {
	Method, Path string        // the path as in the document: /v1/rooms/{slug}
	Scope        account.Scope // that the actor must have
	Server       bool          // it is for the server's own token alone
	Example      string        // of a body, empty for none
}

// Needs returns what each route takes.
func (a *API) Needs() []Needs {
	list := make([]Needs, len(a.routes))
	for i, r := range a.routes {
		list[i] = Needs{r.method, r.fullPath(), r.scope, r.server, r.example}
	}
	return list
}

// actorKey is where the context of a request has its actor.
const actorKey = "proofline.actor"

// Guard lets nobody without a token near anything below [Prefix], routes or
// not, but the public document.
func (a *API) Guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Path() == documentPath && c.Request().Method == http.MethodGet {
			return next(c)
		}
		actor, err := a.authenticate(c.Request())
		if err != nil {
			return err
		}
		c.Set(actorKey, actor)
		return next(c)
	}
}

// OrganizationHeader names the organization that a token acts in. Only the
// server's own token has a choice.
const OrganizationHeader = "Proofline-Organization"

// authenticate returns who sends a request.
func (a *API) authenticate(r *http.Request) (account.Actor, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return account.Actor{}, ErrToken
	}
	slug := r.Header.Get(OrganizationHeader)
	if a.isServer(token) {
		return a.serverActor(r.Context(), slug)
	}
	if a.Accounts == nil {
		return account.Actor{}, ErrToken
	}
	actor, err := a.Accounts.Authenticate(r.Context(), token)
	if errors.Is(err, account.ErrToken) {
		return account.Actor{}, ErrToken
	}
	if err != nil || slug == "" {
		return actor, err
	}
	o, err := a.Accounts.OrganizationBySlug(r.Context(), slug)
	if errors.Is(err, account.ErrNotFound) || err == nil && o.ID != actor.Org {
		return account.Actor{}, ErrOrganization
	}
	return actor, err
}

// isServer compares the server's token. Hashes are compared, so that the time
// tells neither the token nor its length.
func (a *API) isServer(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1 && a.ServerToken != ""
}

func (a *API) serverActor(ctx context.Context, slug string) (account.Actor, error) {
	if slug == "" {
		return account.ServerActor(account.MainOrg), nil
	}
	if a.Accounts == nil {
		return account.Actor{}, ErrOrganization
	}
	o, err := a.Accounts.OrganizationBySlug(ctx, slug)
	if errors.Is(err, account.ErrNotFound) {
		return account.Actor{}, ErrOrganization
	}
	return account.ServerActor(o.ID), err
}

// serve answers one request to a route.
func (a *API) serve(r *route, c echo.Context) error {
	actor, _ := c.Get(actorKey).(account.Actor)
	if !actor.May(r.scope) || r.server && actor.Kind != account.Server {
		return account.ErrForbidden
	}
	in := &call{Context: c.Request().Context(), echo: c, actor: actor}
	if err := in.checkText(); err != nil {
		return err
	}
	if r.method != http.MethodGet {
		var err error
		if in.body, err = readBody(c.Request(), cmp.Or(r.most, maxBody)); err != nil {
			return err
		}
	}
	out, err := a.once(r, in, func() (reply, error) { return r.do(in) })
	if err != nil {
		return err
	}
	return out.send(c, out.statusOf(r))
}

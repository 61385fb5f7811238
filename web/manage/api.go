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
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
)

// Prefix is the path prefix of all routes.
const Prefix = "/v1/"

var (
	// ErrToken means that a request has no token or an invalid one.
	ErrToken = errors.New("the request needs a valid management token: send Authorization: Bearer TOKEN")
	// ErrOrganization means that the header Proofline-Organization names an organization in which the
	// token cannot act.
	ErrOrganization = errors.New("the organization does not exist, or the token cannot act in it")
	// ErrTooLarge means that a body exceeds its route's limit.
	ErrTooLarge = errors.New("the body is too large")
	// ErrMediaType means that a body is not declared as JSON.
	ErrMediaType = errors.New("the body must be JSON, with Content-Type: application/json")
	// ErrKeyReused means that an idempotency key was used for a different request before.
	ErrKeyReused = errors.New("this idempotency key was used for another request: use a new one")
	// ErrKeyUnderWay means that the first request with an idempotency key has no answer yet.
	ErrKeyUnderWay = errors.New("the first request with this idempotency key has no answer yet, or its outcome is unknown: check whether it took effect before you use another key")
	// ErrKeyDone means that the first request succeeded, but its answer had a secret and was not
	// stored.
	ErrKeyDone = errors.New("the request with this idempotency key has succeeded, and its secret is shown only once: revoke the secret if you did not get the answer")
	// ErrSimulating means that the maximum number of simulations is running.
	ErrSimulating = errors.New("another simulation is running")
)

// Options configures [New]. Services that are nil have no routes.
type Options struct {
	Control  *control.Rooms
	Activity *activity.Log
	Accounts *account.Accounts
	Live     *live.Live
	Webhooks *webhook.Service
	Sites    *site.Sites
	// ServerToken is the server's own bearer token, valid in every organization; empty: none.
	ServerToken string
	// PublicURL is the server's base URL, without a trailing slash.
	PublicURL string
	// Status returns the HTTP status for an error.
	Status func(error) int
}

// API is the management API. Safe for concurrent use.
type API struct {
	Options
	token      [sha256.Size]byte // hash of the server's token
	routes     []route
	document   func() []byte
	simulating chan struct{} // one value per running simulation
	pruned     clock
}

// New returns the management API.
func New(o Options) *API {
	a := &API{Options: o, token: sha256.Sum256([]byte(o.ServerToken)), simulating: make(chan struct{}, maxSimulating)}
	if o.Control != nil {
		a.routes = slices.Concat(a.routes, a.roomRoutes(), a.queueItRoutes(), a.brandRoutes(), a.controlRoutes(), a.ticketRoutes(), a.draftRoutes())
	}
	if o.Activity != nil {
		a.routes = append(a.routes, a.activityRoutes()...)
	}
	if o.Control != nil {
		a.routes = append(a.routes, a.simulationRoutes()...)
	}
	if o.Control != nil && o.Control.Rehearsals != nil {
		a.routes = append(a.routes, a.rehearsalRoutes()...)
	}
	if o.Control != nil && o.Live != nil {
		a.routes = append(a.routes, a.figureRoutes()...)
	}
	if o.Accounts != nil {
		a.routes = slices.Concat(a.routes, a.organizationRoutes(), a.memberRoutes(), a.tokenRoutes(), a.hostRoutes())
	}
	if o.Control != nil {
		a.routes = append(a.routes, a.clockRoutes()...)
	}
	if o.Webhooks != nil {
		a.routes = slices.Concat(a.routes, a.webhookRoutes(), a.alertRoutes())
	}
	if o.Sites != nil {
		a.routes = append(a.routes, a.siteRoutes()...)
	}
	if o.Sites != nil && o.Control != nil {
		a.routes = append(a.routes, a.reportRoutes()...)
	}
	a.document = sync.OnceValue(func() []byte { return a.describe(false) })
	return a
}

// Route is a route in the form that a router needs.
type Route struct {
	Method, Path string // path in Echo's syntax: /v1/rooms/:slug
	Handle       echo.HandlerFunc
}

// Routes returns all routes. The caller must wrap them in [API.Guard].
func (a *API) Routes() []Route {
	list := []Route{{http.MethodGet, documentPath, a.sendDocument}}
	for i := range a.routes {
		r := &a.routes[i]
		list = append(list, Route{r.method, r.echoPath(), func(c echo.Context) error { return a.serve(r, c) }})
	}
	return list
}

// Needs describes a route's requirements, for tests of access control.
type Needs struct {
	Method, Path string        // path in the document's syntax: /v1/rooms/{slug}
	Scope        account.Scope // required scope
	Server       bool          // whether it requires the server's own token
	Example      string        // example body; empty: none
}

// Needs returns the requirements of all routes.
func (a *API) Needs() []Needs {
	list := make([]Needs, len(a.routes))
	for i, r := range a.routes {
		list[i] = Needs{r.method, r.fullPath(), r.scope, r.server, r.example}
	}
	return list
}

// actorKey is the context key of a request's actor.
const actorKey = "proofline.actor"

// Guard rejects requests without a valid token for any path below [Prefix], whether a route exists or
// not. The OpenAPI document is public.
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

// OrganizationHeader names the organization in which a token acts. Only the server's own token can
// act in several.
const OrganizationHeader = "Proofline-Organization"

// authenticate returns the actor for the request's token.
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
	actor, err := a.Accounts.Tokens.Authenticate(r.Context(), token)
	if errors.Is(err, account.ErrToken) {
		return account.Actor{}, ErrToken
	}
	if err != nil || slug == "" {
		return actor, err
	}
	o, err := a.Accounts.Organizations.BySlug(r.Context(), slug)
	if errors.Is(err, account.ErrNotFound) || err == nil && o.ID != actor.Org {
		return account.Actor{}, ErrOrganization
	}
	return actor, err
}

// isServer reports whether token is the server's token. It compares hashes, so that timing reveals
// neither the token nor its length.
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
	o, err := a.Accounts.Organizations.BySlug(ctx, slug)
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

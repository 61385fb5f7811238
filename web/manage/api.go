package manage

import (
	"cmp"
	"errors"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/web/manage/jsonschema"
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
	// ErrKeyUnderWay means that the first request with an idempotency key is still being processed.
	ErrKeyUnderWay = errors.New("the first request with this idempotency key has no answer yet, or its outcome is unknown: check whether it took effect before you use another key")
	// ErrKeyDone means that the first request succeeded, but its answer contained a secret and was
	// not stored.
	ErrKeyDone = errors.New("the request with this idempotency key has succeeded, and its secret is shown only once: revoke the secret if you did not get the answer")
	// ErrSimulating means that the maximum number of simulations is running.
	ErrSimulating = errors.New("another simulation is running")
)

// Options configures [New]. Services that are nil get no routes.
type Options struct {
	Control  *control.Rooms
	Rooms    Rooms // required with Control
	Activity *activity.Log
	Accounts *account.Accounts
	Live     *live.Live
	Webhooks *webhook.Service
	Sites    *site.Sites
	// Keys stores Idempotency-Keys and the answers to them; required with Control.
	Keys Keys
	// ServerToken is the server's own bearer token, valid in every organization; empty: none.
	ServerToken string
	// PublicURL is the server's base URL, without a trailing slash.
	PublicURL string
	// Status returns the HTTP status for an error.
	Status func(error) int
}

// Rooms is what the API needs of [room.Rooms] itself.
type Rooms interface {
	roomsBySlug
	clockConfirmer
}

// API is the management API. Safe for concurrent use.
type API struct {
	callers   callers
	keys      *keys
	parts     []part
	routes    []route // routes of all parts
	publicURL string
	document  func() []byte
}

// part serves the routes of one kind of resource.
type part interface{ routes() []route }

// New returns the management API.
func New(o Options) *API {
	a := &API{
		callers: newCallers(o.Accounts, o.ServerToken), keys: &keys{store: o.Keys, status: o.Status},
		parts: newParts(o), publicURL: o.PublicURL,
	}
	for _, p := range a.parts {
		a.routes = append(a.routes, p.routes()...)
	}
	a.document = sync.OnceValue(func() []byte { return newDocument(a.routes, a.publicURL, jsonschema.AllowUnknown) })
	return a
}

// newParts returns the parts of the API whose services exist, in the order of the OpenAPI document.
func newParts(o Options) (list []part) {
	l := links{o.PublicURL}
	if r := o.Control; r != nil {
		list = append(list, rooms{r, l}, queueIt{r}, brandChecks{}, controls{r}, tickets{r}, lists{r}, drafts{r, l})
	}
	if o.Activity != nil {
		list = append(list, activityLog{o.Activity})
	}
	if o.Control != nil {
		list = append(list, newSimulations(o.Control))
	}
	if o.Control != nil && o.Control.Rehearsals != nil {
		list = append(list, rehearsals{o.Control})
	}
	if o.Control != nil && o.Live != nil {
		list = append(list, figures{o.Control, o.Live})
	}
	if a := o.Accounts; a != nil {
		list = append(list, organizations{a.Organizations, a.SignInLinks, a.Invitations},
			members{a.Members, a.Invitations}, tokens{a.Tokens}, hosts{a.Hosts})
	}
	if o.Control != nil {
		list = append(list, clocks{o.Rooms}, quotas{o.Control.Quotas}, readiness{o.Control.Ready})
	}
	if w := o.Webhooks; w != nil {
		list = append(list, webhooks{w.Endpoints, l}, deliveries{w.Deliveries}, alerts{w.Alerts})
	}
	if o.Sites != nil {
		list = append(list, sites{o.Sites, l}, siteRules{o.Sites})
	}
	if o.Sites != nil && o.Control != nil {
		list = append(list, reports{o.Sites, o.Rooms})
	}
	return list
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
		actor, err := a.callers.actor(c.Request())
		if err != nil {
			return err
		}
		c.Set(actorKey, actor)
		return next(c)
	}
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
	out, err := a.keys.once(r, in, func() (reply, error) { return r.do(in) })
	if err != nil {
		return err
	}
	return out.send(c, out.statusOf(r))
}

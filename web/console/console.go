package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/console/live"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// Path is where all pages are below.
const Path = "/console"

// Limits of what one request may take.
const (
	maxBody       = 256 << 10 // bytes; pages with uploads say otherwise
	answerTimeout = 15 * time.Second
)

// SessionCookie holds the token of a session. Browsers take the prefix for a
// promise that nobody but this host has set it
// (https://www.rfc-editor.org/rfc/rfc6265bis#name-the-__host-prefix).
const SessionCookie = "__Host-proofline.session" //nolint:gosec // a name

var (
	// ErrSignIn is returned when nobody is signed in, or not any more.
	ErrSignIn = errors.New("sign in first")
	// ErrConfirm is returned when the person must confirm who it is before
	// something sensitive.
	ErrConfirm = errors.New("confirm that it is you")
	// ErrCrossOrigin is returned when a page of another site sends something.
	ErrCrossOrigin = errors.New("the request comes from another site")
	// errForeign is returned under the custom host of an organization.
	errForeign = errors.New("the console is not under this host")
	// ErrSwitched is returned for a form of a page that was of another
	// organization than the one that the session is in now.
	ErrSwitched = errors.New("this page was of another organization than the one you are in now, so nothing was done: switch back, or load the page again")
	// ErrTooLarge is returned when a body is larger than its page takes.
	ErrTooLarge = errors.New("what was sent is too large")
)

// Identity is who is signed in, and where.
type Identity struct {
	Actor         account.Actor
	Name          string // display name
	Organization  Organization
	Organizations []Organization // all of this person
	Confirmed     time.Time      // when the person last showed a password or the like
	MustEnrol     bool           // the organization requires a second factor that the person has not
}

// Organization is what pages show of one.
type Organization struct{ Slug, Name string }

// Problem is an error in words for people.
type Problem struct {
	Status int
	Title  string
	Detail string
	Retry  time.Duration // 0 for none
}

// Options is what [New] needs. What is nil leaves its pages out.
type Options struct {
	// Identify finds who a session's token belongs to; [ErrSignIn].
	Identify func(ctx context.Context, token string) (Identity, error)
	// Describe says an error in words. What is nobody's business is internal.
	Describe func(error) Problem
	// Accounts are people, organizations and tokens; nil where Identify knows
	// people without them.
	Accounts *account.Accounts
	// Desk is what people do with rooms.
	Desk *desk.Desk
	// Hosts lists the custom hosts that an organization may publish rooms
	// under; nil: there are none.
	Hosts func(ctx context.Context, actor account.Actor) ([]string, error)
	// Live are the figures of rooms.
	Live *live.Live
	// Hooks are webhooks and alerts.
	Hooks *hook.Hooks
	// Sites are what rooms stand in front of.
	Sites *sites.Sites
	// Closing is closed when the server stops, for streams to end; nil: never.
	Closing <-chan struct{}
	// CrossOrigin refuses what other sites send.
	CrossOrigin *http.CrossOriginProtection
	// Manifest is the manifest.json of the built files.
	Manifest []byte
	// Version is the program's.
	Version string
	// PublicURL is what the server is reached under.
	PublicURL string
	// Foreign tells whether a request came under the custom host of an
	// organization: people are led to PublicURL then. nil: none does.
	Foreign func(*http.Request) bool
	// Now is the time; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Console answers for the pages. Safe for concurrent use.
type Console struct {
	Options
	templates templates
	routes    []route
	trials    *trials
	gains     gains
}

// New returns the console. Error: a template is wrong, which is the program's.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Console{Options: o, trials: newTrials()}
	names := map[string]string{}
	if len(o.Manifest) > 0 {
		if err := json.Unmarshal(o.Manifest, &names); err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
	}
	var err error
	if c.templates, err = parseTemplates(names); err != nil {
		return nil, err
	}
	c.routes = c.allRoutes()
	return c, nil
}

// Methods of routes.
const (
	GET  = http.MethodGet
	POST = http.MethodPost
)

// Scopes of routes beside those of package account.
const (
	// SignedIn is for anybody who is signed in, whatever the role.
	SignedIn account.Scope = 0
	// Public is for everybody.
	Public account.Scope = 1 << 7
)

// route is one page, or what a page's form is sent to.
type route struct {
	method string
	path   string // below [Path], in Echo's form
	scope  account.Scope
	handle func(*request) error
}

// Route is a route as tests walk them.
type Route struct {
	Method, Path string
	Scope        account.Scope
}

// Routes lists all routes.
func (c *Console) Routes() []Route {
	list := make([]Route, 0, len(c.routes))
	for _, r := range c.routes {
		list = append(list, Route{r.method, Path + r.path, r.scope})
	}
	return list
}

// allRoutes are the routes of all files.
func (c *Console) allRoutes() []route {
	var list []route
	for _, some := range [][]route{
		c.homeRoutes(),
		c.roomRoutes(),
		c.editorRoutes(),
		c.settingsRoutes(),
		c.queueItRoutes(),
		c.accountsRoutes(),
		c.brandRoutes(),
		c.liveRoutes(),
		c.controlRoutes(),
		c.reportRoutes(),
		c.actRoutes(),
		c.hookRoutes(),
		c.alertRoutes(),
		c.rehearsalRoutes(),
		c.siteRoutes(),
	} {
		list = append(list, some...)
	}
	return list
}

// Register adds the routes to the server.
func (c *Console) Register(e *echo.Echo) {
	for _, r := range c.routes {
		e.Add(r.method, Path+r.path, c.serve(r))
		if r.method == GET {
			e.Add(http.MethodHead, Path+r.path, c.serve(r))
		}
	}
}

// request is one request at the console.
type request struct {
	echo.Context
	Identity
	console *Console
	isData  bool // a script asks, not a person
}

// serve is around every handler.
func (c *Console) serve(r route) echo.HandlerFunc {
	return func(e echo.Context) error {
		x := &request{Context: e, console: c, isData: wantsData(e.Request())}
		shelter(e.Response().Header())
		err := c.admit(x, r)
		if err == nil {
			err = r.handle(x)
		}
		if err == nil || e.Response().Committed {
			return err
		}
		return c.fail(x, err)
	}
}

// admit checks who asks and what is sent, before the handler runs. Streams of
// events get no time limit: their handlers bound themselves.
func (c *Console) admit(x *request, r route) error {
	q := x.Request()
	if c.Foreign != nil && c.Foreign(q) {
		return errForeign
	}
	if q.Method == POST && c.CrossOrigin.Check(q) != nil {
		return ErrCrossOrigin
	}
	if err := c.identify(x, r); err != nil {
		return err
	}
	if q.Method == POST {
		if err := x.readForm(); err != nil {
			return err
		}
		if x.isElsewhere(r) {
			return ErrSwitched
		}
	}
	return x.checkText()
}

// isElsewhere tells whether a form is of a page of another organization than
// the one that the session is in now. What is about the person is the same in all.
func (x *request) isElsewhere(r route) bool {
	meant := x.form(organizationField)
	return meant != "" && r.scope != Public && r.scope != SignedIn && meant != x.Organization.Slug
}

// checkText refuses what no text is, in path, query or form: a database would.
func (x *request) checkText() error {
	for _, fields := range []url.Values{{"": x.ParamValues()}, x.QueryParams(), x.Request().PostForm} {
		for name, values := range fields {
			if !isText(name) || slices.ContainsFunc(values, func(value string) bool { return !isText(value) }) {
				return invalidInput(strings.ToValidUTF8(name, ""), "must be UTF-8 without NUL")
			}
		}
	}
	return nil
}

// identify finds who is signed in, where the route needs that; others learn it
// too, if somebody is.
func (c *Console) identify(x *request, r route) error {
	cookie, err := x.Cookie(SessionCookie)
	if err != nil || c.Identify == nil {
		if r.scope == Public {
			return nil
		}
		return ErrSignIn
	}
	x.Identity, err = c.Identify(x.Request().Context(), cookie.Value)
	switch {
	case r.scope == Public && errors.Is(err, ErrSignIn):
		return nil
	case err != nil:
		return err
	case r.scope != Public && r.scope != SignedIn && !x.Actor.May(r.scope):
		return x.whyForbidden()
	}
	return nil
}

// readForm reads the body of a form that is not an upload.
func (x *request) readForm() error {
	q := x.Request()
	if strings.HasPrefix(q.Header.Get("Content-Type"), "multipart/") {
		return nil // its handler knows how much it takes
	}
	q.Body = http.MaxBytesReader(x.Response(), q.Body, maxBody)
	if isJSON(q) {
		return nil
	}
	err := q.ParseForm()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return ErrTooLarge
	}
	if err != nil {
		return &room.InvalidError{Problems: []fairness.Problem{{Detail: "must be a form"}}}
	}
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func isJSON(q *http.Request) bool {
	return strings.HasPrefix(q.Header.Get("Content-Type"), "application/json")
}

// wantsData tells whether a script asks for data, rather than a person for a page.
func wantsData(q *http.Request) bool {
	accept := q.Header.Get("Accept")
	return !strings.Contains(accept, "text/html") && (strings.Contains(accept, "json") || strings.Contains(accept, "event-stream"))
}

// form returns the value of a form's field, from the body alone.
func (x *request) form(name string) string { return x.Request().PostForm.Get(name) }

// wait returns a context that ends after the time that an answer may take.
func (x *request) wait() (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.Request().Context(), answerTimeout)
}

// ofRoom finds the room of the path, which the organizer's role may see, and
// gives an answer about it the time that it may take.
func (c *Console) ofRoom(answer func(context.Context, *request, *room.Room) error) func(*request) error {
	return func(x *request) error {
		ctx, cancel := x.wait()
		defer cancel()
		r, err := c.Desk.Room(ctx, x.Actor, x.Param("slug"))
		if err != nil {
			return err
		}
		return answer(ctx, x, r)
	}
}

// contentPolicy is what pages may load. The preview of a visitor's page is a
// frame of our own.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// shelter sets the headers that all answers have.
func shelter(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// fail answers with an error.
func (c *Console) fail(x *request, err error) error {
	switch {
	case errors.Is(err, errForeign):
		return x.Redirect(http.StatusSeeOther, c.PublicURL+Path)
	case x.isData:
		return err // the server answers with a problem document
	case errors.Is(err, ErrSignIn):
		return x.leadTo("/sign-in")
	case errors.Is(err, ErrConfirm):
		return x.leadTo("/confirm")
	case errors.Is(err, errMustEnrol):
		return x.done("/account/second-factor", "must-enrol")
	case errors.Is(err, errNoOrganization):
		return x.done("/account", "no-organization")
	}
	p := c.Describe(err)
	page, data := "error", any(p)
	lost := (*room.Regression)(nil)
	if errors.As(err, &lost) && x.Param("slug") != "" {
		page, data = "room-stopped", stoppedPage{x.Param("slug"), lost}
	} else if p.Status >= http.StatusInternalServerError {
		c.Log.Error("console request failed", "method", x.Request().Method, "path", x.Request().URL.Path, "err", err, "request_id", x.requestID())
	}
	if p.Retry > 0 {
		x.Response().Header().Set("Retry-After", fmt.Sprint(int64((p.Retry+time.Second-1)/time.Second)))
	}
	return x.render(p.Status, page, view{Data: data})
}

// leadTo answers with a redirect to a page that leads back here. What was
// sent in a form is lost, so that leads to the page that the form was on.
func (x *request) leadTo(path string) error {
	next := x.Request().URL.RequestURI()
	if x.Request().Method == POST {
		next = Path
		if from, err := url.Parse(x.Request().Referer()); err == nil && strings.HasPrefix(from.Path, Path) {
			next = from.RequestURI()
		}
	}
	return x.Redirect(http.StatusSeeOther, Path+path+"?next="+url.QueryEscape(next))
}

// next returns where a page like the one for signing in leads to: a page of
// the console, never another site.
func (x *request) next() string {
	wanted := x.QueryParam("next")
	if given := x.form("next"); given != "" {
		wanted = given
	}
	return safeNext(wanted)
}

// safeNext returns the address of a page of the console as it is, and of any
// other the first page's.
func safeNext(wanted string) string {
	u, err := url.Parse(wanted)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Path != Path && !strings.HasPrefix(u.Path, Path+"/") || strings.Contains(wanted, "\\") {
		return Path
	}
	return u.RequestURI()
}

func (x *request) requestID() string { return x.Response().Header().Get("X-Request-Id") }

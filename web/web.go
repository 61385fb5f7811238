// Package web is the HTTP interface of the server: the public resources of every room below
// /r/{slug}, the management API below /v1, and the pages for visitors and organizers.
//
// Bodies are JSON, the resources of the log follow C2SP, and every error is a problem document (RFC
// 9457, see PROBLEMS.md). Times are RFC 3339 in UTC with milliseconds.
//
//	GET  /r/{slug}/checkpoint, tile/...            the log (https://c2sp.org/tlog-tiles)
//	GET  /r/{slug}/state                           the room's public state, cacheable
//	GET  /r/{slug}/events                          the state whenever it changes, as a stream; limited in number
//	POST /r/{slug}/join                            record an arrival, answered with its receipt
//	GET  /r/{slug}/tickets/{ticket}[/receipt]      the state of one ticket
//	POST /r/{slug}/beacon                          a beacon round that a draw waits for, from any client
//	POST /r/{slug}/tickets/{ticket}/claim          a called ticket's pass, in exchange for its secret
//	POST /r/{slug}/tickets/{ticket}/leave          give up a place, authorized by its secret
//	GET  /r/{slug}/jwks.json                       keys that verify passes
//	GET  /r/{slug}/.well-known/openid-configuration discovery of these keys
//	POST /r/{slug}/passes/{jti}/redeem             redeem a pass, for the site
//	POST /r/{slug}/sessions/touch, release, batch  extend or end sessions, for the site
//	     /v1/...                                   management, with a bearer token, see package manage
//	GET  /r/{slug}[/check|/fair|/report], /assets/ pages for visitors, see package page
//	POST /r/{slug}/line|claim|leave|link|take      actions of visitors on these pages
//	GET  /?c=CUSTOMER&e=SLUG, /cancel/...          links made for Queue-it, see QUEUE-IT.md
//	GET  /.well-known/security.txt                 contacts for reports of vulnerabilities, if configured
//	GET  /livez                                    200 while the process answers
//	GET  /readyz                                   200 while the server can accept joins, with its health
//
// Resources that every visitor polls are served from memory: the state document is rendered at most
// a few times a second however many clients ask, and answers to joins and ticket queries are written
// without reflection into reused buffers. A ticket's number is enough to query its state. The secret
// behind it is the only credential, and is neither stored nor logged.
package web

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/manage"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/ui"
)

// Limits of connections and requests.
const (
	readTimeout     = 10 * time.Second // for a whole request, with its header
	writeTimeout    = 60 * time.Second
	idleTimeout     = 2 * time.Minute
	answerTimeout   = 15 * time.Second // for a request that needs the database
	lastWords       = time.Second      // time in which a stopping server asks clients to reconnect
	shutdownTimeout = 7 * time.Second  // for open requests after that
	maxHeader       = 16 << 10         // bytes
)

// Options configures [New]. Rooms, AdminToken and Log are required.
type Options struct {
	Rooms *room.Rooms
	// Control serves the management API; nil: there is none.
	Control *control.Rooms
	// Activity is the activity log; nil: the management API does not show it.
	Activity *activity.Log
	// AdminToken is the server's own bearer token for the management API, valid in every
	// organization.
	// Empty: no token has this role.
	AdminToken string
	// Accounts serves the organizers' pages, API tokens and custom hosts; nil: there are none.
	Accounts *account.Accounts
	// Live serves the rooms' metrics; nil: there are none.
	Live *live.Live
	// Webhooks sends webhooks and alerts; nil: there are none.
	Webhooks *webhook.Service
	// Sites serves the organizations' sites; nil: there are none.
	Sites *sites.Sites
	// Version is the program's version, shown on pages.
	Version string
	// Ready reports whether the server can accept joins; nil: [room.Rooms.Ready].
	Ready func() bool
	// Assets has the built files of the pages; nil: those embedded in the program.
	Assets fs.FS
	// MaxStreams is the maximum number of open event streams, such as [DefaultStreams]; 0: no
	// streams.
	MaxStreams int
	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is used. Empty: the
	// connection's address counts.
	TrustedProxies []netip.Prefix
	// Contacts are URIs for reports of vulnerabilities, published in security.txt; empty: there is no
	// such file.
	Contacts []string
	// Limits has the budgets of networks; nil: no limits.
	Limits *limit.Limits
	Log    *slog.Logger
}

// Server answers HTTP requests. Safe for concurrent use.
type Server struct {
	rooms     *room.Rooms
	api       *manage.API
	ready     func() bool
	log       *slog.Logger
	echo      *echo.Echo
	ids       requestIDs
	documents documents
	looks     stylesheets
	deadlines deadlines
	clients   clients
	limits    *limit.Limits
	crowded   crowdedPages

	refusal    atomic.Int64 // Unix time in nanoseconds of the latest log line about a site's refusal
	maxStreams int
	streams    atomic.Int64  // number of open streams
	closing    chan struct{} // closed when the server stops
	draining   atomic.Bool   // set while stopping: every answer closes its connection

	accounts   *account.Accounts // nil: none
	publicHost string            // host of the server's own address, without port
	site       string            // the server's own origin; empty: unknown
	contacts   []string          // URIs for reports of vulnerabilities

	pages       *page.Pages
	assets      map[string]*asset // by name
	crossOrigin *http.CrossOriginProtection
}

// New returns a server for the given rooms.
func New(o Options) *Server {
	s := &Server{
		rooms: o.Rooms, ready: o.Ready, log: o.Log,
		echo: echo.New(), ids: newRequestIDs(), maxStreams: o.MaxStreams, closing: make(chan struct{}),
	}
	if s.maxStreams > 0 {
		s.documents.listenAhead = streamAhead
	}
	if s.ready == nil {
		s.ready = o.Rooms.Ready
	}
	s.clients.trusted, s.clients.log, s.limits = o.TrustedProxies, o.Log, o.Limits
	s.openPages(&o)
	s.accounts, s.publicHost, s.contacts = o.Accounts, publicHost(o), o.Contacts
	if o.Rooms != nil {
		s.site = o.Rooms.PublicURL
	}
	s.echo.IPExtractor = s.clients.extractor()
	s.echo.SchemeExtractor = echo.ExtractSchemeDirect()
	s.echo.Use(s.frame)
	s.openAPI(o)
	s.routes()
	s.openConsole(o)
	return s
}

// openAPI sets up the management API.
func (s *Server) openAPI(o Options) {
	m := manage.Options{
		Control: o.Control, Activity: o.Activity, Accounts: o.Accounts, Live: o.Live, Webhooks: o.Webhooks,
		Sites: o.Sites, ServerToken: o.AdminToken,
		Status: func(err error) int { return s.describe(err).Status },
	}
	if o.Control != nil {
		m.Rooms, m.Keys = o.Rooms, o.Control.Store
	}
	if o.Rooms != nil {
		m.PublicURL = o.Rooms.PublicURL
	}
	s.api = manage.New(m)
	for _, r := range s.api.Routes() { // frame rejects requests without a valid token
		s.echo.Add(r.Method, r.Path, bounded(r.Handle))
	}
}

// openPages sets up the visitors' pages.
func (s *Server) openPages(o *Options) {
	if o.Assets == nil {
		o.Assets = ui.Dist()
	}
	var err error
	if s.pages, s.assets, err = loadPages(o.Assets, o.Log); err != nil {
		panic(err) // templates and messages are part of the program
	}
	publicURL := ""
	if o.Rooms != nil {
		publicURL = o.Rooms.PublicURL
	}
	if s.crossOrigin, err = crossOrigin(publicURL); err != nil {
		o.Log.Error("cannot use the public URL as an origin: forms may be refused", "err", err)
	}
}

// publicHost returns the host of the server's own address, without port.
func publicHost(o Options) string {
	if o.Rooms == nil {
		return ""
	}
	u, err := url.Parse(o.Rooms.PublicURL)
	if err != nil {
		return "" // logged by openPages
	}
	return strings.ToLower(u.Hostname())
}

func (s *Server) routes() {
	read := []string{http.MethodGet, http.MethodHead}
	s.echo.Match(read, "/", bounded(s.index))
	s.echo.Match(read, "/robots.txt", s.robotsText)
	s.echo.Match(read, "/.well-known/security.txt", s.securityText)
	for path := range pictures {
		s.echo.Match(read, path, s.picture)
	}
	s.echo.Match(read, "/livez", s.live)
	s.echo.Match(read, "/readyz", s.readyz)

	const inRoom = publicPath + ":slug"
	s.echo.Match(read, inRoom+"/checkpoint", bounded(s.inRoom(s.checkpoint)))
	s.echo.Match(read, inRoom+"/tile/*", bounded(s.inRoom(s.tile)))
	s.echo.Match(read, inRoom+"/jwks.json", s.inRoom(s.passKeys))
	s.echo.Match(read, inRoom+"/.well-known/openid-configuration", s.inRoom(s.discovery))
	s.echo.POST(inRoom+"/passes/:jti/redeem", bounded(s.inRoom(s.redeem)))
	s.echo.POST(inRoom+"/sessions/touch", bounded(s.inRoom(s.onPass((*room.Room).Touch))))
	s.echo.POST(inRoom+"/sessions/release", bounded(s.inRoom(s.onPass((*room.Room).Release))))
	s.echo.POST(inRoom+"/sessions/batch", bounded(s.inRoom(s.changeSessions)))
	s.echo.Match(read, inRoom+"/state", s.inRoom(s.state))
	s.echo.GET(inRoom+"/events", s.inRoom(s.events))
	s.echo.Match(read, inRoom+"/tickets/:ticket", s.inRoom(s.ticket))
	s.echo.Match(read, inRoom+"/tickets/:ticket/receipt", bounded(s.inRoom(s.receipt)))
	s.echo.POST(inRoom+"/tickets/:ticket/claim", bounded(s.inRoom(s.claim)))
	s.echo.POST(inRoom+"/tickets/:ticket/leave", bounded(s.inRoom(s.giveUp)))
	s.echo.POST(inRoom+"/join", s.inRoom(s.join))
	s.echo.POST(inRoom+"/beacon", bounded(s.inRoom(s.beaconRound)))

	s.echo.Match(read, assetsPath+"*", s.asset)
	s.echo.Match(read, publicPath+":slug", s.pageOf(s.linePage))
	s.echo.Match(read, inRoom+"/check", s.pageOf(s.checkPage))
	s.echo.Match(read, inRoom+"/fair", s.pageOf(s.fairPage))
	s.echo.Match(read, inRoom+"/report", s.pageOf(s.report))
	s.echo.Match(read, inRoom+"/brand.css", s.inLine(s.brandStyle))
	s.echo.Match(read, inRoom+"/logo", s.inLine(s.logo))
	s.echo.POST(inRoom+"/line", s.acts(s.line))
	s.echo.POST(inRoom+"/claim", s.acts(s.enter))
	s.echo.POST(inRoom+"/leave", s.acts(s.leave))
	s.echo.POST(inRoom+"/link", s.acts(s.link))
	s.echo.POST(inRoom+"/take", s.acts(s.take))
	s.queueItRoutes()
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// inRoom passes the room named in the path to handle.
func (s *Server) inRoom(handle func(echo.Context, *room.Room) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, err := s.rooms.Get(c.Request().Context(), c.Param("slug"))
		if err != nil {
			return err
		}
		if err := s.checkHost(c.Request(), r); err != nil {
			return err
		}
		return handle(c, r)
	}
}

// bounded ends the request's context after [answerTimeout].
func bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), answerTimeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

const documentation = "https://github.com/proofline/proofline"

// index redirects links made for Queue-it to their room, shows browsers the home page, and describes
// the server to programs.
func (s *Server) index(c echo.Context) error {
	if l, ok := parseQueueItLink(c.QueryParams()); ok {
		return s.followToLine(c, l)
	}
	if strings.Contains(c.Request().Header.Get("Accept"), "text/html") {
		return s.home(c)
	}
	return c.JSON(http.StatusOK, map[string]string{
		"name":          "proofline",
		"about":         "A virtual waiting room that can prove it was fair. The rooms are below /r/, their management below /v1/.",
		"documentation": documentation,
	})
}

// Package web is the HTTP interface of the server: the public resources of
// every room below /r/{slug}, and the management of rooms below /v1.
//
// Bodies are JSON, the resources of the log are what C2SP says they are, and
// every error is a problem document (RFC 9457, see PROBLEMS.md). Times are
// RFC 3339 in UTC with milliseconds.
//
//	GET  /r/{slug}/checkpoint, tile/...            the log (https://c2sp.org/tlog-tiles)
//	GET  /r/{slug}/state                           what everybody may know, cacheable
//	GET  /r/{slug}/events                          the same whenever it changes, to few
//	POST /r/{slug}/join                            record an arrival, answered with its receipt
//	GET  /r/{slug}/tickets/{ticket}[/receipt]      where one ticket stands
//	POST /r/{slug}/beacon                          a round that a draw waits for, from anybody
//	POST /r/{slug}/tickets/{ticket}/claim          a called ticket's pass, for its secret
//	POST /r/{slug}/tickets/{ticket}/leave          give a place up, for its secret
//	GET  /r/{slug}/jwks.json                       keys that verify passes
//	GET  /r/{slug}/.well-known/openid-configuration where a site finds them
//	POST /r/{slug}/passes/{jti}/redeem             use a pass up, by the site
//	POST /r/{slug}/sessions/touch, release, batch  whether visitors are still there
//	     /v1/...                                   management, with a bearer token, see package manage
//	GET  /r/{slug}[/check|/fair|/report], /assets/ pages for visitors, see package page
//	POST /r/{slug}/line|claim|leave|link           what visitors do on them
//	GET  /?c=CUSTOMER&e=SLUG, /cancel/...          links made for queue-it, see QUEUE-IT.md
//	GET  /.well-known/security.txt                 whom to tell of a vulnerability, if the server was told
//	GET  /livez                                    200 while the process answers
//	GET  /readyz                                   200 while the server can take joins, and how it does
//
// What is polled by every visitor is served from memory: the state document is
// rendered a few times a second however many ask, and answers to joins and
// ticket queries are written without reflection into memory that is used
// again. Whoever has a ticket's number may see where it stands; the secret
// behind it is the only credential, and neither stored nor logged.
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
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/console/live"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/manage"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/ui"
)

// Limits of a connection, and of what one request may take.
const (
	readTimeout     = 10 * time.Second // from the first byte of a request to its last; its header has no limit of its own
	writeTimeout    = 60 * time.Second
	idleTimeout     = 2 * time.Minute
	answerTimeout   = 15 * time.Second // for what waits on the database
	lastWords       = time.Second      // in which a server that stops tells clients to connect anew
	shutdownTimeout = 7 * time.Second  // for requests under way after that
	maxHeader       = 16 << 10         // bytes
)

// Options is what [New] needs. Rooms, AdminToken and Log must be given.
type Options struct {
	Rooms *room.Rooms
	// Desk does what the management API wants; nil: there is none.
	Desk *desk.Desk
	// AdminToken is the server's own bearer token of the management routes,
	// which acts in any organization. Without one it is nobody's.
	AdminToken string
	// Accounts are those of the organizers' pages, of tokens and of custom hosts;
	// nil: there is none of them.
	Accounts *account.Accounts
	// Live are the figures of rooms; nil: nobody sees any.
	Live *live.Live
	// Hooks are webhooks and alerts; nil: there are none.
	Hooks *hook.Hooks
	// Sites are what organizations protect; nil: there are none.
	Sites *sites.Sites
	// Version is the program's, for pages to show.
	Version string
	// Ready tells whether joins can be taken; nil: [room.Rooms.Ready].
	Ready func() bool
	// Assets are the built files of the pages; nil: those in the program.
	Assets fs.FS
	// MaxStreams is how many streams of events are open at most, such as
	// [DefaultStreams]; 0 for none.
	MaxStreams int
	// TrustedProxies are the networks whose X-Forwarded-For header is
	// believed. None: the connection's address counts.
	TrustedProxies []netip.Prefix
	// Contacts are URIs for reports of vulnerabilities, which security.txt names;
	// none: there is no such file.
	Contacts []string
	// Limits are the budgets of networks; nil: none is limited.
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

	refusal    atomic.Int64 // Unix time in nanoseconds of the latest note of a site's refusal
	maxStreams int
	streams    atomic.Int64  // open
	closing    chan struct{} // closed when the server stops
	draining   atomic.Bool   // every answer is the last one of its connection

	accounts   *account.Accounts // nil for none
	publicHost string            // the server's own
	site       string            // the server's own origin, empty for not known
	contacts   []string          // for reports of vulnerabilities

	pages       *page.Pages
	assets      map[string]*asset // by name
	crossOrigin *http.CrossOriginProtection
}

// New returns a server of the rooms.
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

// openAPI prepares the management.
func (s *Server) openAPI(o Options) {
	m := manage.Options{
		Desk: o.Desk, Accounts: o.Accounts, Live: o.Live, Hooks: o.Hooks, Sites: o.Sites, ServerToken: o.AdminToken,
		Status: func(err error) int { return s.describe(err).Status },
	}
	if o.Rooms != nil {
		m.PublicURL = o.Rooms.PublicURL
	}
	s.api = manage.New(m)
	for _, r := range s.api.Routes() { // frame lets nobody without a token near these
		s.echo.Add(r.Method, r.Path, bounded(r.Handle))
	}
}

// openPages prepares what visitors see.
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
		o.Log.Error("public URL is no origin: forms may be refused", "err", err)
	}
}

// publicHost is the host of the server's own address, without port.
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

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// inRoom finds the room that the path names.
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

// index leads people to the organizer's pages, those with a link made for
// queue-it to their room, and says to programs what this is.
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

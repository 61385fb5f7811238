// Package web is the HTTP interface of the server: the public resources of every room below
// /r/{slug}, the management API below /v1, and the pages for visitors and organizers.
//
// Bodies are JSON, the resources of the log follow C2SP, and every error is a problem document (RFC
// 9457, see PROBLEMS.md). Times are RFC 3339 in UTC with milliseconds.
//
//	GET  /r/{slug}/checkpoint, tile/...            the log (https://c2sp.org/tlog-tiles)
//	GET  /rooms/checkpoint, tile/...               the log of rooms: those that this server created, and their ends
//	GET  /r/{slug}/state                           the room's public state, cacheable
//	GET  /r/{slug}/events                          the state whenever it changes, as a stream; limited in number
//	POST /r/{slug}/join                            record an arrival, answered with its receipt
//	GET  /r/{slug}/tickets/{ticket}[/receipt]      the state of one ticket
//	GET  /r/{slug}/tickets/{ticket}/credentials    what it has shown after its arrival
//	POST /r/{slug}/tickets/{ticket}/credentials    show a credential after the arrival, authorized by the secret
//	POST /r/{slug}/credential                      a join, or one more lot, with the form of an issuer's page
//	POST /r/{slug}/beacon                          a beacon round that the room waits for, from any client
//	POST /r/{slug}/tickets/{ticket}/claim          a called ticket's pass, in exchange for its secret
//	POST /r/{slug}/tickets/{ticket}/leave          give up a place, authorized by its secret
//	POST /r/{slug}/tickets/{ticket}/extend         ask for more time to claim, once, authorized by the secret
//	GET  /r/{slug}/jwks.json                       keys that verify passes
//	GET  /r/{slug}/.well-known/openid-configuration discovery of these keys
//	POST /r/{slug}/passes/{jti}/redeem             redeem a pass, for the site
//	POST /r/{slug}/sessions/touch, release, batch  extend or end sessions, for the site
//	     /v1/...                                   management, with a bearer token, see package manage
//	GET  /r/{slug}[/check|/fair|/report], /assets/ pages for visitors, see package page
//	POST /r/{slug}/line|claim|extend|leave|link|take actions of visitors on these pages
//	GET  /?c=CUSTOMER&e=SLUG, /cancel/...          links made for Queue-it, see QUEUE-IT.md
//	GET  /.well-known/security.txt                 contacts for reports of vulnerabilities, if configured
//	GET  /livez                                    200 while the process answers
//	GET  /readyz                                   200 while the server can accept joins, with its health
//
// [Server] is the frame around its parts: it numbers requests, sets headers, guards the management API, and
// answers errors. A part serves some of the paths, and gets what it needs through its constructor; TestParts
// fails if a part is not registered.
//
// Resources that every visitor polls are served from memory: the state document is rendered at most
// a few times a second however many clients ask, and answers to joins and ticket queries are written
// without reflection into reused buffers. A ticket's number is enough to query its state. The secret
// behind it is the only credential, and is neither stored nor logged.
package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/web/client"
	"github.com/proofline/proofline/web/files"
	"github.com/proofline/proofline/web/health"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/manage"
	"github.com/proofline/proofline/web/observe"
	"github.com/proofline/proofline/web/reply"
	"github.com/proofline/proofline/web/requestid"
	"github.com/proofline/proofline/web/ui"
)

// Limits of connections and requests.
const (
	readTimeout     = 10 * time.Second // time limit for reading a whole request, including its header
	writeTimeout    = 60 * time.Second
	idleTimeout     = 2 * time.Minute
	answerTimeout   = 15 * time.Second // time limit of a request that needs the database
	lastWords       = time.Second      // time in which a stopping server asks clients to reconnect
	shutdownTimeout = 7 * time.Second  // time for open requests after that
	maxHeader       = 16 << 10         // bytes
)

// Options configures [New]. Rooms, AdminToken and Log are required.
type Options struct {
	Rooms *room.Rooms
	// Control serves the management API; nil: there is none.
	Control *control.Rooms
	// Keys stores the Idempotency-Keys of the management API; required with Control.
	Keys manage.Keys
	// Activity is the activity log; nil: the management API does not show it.
	Activity *activity.Log
	// AdminToken is the server's own bearer token for the management API, valid in every
	// organization. Empty: no token has this role.
	AdminToken string
	// Accounts serves the organizers' pages, API tokens and custom hosts; nil: there are none.
	Accounts *account.Accounts
	// Live serves the rooms' metrics; nil: there are none.
	Live *live.Live
	// Webhooks sends webhooks and alerts; nil: there are none.
	Webhooks *webhook.Service
	// Sites serves the organizations' sites; nil: there are none.
	Sites *sites.Sites
	// Reports provides the published audit reports of rooms; nil: there are none.
	Reports Reports
	// Version is the program's version, shown on pages.
	Version string
	// Ready reports whether the server can accept joins; nil: [room.Rooms.Ready].
	Ready func() bool
	// Assets holds the built files of the pages; nil: those embedded in the program.
	Assets fs.FS
	// MaxStreams is the maximum number of open event streams, such as [DefaultStreams]; 0: no
	// streams.
	MaxStreams int
	// Streams counts the open ones; nil: nobody else reads it.
	Streams *atomic.Int64
	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is used. Empty: the
	// connection's address counts.
	TrustedProxies []netip.Prefix
	// Contacts are URIs for reports of vulnerabilities, published in security.txt; empty: there is no
	// such file.
	Contacts []string
	// Issuer serves the server's own issuer below /issuer; nil: there is none.
	Issuer http.Handler
	// IsAway reports whether the issuer of a confirmation does not answer; nil: it is not known.
	IsAway func(*room.Room, *room.Confirmation) bool
	// Limits holds the budgets of networks; nil: no limits.
	Limits *limit.Limits
	// TLS is the configuration of TLS; nil: plain HTTP. HSTS is the value of Strict-Transport-Security; empty: none.
	TLS  *tls.Config
	HSTS string
	// Tracer traces requests; nil: they are not traced.
	Tracer *traces.Tracer
	Log    *slog.Logger
}

// Reports reads the audit reports that organizers have published. Error: [pgroom.ErrNotFound].
type Reports interface {
	Report(ctx context.Context, room uuid.UUID) (pgroom.Report, error)
	ReportHead(ctx context.Context, room uuid.UUID) (pgroom.Report, error) // reads a report without its page
}

// Server answers HTTP requests by means of its parts. Safe for concurrent use.
type Server struct {
	rooms    *room.Rooms
	api      *manage.API
	echo     *echo.Echo
	ids      requestid.Source
	observer observe.Observer
	clients  *client.Addresses
	budgets  *budgets
	problems problems
	failures *errorAnswers
	feed     *feed
	log      *slog.Logger
	tls      *tls.Config // nil: plain HTTP
	hsts     []string    // nil: none

	closing  chan struct{} // closed when the server stops
	draining atomic.Bool   // set while stopping: every answer closes its connection
}

// part serves some of the paths.
type part interface{ register(e *echo.Echo) }

// New returns a server for the given rooms.
func New(o Options) *Server {
	if o.Assets == nil {
		o.Assets = ui.Dist()
	}
	if o.Ready == nil {
		o.Ready = o.Rooms.Ready
	}
	s := &Server{
		rooms: o.Rooms, log: o.Log, echo: echo.New(), ids: requestid.New(), closing: make(chan struct{}),
		clients: client.New(o.TrustedProxies, o.Log), problems: problems{o.Ready},
	}
	s.observer = observe.Observer{Clients: s.clients, Tracer: o.Tracer, Log: o.Log}
	if s.tls = o.TLS; o.HSTS != "" {
		s.hsts = []string{o.HSTS}
	}
	s.budgets = &budgets{o.Limits, s.clients}
	s.feed = newFeed(s.budgets, o.MaxStreams, cmp.Or(o.Streams, &atomic.Int64{}), s.closing)
	s.echo.IPExtractor = s.clients.Extractor()
	s.echo.SchemeExtractor = echo.ExtractSchemeDirect()
	s.echo.Use(s.frame)
	s.openAPI(o)
	hosts := newCustomHosts(o)
	protection := crossOrigin(o)
	for _, p := range s.newParts(o, hosts, protection) {
		p.register(s.echo)
	}
	if o.Issuer != nil {
		s.echo.Any(issuerPath, echo.WrapHandler(o.Issuer))
	}
	if o.Accounts != nil {
		openConsole(o, hosts, protection, s.problems, s.closing).Register(s.echo)
	}
	return s
}

// newParts returns the parts that serve visitors, sites and monitoring.
func (s *Server) newParts(o Options, hosts *customHosts, protection *http.CrossOriginProtection) []part {
	built, static, err := files.Load(o.Assets, o.Contacts, o.Log)
	if err != nil {
		panic(err) // templates and messages are part of the program
	}
	r := &renderer{pages: built, isAway: o.IsAway}
	if o.Accounts != nil {
		r.organizations = o.Accounts.Organizations
	}
	s.failures = &errorAnswers{problems: s.problems, renderer: r, budgets: s.budgets, log: o.Log}
	finder, due := &roomFinder{o.Rooms, hosts}, &deadlines{}
	links := &queueItLinks{rooms: o.Rooms, hosts: hosts, log: o.Log}
	static.Register(s.echo)
	healthy := &health.Health{Rooms: o.Rooms, Ready: o.Ready, Draining: &s.draining}
	for path, answer := range healthy.Routes() {
		s.echo.Match(read, path, answer)
	}
	return []part{
		&home{
			renderer: r, hosts: hosts, budgets: s.budgets, links: links, site: o.publicURL(),
			hasConsole: o.Accounts != nil,
		},
		&resources{finder, joins{s.budgets, due}, sessions{s.budgets, due}, s.feed},
		&pages{
			renderer: r, finder: finder, hosts: hosts, budgets: s.budgets, reports: o.Reports,
			joins: joins{s.budgets, due},
		},
		&actions{finder, protection, s.budgets, due},
		links,
	}
}

// openAPI sets up the management API.
func (s *Server) openAPI(o Options) {
	m := manage.Options{
		Control: o.Control, Activity: o.Activity, Accounts: o.Accounts, Live: o.Live, Webhooks: o.Webhooks,
		Sites: o.Sites, ServerToken: o.AdminToken, PublicURL: o.publicURL(),
		Status: func(err error) int { return s.problems.describe(err).Status },
	}
	if o.Control != nil {
		m.Rooms, m.Keys = o.Rooms, o.Keys
	}
	s.api = manage.New(m)
	for _, r := range s.api.Routes() { // frame rejects requests without a valid token
		s.echo.Add(r.Method, r.Path, bounded(r.Handle))
	}
}

// publicURL returns the server's own origin; empty: unknown.
func (o *Options) publicURL() string {
	if o.Rooms == nil {
		return ""
	}
	return o.Rooms.PublicURL
}

// read lists the methods of requests that change nothing.
var read = []string{http.MethodGet, http.MethodHead}

const (
	inRoom     = publicPath + ":slug"
	issuerPath = "/issuer/*"
)

// resources serves the public resources of rooms.
type resources struct {
	finder   *roomFinder
	joins    joins
	sessions sessions
	feed     *feed
}

func (rs *resources) register(e *echo.Echo) {
	in := rs.finder.inRoom
	e.Match(read, registerPath+"checkpoint", rs.ofRooms(reply.Checkpoint))
	e.Match(read, registerPath+"tile/*", rs.ofRooms(reply.Tile))
	e.Match(read, inRoom+"/checkpoint", bounded(in(ofRoom(reply.Checkpoint))))
	e.Match(read, inRoom+"/tile/*", bounded(in(ofRoom(reply.Tile))))
	e.Match(read, inRoom+"/jwks.json", in(sendPassKeys))
	e.Match(read, inRoom+"/.well-known/openid-configuration", in(sendDiscovery))
	e.POST(inRoom+"/passes/:jti/redeem", bounded(in(rs.sessions.redeem)))
	e.POST(inRoom+"/sessions/touch", bounded(in(rs.sessions.onPass((*session.Sessions).Touch))))
	e.POST(inRoom+"/sessions/release", bounded(in(rs.sessions.onPass((*session.Sessions).Release))))
	e.POST(inRoom+"/sessions/batch", bounded(in(rs.sessions.change)))
	e.Match(read, inRoom+"/state", in(rs.feed.state))
	e.GET(inRoom+"/events", in(rs.feed.events))
	e.Match(read, inRoom+"/tickets/:ticket", in(sendTicket))
	e.Match(read, inRoom+"/tickets/:ticket/receipt", bounded(in(sendReceipt)))
	e.Match(read, inRoom+"/tickets/:ticket/credentials", in(sendShown))
	e.POST(inRoom+"/tickets/:ticket/claim", bounded(in(claimTicket)))
	e.POST(inRoom+"/tickets/:ticket/leave", bounded(in(changeTicket((*room.Room).Leave))))
	e.POST(inRoom+"/tickets/:ticket/extend", bounded(in(changeTicket((*room.Room).Extend))))
	e.POST(inRoom+"/tickets/:ticket/credentials", bounded(in(rs.joins.show)))
	e.POST(inRoom+"/join", in(rs.joins.join))
	e.POST(inRoom+"/beacon", bounded(in(takeRound)))
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

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

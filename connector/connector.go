package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// Errors of [New].
var (
	// ErrKey is returned when the key for cookies is shorter than 32 bytes.
	ErrKey = errors.New("the cookie key must have at least 32 random bytes")
	// ErrRules is returned when there are no rules, or rules from two sources.
	ErrRules = errors.New("exactly one of Site and Source must be given")
	// ErrPage is returned when a room's failure mode is the owner's page, and there is no page.
	ErrPage = errors.New(`a room's failure is "page": give the page`)
	// ErrSource is returned for a source that is neither a file nor an https URL,
	// and for a file with options that are for URLs only.
	ErrSource = errors.New("a source must be a file or an https URL (http on this machine); " +
		"Keep and SiteKey need a URL")
	// ErrServer is returned when there is a token, but no server for it.
	ErrServer = errors.New("the server must be an address without a path, such as https://queue.example.com " +
		"(http on this machine); by default it is the server of the rules' URL")
	// ErrToken is returned when the token's file holds no token, when both a token
	// and a file are given, and when the rules' server refuses the token.
	ErrToken = errors.New("the server token cannot be used")
	// ErrReports is returned when a room's mode needs reports, and there is no token.
	ErrReports = errors.New(`a room's mode is "safety-net": give the server, and a token with the scope connect`)
)

// Limits and intervals.
const (
	callTimeout         = 3 * time.Second  // request to a room
	maxResponse         = 1 << 20          // bytes read of a response
	DefaultProbe        = 5 * time.Second  // interval between polls of a room
	keysInterval        = 10 * time.Second // between key fetches because of unknown key ids
	touchInterval       = time.Minute      // between touches of a session
	leeway              = 5 * time.Second  // for clock skew in passes
	maxToken            = 2048             // bytes of a pass
	maxQueued           = 100_000          // touches and releases to send
	maxBatch            = 500              // touches and releases in one request
	batchInterval       = time.Second      // between batches, socket checks and writes of the state file
	maxUnrecorded       = 1_000            // fail-open intervals that the server has not recorded
	maxReportedFailOpen = 60               // fail-open intervals of a room in one report
	redeemRetryWindow   = 30 * time.Second // during which the room is asked again about a used pass
	maxPasses           = 100_000          // remembered passes in each passSet
	maxUnqueued         = 200_000          // known unqueued sessions of a room
	maxReportIDs        = 2_000            // ids of one kind and room in a report
	maxLengths          = 4                // longest unqueued session, in multiples of its length
	sweepInterval       = 10 * time.Second // between removals of expired unqueued sessions
	replyTTL            = 5 * time.Second  // of a reply to a report; then the gate's limits are shared by nodes
	maxFailOpen         = 100              // remembered fail-open intervals of a room
	logInterval         = time.Minute      // between log lines of one kind about requests
)

// Options configures [New]. Key is required, and one of Site and Source.
type Options struct {
	Site   *rules.Site // fixed rules
	Source *Source     // rules that may change
	// Server is the Proofline server that reports go to, such as
	// https://queue.example.com; empty: the server of the source's URL. Without a
	// Token there are no reports.
	Server string
	// Token is an API token of the organization with the scope connect. It is sent
	// to Server only.
	Token string
	// TokenFile is a file with the token instead. It is read before each use, so
	// that the token can be replaced before it expires.
	TokenFile string
	// Kind and Version name this program in reports; empty: middleware, and this
	// module's version.
	Kind, Version string
	// Key signs the cookies: 32 random bytes or more, the same on all nodes of a
	// site. A new key ends all sessions.
	Key []byte
	// Client sends requests to rooms and to the source. nil: one with a timeout of 3 s.
	Client *http.Client
	// TrustedProxies are the networks of the site's own proxies, whose
	// X-Forwarded-For, -Proto and -Host are believed. Empty: only the connection counts.
	TrustedProxies []netip.Prefix
	// Page is the HTML page for rooms whose failure is "page".
	Page []byte
	// State is a file of this process alone. It keeps fail-open intervals until the
	// server has recorded them, and the gates that are open, so that gates stay open
	// when the connector restarts while the server is away. Without a token it is not
	// used. Empty: none.
	State string
	// Probe is the interval between polls of a room; 0: [DefaultProbe].
	Probe time.Duration
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: slog.Default

	// 0: the documented default; a negative reportInterval reports only on Close.
	reportInterval, batchInterval time.Duration
}

// Connector admits visitors with a session or a pass. It is safe for concurrent use.
type Connector struct {
	options    Options
	signer     *signer
	clients    []byte // key of the client pseudonyms sent to rooms
	node       string // our name in reports
	current    atomic.Pointer[config]
	ended      passSet // sessions that ended before their cookies expire
	redeemed   passSet // used passes
	proven     proofs
	holders    holders
	denied     passSet     // used passes, with a client that the room has refused
	unrecorded unrecorded  // fail-open intervals that the server has not recorded
	saved      stateWriter // writes Options.State
	touches    touchTimes
	sockets    sockets
	outbox     *outbox
	probeNow   chan struct{} // rooms should be probed now
	reportNow  chan struct{} // new rules should be reported now
	counts     counts
	bearer     bearer
	loading    *loader // nil: Options.Site

	reporting      sync.Mutex   // held while a report is being sent
	hostLogged     atomic.Int64 // last log line about an unknown host, ms since 1970
	networkLogged  atomic.Int64 // last log line about a network over its limit, ms since 1970
	unsignedLogged atomic.Int64 // last log line about unsigned return URLs, ms since 1970

	stop context.CancelFunc
	done sync.WaitGroup
}

// config is the rules in force, with their rooms.
type config struct {
	loadedRules
	rooms  map[string]*room // by name
	byURL  map[string]*room
	states []*roomState // each once; also of former rooms with something left to report
}

// New returns a connector that runs until [Connector.Close]. It also does if the
// server of the source does not respond: see [Connector.HasRules]. Errors: [ErrKey],
// [ErrRules], [ErrPage], [ErrSource], [ErrServer], [ErrToken], [ErrReports],
// [ErrSiteKey], and errors of the source.
func New(o Options) (*Connector, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	c := &Connector{
		options: o, signer: newSigner(o.Key), clients: derive(o.Key, clientLabel), node: newID(), outbox: newOutbox(),
		probeNow: make(chan struct{}, 1), reportNow: make(chan struct{}, 1),
		bearer: bearer{file: o.TokenFile, log: o.Log, text: o.Token},
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.loadState()
	if err := c.load(ctx); err != nil {
		cancel()
		return nil, err
	}
	c.saveState()
	c.start(ctx)
	return c, nil
}

// start starts the background work. With a token it waits for the reply to a first
// report, or its failure. Otherwise the first visitors would be sent to a room
// whose gate is open, or without a signed return URL.
func (c *Connector) start(ctx context.Context) {
	hasReported := c.options.Token != "" && (c.options.reportInterval >= 0 || c.hasGate())
	if hasReported {
		if _, err := c.sendReport(ctx, 0); err != nil {
			c.options.Log.Error("cannot send the first report", "err", err)
		}
	}
	c.goGuarded(ctx, "probing rooms", c.probe)
	c.goGuarded(ctx, "sending batches", c.deliver)
	c.goGuarded(ctx, "watching upgraded connections", c.watchSockets)
	if c.options.Token != "" {
		c.goGuarded(ctx, "reporting", func(ctx context.Context) { c.reports(ctx, hasReported) })
	}
	if c.saved.file != "" {
		c.goGuarded(ctx, "saving state", c.saveChanges)
	}
	if c.loading != nil {
		c.goGuarded(ctx, "loading rules", func(ctx context.Context) { c.loading.run(ctx, c) })
	}
}

// fill validates the options and sets defaults.
func (o *Options) fill() error {
	if len(o.Key) < 32 {
		return ErrKey
	}
	if (o.Site == nil) == (o.Source == nil) {
		return ErrRules
	}
	if err := o.fillToken(); err != nil {
		return err
	}
	if o.Server == "" && o.Source != nil && isSafe(o.Source.URL) {
		o.Server = originOf(o.Source.URL)
	}
	o.Server = strings.TrimSuffix(o.Server, "/")
	isOrigin := isSafe(o.Server) && originOf(o.Server) == strings.ToLower(o.Server)
	if o.Server != "" && !isOrigin || o.Server == "" && o.Token != "" {
		return ErrServer
	}
	o.Server = originOf(o.Server)
	if o.Kind == "" {
		o.Kind = "middleware"
	}
	if o.Version == "" {
		o.Version = ownVersion()
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: callTimeout}
	}
	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.Client = &client
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Probe == 0 {
		o.Probe = DefaultProbe
	}
	if o.batchInterval == 0 {
		o.batchInterval = batchInterval
	}
	return nil
}

// Close stops the background work, after sending what is queued as far as rooms
// and server answer.
func (c *Connector) Close() {
	c.endAllFailOpen()
	c.stop()
	c.done.Wait()
	c.saveState()
}

// use puts rules into force. Rooms that stay keep their state. Errors: [ErrPage],
// [ErrReports].
func (c *Connector) use(f *loadedRules) error {
	next := &config{loadedRules: *f, rooms: map[string]*room{}, byURL: map[string]*room{}}
	links := map[string]*roomState{}
	old := c.current.Load()
	if old != nil {
		for _, st := range old.states {
			links[st.url+"\n"+st.origin] = st
		}
	}
	for name, r := range f.site.Rooms {
		switch {
		case r.Failure == rules.Page && len(c.options.Page) == 0:
			return fmt.Errorf("room %s: %w", name, ErrPage)
		case r.Mode == rules.SafetyNet && c.options.Token == "":
			return fmt.Errorf("room %s: %w", name, ErrReports)
		}
		id := r.URL + "\n" + r.Origin
		if links[id] == nil {
			links[id] = c.newRoomState(r.URL, r.Origin)
		}
		rm := newRoom(name, r, links[id])
		if !slices.Contains(next.states, rm.state) {
			next.states = append(next.states, rm.state)
		}
		next.rooms[name], next.byURL[r.URL] = rm, rm
	}
	if old != nil {
		c.dropRooms(old, next)
	}
	c.current.Store(next)
	if old != nil {
		notify(c.reportNow)
	}
	return nil
}

// dropRooms ends the fail-open intervals of rooms that the new rules do not name,
// and keeps their states while there is something to report.
func (c *Connector) dropRooms(old, next *config) {
	for _, st := range old.states {
		if !slices.Contains(next.states, st) {
			st.mu.Lock()
			c.endFailOpen(st, c.options.Now(), queueingAgain)
			st.mu.Unlock()
			if st.gate.hasNews() {
				next.states = append(next.states, st)
			}
		}
	}
}

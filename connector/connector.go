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
	ErrKey = errors.New("the key for cookies must have at least 32 random bytes")
	// ErrRules is returned when there are no rules, or rules from two sources.
	ErrRules = errors.New("exactly one of Site and Source must be given")
	// ErrPage is returned when rules show the owner's page on failures, and there is none.
	ErrPage = errors.New(`a room's failure is "page": give the page`)
	// ErrSource is returned when a source is neither a file nor a URL of https,
	// or a file has what only goes with a URL.
	ErrSource = errors.New("a source must be a file, or a URL of https (http on this machine), with which alone Keep and SiteKey go")
	// ErrServer is returned when there is a token, but no server for it.
	ErrServer = errors.New("the server must be an address without path, such as https://queue.example.com (http on this machine); it is that of the rules' URL unless it is said")
	// ErrToken is returned when a token's file has no token, there are a token and
	// a file, or the server of the rules refuses the token.
	ErrToken = errors.New("the token for the server cannot be used")
	// ErrReports is returned when rules need reports, and there is no token.
	ErrReports = errors.New(`a room's mode is "safety-net": give the server, and a token with the scope connect`)
)

// Limits and waits.
const (
	callTimeout         = 3 * time.Second  // of one request to a room
	maxResponse         = 1 << 20          // bytes that are read of an answer
	DefaultProbe        = 5 * time.Second  // how often rooms are asked whether they are there
	keysInterval        = 10 * time.Second // between fetches of keys because of unknown ones
	touchInterval       = time.Minute      // between touches of a session
	leeway              = 5 * time.Second  // of clocks, in passes
	maxToken            = 2048             // bytes of a pass
	maxQueued           = 100_000          // touches and releases under way
	maxBatch            = 500              // of these in one request
	batchInterval       = time.Second      // between requests with them, looks at sockets, and writings of unguarded times
	maxUnrecorded       = 1_000            // openings that are not recorded yet
	maxReportedFailOpen = 60               // of a room in a report
	redeemRetryWindow   = 30 * time.Second // in which a room answers a client again about a used pass
	maxPasses           = 100_000          // sessions known to be over, and passes to be used up
	maxUnqueued         = 200_000          // free sessions of a room that are known here
	maxReportIDs        = 2_000            // ids of a kind and room in a report
	maxLengths          = 4                // times its length that a free session lasts at most
	sweepInterval       = 10 * time.Second // between looks at which free sessions are over
	replyTTL            = 5 * time.Second  // after which the latest answer to a report does not count
	maxFailOpen         = 100              // remembered openings of a room
	logInterval         = time.Minute      // between lines of the log about requests of one kind
)

// Options is what [New] needs. Key and one of Site and Source must be given.
type Options struct {
	Site   *rules.Site // rules that do not change
	Source *Source     // rules that do
	// Server is the Proofline server that is told of this connector, such as
	// https://queue.example.com; empty: that of the source's URL. Without a Token
	// nobody is.
	Server string
	// Token is an API token of the organization, with the scope connect. It goes
	// to Server alone.
	Token string
	// TokenFile has the token instead. It is read each time, so that another
	// token takes the place of one that ends.
	TokenFile string
	// Kind and Version are what reports say that this program is; empty:
	// middleware, and the version of this module.
	Kind, Version string
	// Key signs the cookies: 32 random bytes or more, the same on all nodes of
	// a site. Another key ends all sessions here.
	Key []byte
	// Client speaks to rooms and to the source. nil: one that waits 3 s.
	Client *http.Client
	// TrustedProxies are the networks of the site's own proxies, whose
	// X-Forwarded-For, -Proto and -Host are believed. None: the connection counts.
	TrustedProxies []netip.Prefix
	// Page is what visitors see where a room's failure is "page": HTML.
	Page []byte
	// State is a file, of this process alone, that keeps times in which everybody
	// was let through until the server has recorded them, so that a restart loses
	// none, and the gates that are open, so that a restart while the server is away
	// shuts none. Empty, or without a token: nothing is kept.
	State string
	// Probe is how often rooms are asked whether they are there; 0: [DefaultProbe].
	Probe time.Duration
	Now   func() time.Time // nil: the system's clock
	Log   *slog.Logger     // nil: the default one

	reportInterval, batchInterval time.Duration // between requests; 0: as it is documented; reportAgain below 0: only at the end
}

// Connector lets visitors with a pass through. Safe for concurrent use.
type Connector struct {
	options    Options
	signer     *signer
	clients    []byte // key of what a room is told of clients
	node       string // our name in reports
	current    atomic.Pointer[config]
	ended      passSet // sessions that are over although their cookies are good
	redeemed   passSet // passes that were used up: rooms need not be asked again
	proven     proofs
	holders    holders
	denied     passSet     // such passes with the clients that rooms have denied them to
	unrecorded unrecorded  // openings that the server has not recorded
	saved      stateWriter // of them
	touches    touchTimes
	sockets    sockets
	outbox     *outbox
	probeNow   chan struct{} // rooms are to be asked whether they are there
	reportNow  chan struct{} // the server is to be told of new rules
	counts     counts
	bearer     bearer
	loading    *loader // nil: the rules are fixed

	reporting      sync.Mutex   // held while a report is under way
	hostLogged     atomic.Int64 // when a host was logged that is not in the rules, ms since 1970
	networkLogged  atomic.Int64 // when a network was logged of which too many come
	unsignedLogged atomic.Int64 // when it was logged that no way back is signed

	stop context.CancelFunc
	done sync.WaitGroup
}

// state is what follows from the rules.
type config struct {
	loadedRules
	rooms  map[string]*room // by name
	byURL  map[string]*room
	states []*roomState // of all of them, each once, and of others that are reported
}

// New returns a connector that runs until [Connector.Close]. A source whose
// server does not answer is no error: see [Connector.HasRules]. Errors: [ErrKey],
// [ErrRules], [ErrPage], [ErrSource], [ErrServer], [ErrToken], [ErrReports],
// [ErrSiteKey], and why the source gives no rules.
func New(o Options) (*Connector, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	c := &Connector{options: o, signer: newSigner(o.Key), clients: derive(o.Key, clientLabel), node: newID(), outbox: newOutbox(), probeNow: make(chan struct{}, 1), reportNow: make(chan struct{}, 1), bearer: bearer{file: o.TokenFile, log: o.Log, text: o.Token}}
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

// begin starts the work in the background. With a token, visitors come only
// once the server has answered or does not: else the first would be led to a line
// that is not needed, or without a signed way back.
func (c *Connector) start(ctx context.Context) {
	hasReported := c.options.Token != "" && (c.options.reportInterval >= 0 || c.hasGate())
	if hasReported {
		if _, err := c.sendReport(ctx, 0); err != nil {
			c.options.Log.Error("the first report is not answered", "err", err)
		}
	}
	c.goGuarded(ctx, "questions to rooms", c.probe)
	c.goGuarded(ctx, "deliveries to rooms", c.deliver)
	c.goGuarded(ctx, "the care of upgraded connections", c.watchSockets)
	if c.options.Token != "" {
		c.goGuarded(ctx, "reports", func(ctx context.Context) { c.reports(ctx, hasReported) })
	}
	if c.saved.file != "" {
		c.goGuarded(ctx, "the record of unguarded times", c.saveChanges)
	}
	if c.loading != nil {
		c.goGuarded(ctx, "the search for rules", func(ctx context.Context) { c.loading.run(ctx, c) })
	}
}

// fill checks options, and fills in what is not said.
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
	if o.Server != "" && (!isSafe(o.Server) || originOf(o.Server) != strings.ToLower(o.Server)) || o.Server == "" && o.Token != "" {
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

// Close ends the work in the background, once what is queued has been told to
// the rooms or one of them does not answer.
func (c *Connector) Close() {
	c.endAllFailOpen()
	c.stop()
	c.done.Wait()
	c.saveState()
}

// use takes rules into force. Rooms that stay keep what is known of them.
// Errors: [ErrPage], [ErrReports].
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

// leave ends what goes on with rooms that the rules do not name any more. Of
// those there may still be something to report.
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

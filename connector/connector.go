package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
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
	// ErrSource is returned when a source is neither a file nor a URL of https.
	ErrSource = errors.New("a source must be a file, or a URL of https (http on this machine)")
)

// Limits and waits.
const (
	callTimeout  = 3 * time.Second  // of one request to a room
	DefaultProbe = 5 * time.Second  // how often rooms are asked whether they are there
	keysAgain    = 10 * time.Second // between fetches of keys because of unknown ones
	touchAgain   = time.Minute      // between touches of a session
	leeway       = 5 * time.Second  // of clocks, in passes
	maxToken     = 2048             // bytes of a pass
	maxQueued    = 4096             // touches and releases under way
	maxOver      = 100_000          // sessions known to be over, and passes to be used up
	maxLive      = 200_000          // free sessions of a room that are known here
	maxNews      = 2_000            // ids of a kind and room in a report
	maxSlides    = 4                // times its length that a free session lasts at most
	liveAgain    = 10 * time.Second // between looks at which free sessions are over
	answerLate   = 5 * time.Second  // after which the latest answer to a report does not count
	maxIntervals = 100              // remembered openings of a room
)

// Options is what [New] needs. Key and one of Site and Source must be given.
type Options struct {
	Site   *rules.Site // rules that do not change
	Source *Source     // rules that do
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
	// Probe is how often rooms are asked whether they are there; 0: [DefaultProbe].
	Probe time.Duration
	Now   func() time.Time // nil: the system's clock
	Log   *slog.Logger     // nil: the default one
}

// Connector lets visitors with a pass through. Safe for concurrent use.
type Connector struct {
	options Options
	signer  *signer
	current atomic.Pointer[state]
	over    passSet // sessions that are over although their cookies are good
	spent   passSet // passes that were used up: rooms need not be asked again
	touched touchTimes
	jobs    chan job
	counts  counts
	loading *loader // nil: the rules are fixed

	stop context.CancelFunc
	done sync.WaitGroup
}

// state is what follows from the rules.
type state struct {
	site   *rules.Site
	serial uint64           // of signed rules
	doors  map[string]*door // by name
	byURL  map[string]*door
}

// New returns a connector that runs until [Connector.Close]. Errors: [ErrKey],
// [ErrRules], [ErrPage], [ErrSource], and why the source gives no rules.
func New(o Options) (*Connector, error) {
	if len(o.Key) < 32 {
		return nil, ErrKey
	}
	if (o.Site == nil) == (o.Source == nil) {
		return nil, ErrRules
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
	c := &Connector{options: o, signer: newSigner(o.Key), jobs: make(chan job, maxQueued)}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	if err := c.load(ctx); err != nil {
		cancel()
		return nil, err
	}
	c.done.Go(func() { c.probe(ctx) })
	for range reporters {
		c.done.Go(func() { c.report(ctx) })
	}
	if c.loading != nil {
		c.done.Go(func() { c.loading.run(ctx, c) })
	}
	return c, nil
}

// Close ends the work in the background, once what is queued has been told to
// the rooms or one of them does not answer.
func (c *Connector) Close() {
	c.stop()
	c.done.Wait()
}

// use takes rules into force. Rooms that stay keep what is known of them.
// Error: [ErrPage].
func (c *Connector) use(site *rules.Site) error {
	next := &state{site: site, doors: map[string]*door{}, byURL: map[string]*door{}}
	old := c.current.Load()
	for name, r := range site.Rooms {
		if r.Failure == rules.Page && len(c.options.Page) == 0 {
			return fmt.Errorf("room %s: %w", name, ErrPage)
		}
		d := newDoor(name, r)
		if old != nil {
			if before, ok := old.doors[name]; ok && before.URL == r.URL && before.Origin == r.Origin {
				d.link = before.link
			}
		}
		next.doors[name], next.byURL[r.URL] = d, d
	}
	c.current.Store(next)
	return nil
}

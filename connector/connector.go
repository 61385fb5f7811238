package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/address"
	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/internal/source"
	"github.com/proofline/proofline/connector/internal/state"
	"github.com/proofline/proofline/connector/internal/token"
	"github.com/proofline/proofline/connector/rules"
)

// Errors of [New].
var (
	// ErrKey is returned when the key for cookies is shorter than 32 bytes.
	ErrKey = errors.New("the cookie key must have at least 32 random bytes")
	// ErrRules is returned when there are no rules, or rules from two sources.
	ErrRules = errors.New("exactly one of Site and Source must be given")
	// ErrPage is returned when a room's failure mode is the owner's page, but there is no page.
	ErrPage = errors.New(`a room's failure mode is "page": give the page`)
	// ErrSource is returned for a source that is neither a file nor an https URL,
	// and for a file with options that are for URLs only.
	ErrSource = source.ErrSource
	// ErrServer is returned when there is a token, but no server for it.
	ErrServer = errors.New("the server must be an address without a path, such as https://queue.example.com " +
		"(http on this machine); by default it is the server of the rules' URL")
	// ErrToken is returned when the token's file holds no token, when both a token
	// and a file are given, and when the rules' server refuses the token.
	ErrToken = token.ErrToken
	// ErrReports is returned when a room's mode needs reports, but there is no token.
	ErrReports = errors.New(`a room's mode is "safety-net": give the server, and a token with the scope connect`)
)

const (
	// DefaultProbe is the default interval between polls of a room.
	DefaultProbe = 5 * time.Second
	// batchInterval is the default time between batches, checks of sockets and writes of the state file.
	batchInterval = time.Second
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
	// TrustedProxies are the networks of the site's own proxies, whose X-Forwarded-For, -Proto and
	// -Host are trusted. Empty: only the connection counts.
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

// Source is the source of rules that may change while the connector runs. Invalid new rules are
// logged, and the current ones stay in force.
type Source struct {
	// File is polled every 2 s.
	File string
	// URL is polled every 10 s.
	URL string
	// SiteKey is the verifier key of the rules' signature. The URL must then be one
	// such as https://SERVER/v1/sites/NAME/rules: see rules/FORMAT.md. Empty: plain
	// JSON without a signature.
	SiteKey string
	// Keep is a file for a copy of the latest rules from URL, for starts while the
	// URL does not respond. With a site key the copy's signature is checked, and
	// rules older than the copy are refused. Empty: no copy.
	Keep string
}

// Errors of signed rules.
var (
	// ErrSiteKey is returned when the site key is not a verifier key, or the URL
	// is not that of a site's rules.
	ErrSiteKey = source.ErrSiteKey
	// ErrUnsigned is returned when rules are not signed by the site key.
	ErrUnsigned = source.ErrUnsigned
	// ErrOtherSite is returned when signed rules belong to another site.
	ErrOtherSite = source.ErrOtherSite
	// ErrOlder is returned when signed rules are older than rules already seen, or have the same
	// version but a different text.
	ErrOlder = source.ErrOlder
	// ErrNeedsKey is returned when rules are signed, but there is no site key.
	ErrNeedsKey = source.ErrNeedsKey
)

// Connector admits visitors with a session or a pass. It is safe for concurrent use.
type Connector struct {
	options Options
	current atomic.Pointer[config]
	page    atomic.Pointer[[]byte] // of rooms whose failure is "page"
	group   *background.Group
	client  *roomapi.Client
	token   *token.Token
	loader  *source.Loader // nil: Options.Site

	sessions *sessions
	redeemer *roomapi.Redeemer
	counts   counts

	reporter   *report.Reporter  // nil: no token
	unrecorded *reach.Unrecorded // nil: no token
	file       *state.File       // nil: none
	savedGates state.Gates       // gates as saved in the file

	probeNow       chan struct{}       // rooms should be probed now
	hostLogged     background.LogLimit // for unknown hosts
	networkLogged  background.LogLimit // for networks over their limit
	unsignedLogged background.LogLimit // for unsigned return URLs

	stop context.CancelFunc
}

// config holds the rules in force, with their rooms.
type config struct {
	source.Rules
	rooms  map[string]*room // rooms by name
	byURL  map[string]*room
	states []*roomState // one per room, including former rooms with something left to report
}

// New returns a connector that runs until [Connector.Close]. New succeeds even if the server of the
// source does not respond: see [Connector.HasRules]. Errors: [ErrKey], [ErrRules], [ErrPage],
// [ErrSource], [ErrServer], [ErrToken], [ErrReports], [ErrSiteKey], and errors of the source.
func New(o Options) (*Connector, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	group := background.New(o.Log)
	c := &Connector{
		options: o, group: group, client: roomapi.NewClient(o.Client, group), probeNow: make(chan struct{}, 1),
		token: token.New(o.Token, o.TokenFile, o.Log), redeemer: roomapi.NewRedeemer(o.Key, o.Now),
	}
	c.page.Store(&o.Page)
	c.sessions = newSessions(&o, group)
	if o.Token != "" {
		c.unrecorded = reach.NewUnrecorded()
		c.reporter = c.newReporter()
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

// newReporter returns the reporter to the server.
func (c *Connector) newReporter() *report.Reporter {
	return report.New(report.Options{
		Server: c.options.Server, Node: id.Text(id.New()), Kind: c.options.Kind, Version: c.options.Version,
		Interval: c.options.reportInterval, Content: c.reportContent, Client: c.client, Token: c.token,
		Sessions: c.sessions.store, FailOpen: c.unrecorded, Unreachable: c.probeNow, Now: c.options.Now,
		Log: c.options.Log,
	})
}

// reportContent returns what to report now.
func (c *Connector) reportContent() report.Content {
	now := c.current.Load()
	counts := c.countsByName()
	now.addObserved(counts, c.options.Now())
	content := report.Content{Site: now.Name, Version: now.Version, Counts: counts}
	modes := map[*roomState]rules.Mode{}
	for _, rm := range now.rooms {
		if modes[rm.state] != rules.SafetyNet {
			modes[rm.state] = rm.Mode
		}
	}
	for _, st := range now.states {
		mode, ok := modes[st]
		if !ok { // the room is no longer in the rules
			mode = rules.Off
		}
		content.Rooms = append(content.Rooms, report.RoomContent{Room: st.reported, Mode: mode})
	}
	return content
}

// load puts the first rules into force.
func (c *Connector) load(ctx context.Context) error {
	if c.options.Site != nil {
		return c.use(&source.Rules{Site: c.options.Site})
	}
	o := source.Options{Client: c.options.Client, Group: c.group, Now: c.options.Now, Log: c.options.Log}
	if address.OriginOf(c.options.Source.URL) == c.options.Server && c.options.Token != "" {
		o.Token = c.token
	}
	l, err := source.New(source.Source(*c.options.Source), o)
	if err != nil {
		return err
	}
	c.loader = l
	return l.First(ctx, c.use)
}

// start starts the background work. With a token it waits for the reply to a first
// report, or its failure. Otherwise the first visitors would be sent to a room
// whose gate is open, or without a signed return URL.
func (c *Connector) start(ctx context.Context) {
	hasReported := c.reporter != nil && c.reporter.First(ctx)
	c.group.Go(ctx, "probing rooms", c.probe)
	c.group.Go(ctx, "sending batches", c.sessions.outbox.Deliver)
	c.group.Go(ctx, "watching upgraded connections", func(ctx context.Context) {
		c.sessions.watchSockets(ctx, c.options.batchInterval)
	})
	if c.reporter != nil {
		c.group.Go(ctx, "reporting", func(ctx context.Context) { c.reporter.Run(ctx, hasReported) })
	}
	if c.file != nil {
		c.group.Go(ctx, "saving state", c.saveChanges)
	}
	if c.loader != nil {
		c.group.Go(ctx, "loading rules", func(ctx context.Context) { c.loader.Run(ctx, c.use) })
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
	if o.Server == "" && o.Source != nil && address.IsSafe(o.Source.URL) {
		o.Server = address.OriginOf(o.Source.URL)
	}
	o.Server = strings.TrimSuffix(o.Server, "/")
	isOrigin := address.IsSafe(o.Server) && address.OriginOf(o.Server) == strings.ToLower(o.Server)
	if o.Server != "" && !isOrigin || o.Server == "" && o.Token != "" {
		return ErrServer
	}
	o.Server = address.OriginOf(o.Server)
	if o.Kind == "" {
		o.Kind = "middleware"
	}
	if o.Version == "" {
		o.Version = ownVersion()
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: roomapi.Timeout}
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

// fillToken sets Token from TokenFile. Error: [ErrToken].
func (o *Options) fillToken() (err error) {
	if o.TokenFile == "" {
		return nil
	}
	if o.Token != "" {
		return fmt.Errorf("%w: give either Token or TokenFile", ErrToken)
	}
	o.Token, err = token.Read(o.TokenFile)
	return err
}

// Close stops the background work, after sending what is queued, as far as rooms and server answer.
func (c *Connector) Close() {
	for _, st := range c.current.Load().states { // so that the last report includes open intervals
		st.reach.End(c.options.Now(), "connector is shutting down during a fail-open interval")
	}
	c.stop()
	c.group.Wait()
	c.saveState()
}

// use puts rules into force. Rooms that stay keep their state. Errors: [ErrPage],
// [ErrReports].
func (c *Connector) use(f *source.Rules) error {
	next := &config{Rules: *f, rooms: map[string]*room{}, byURL: map[string]*room{}}
	states := map[string]*roomState{}
	old := c.current.Load()
	if old != nil {
		for _, st := range old.states {
			states[st.server.URL()+"\n"+st.server.Origin()] = st
		}
	}
	for name, r := range f.Site.Rooms {
		switch {
		case r.Failure == rules.Page && len(*c.page.Load()) == 0:
			return fmt.Errorf("room %s: %w", name, ErrPage)
		case r.Mode == rules.SafetyNet && c.options.Token == "":
			return fmt.Errorf("room %s: %w", name, ErrReports)
		}
		key := r.URL + "\n" + r.Origin
		if states[key] == nil {
			states[key] = c.newRoomState(r.URL, r.Origin)
		}
		rm := &room{session.NewRoom(name, r), states[key]}
		if !slices.Contains(next.states, rm.state) {
			next.states = append(next.states, rm.state)
		}
		next.rooms[name], next.byURL[r.URL] = rm, rm
	}
	if old != nil {
		c.dropRooms(old, next)
	}
	c.current.Store(next)
	if old != nil && c.reporter != nil {
		c.reporter.Soon()
	}
	return nil
}

// Reload puts the rules of the source into force at once, even if they seem to be unchanged. After an error the current
// ones stay in force.
func (c *Connector) Reload(ctx context.Context) error {
	if c.loader == nil {
		return nil
	}
	return c.loader.ReloadAll(ctx, c.use)
}

// SetPage replaces Options.Page. Error: [ErrPage], if there is none.
func (c *Connector) SetPage(page []byte) error {
	if len(page) == 0 {
		return ErrPage
	}
	c.page.Store(&page)
	return nil
}

// dropRooms ends the fail-open intervals of rooms that the new rules do not name,
// and keeps their states while there is something to report.
func (c *Connector) dropRooms(old, next *config) {
	for _, st := range old.states {
		if !slices.Contains(next.states, st) {
			st.reach.End(c.options.Now(), "visitors wait in line again")
			if st.gate.HasNews() {
				next.states = append(next.states, st)
			}
		}
	}
}

// modulePath is the path of this module.
const modulePath = "github.com/proofline/proofline"

// ownVersion returns the version of this module in the running program.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == modulePath {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return "unknown"
}

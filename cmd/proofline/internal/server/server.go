// Package server starts and stops a Proofline server as a [Config] describes it: database, secrets,
// rooms, organizers' services, HTTP. Each step registers a function that undoes it; [Server.Stop]
// calls these in reverse order.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/cmd/proofline/internal/listen"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/outsider"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/export"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/mark/bucket"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web"
	issuerweb "github.com/proofline/proofline/web/issuer"
	"github.com/proofline/proofline/web/limit"
)

var (
	// ErrNoMasterKey is returned when a database URL is given without the master
	// key of its rooms.
	ErrNoMasterKey = errors.New("a database URL needs a master key")
	// ErrNoDatabase is returned when the owner's database URL is given without the
	// server's own.
	ErrNoDatabase = errors.New("an owner's database URL needs a database URL")
	// ErrKeyLost is returned when the private PostgreSQL has rooms, but the file of
	// their master key is missing.
	ErrKeyLost = errors.New("the master key's file is missing")
	// ErrPublicURL is returned when a text is not a URL that rooms can be published
	// under.
	ErrPublicURL = errors.New("not a public URL")
)

// Config configures a server.
type Config struct {
	// Addr is the address to listen on, host:port; port 0 picks a free one.
	Addr string
	// MetricsAddr is the address that serves /metrics and /debug/pprof/, host:port,
	// to every client that reaches it; empty: off.
	MetricsAddr string
	// HTTPS is how the server speaks TLS; nil: plain HTTP.
	HTTPS *https.Server
	// Data is the directory of the secrets and, without DatabaseURL, of a private
	// PostgreSQL. Start creates it if it does not exist.
	Data string
	// PublicURL is the URL at which visitors reach the server, such as
	// https://example.com; empty: Addr. New rooms are named after it.
	PublicURL string
	// DatabaseURL is the URL of a PostgreSQL database; empty: start a private one.
	DatabaseURL string
	// OwnerURL is the URL of the same database for the owner of its schema, which
	// runs the migrations; empty: DatabaseURL.
	OwnerURL string
	// DatabaseWait is how long Start waits for a database that does not answer;
	// 0: no limit.
	DatabaseWait time.Duration
	// MasterKey is the key that seals the rooms' keys, or the name of its file;
	// empty: Data/master-key, which is created for a private PostgreSQL.
	MasterKey string
	// MarksS3 is the URL of a bucket, s3://BUCKET/PREFIX, that keeps marks as well; empty: none does.
	MarksS3 string
	// ArchiveDir is the directory of transcripts that were moved out of the database; empty: none was.
	ArchiveDir string
	// TokenFile is the file of the management token; empty: Data/admin-token. Start
	// creates it if it does not exist.
	TokenFile string
	// Chains are the beacons that rooms may use, and Witnesses the witnesses that
	// are asked to cosign.
	Chains    []evidence.Chain
	Witnesses []evidence.Witness
	// Contacts are URIs for vulnerability reports; empty: no security.txt.
	Contacts []string
	// MaxStreams is the maximum number of open event streams.
	MaxStreams int
	// TrustedProxies are the networks whose X-Forwarded-For header is trusted.
	TrustedProxies []netip.Prefix
	// Limits are the request budgets per network; the zero value limits nothing.
	Limits limit.Options
	// JoinsPerMinute is the maximum number of joins a minute in all rooms; 0: no limit.
	JoinsPerMinute uint32
	// OIDC configures sign-in with OpenID Connect; nil: off.
	OIDC *account.OIDCConfig
	// Captcha is the service whose check the own issuer uses for methods with the key own-captcha; nil: rooms cannot
	// have them.
	Captcha *issuerweb.Captcha
	// IssuerOIDC is the provider at which visitors sign in for methods with the key own-oidc; nil: rooms cannot have
	// them.
	IssuerOIDC *issuerweb.Provider
	// WebhookNetworks are the networks, besides public addresses, that webhooks may
	// call.
	WebhookNetworks []netip.Prefix
	// Mail sends alerts, invitations, and the codes of methods with the key own-mail; nil: no mail.
	Mail *webhook.SMTP
	// OwnIssuer runs an issuer of credentials below [IssuerPath], with a key of its own in [IssuerDir].
	OwnIssuer bool
	// Watch is how late a freeze, a draw or a proof of a room may be before the server's watch of its own rooms raises
	// an alarm; 0: it does not watch them.
	Watch time.Duration
	// Version is the program's version.
	Version string
	// Tracer traces what the server does; nil: nothing is traced. Stop closes it.
	Tracer *traces.Tracer
	// Log must not be nil.
	Log *slog.Logger
}

// Files of the data directory.
const (
	MasterKeyFile = "master-key"
	TokenFile     = "admin-token"
	SetupFile     = "setup-link" // exists until there is an owner
	AddressFile   = "address"    // the server's URL on this machine, since its latest start
	MarksDir      = "marks"
	EvidenceDir   = "evidence" // of violations that the server's watch of its own rooms has found
)

// stopTimeout limits Stop. Open requests get most of it: [web.Server] gives them 8 s. If PostgreSQL
// needs more than what is left, it is shut down at once, which loses nothing.
const stopTimeout = 9 * time.Second

const readyInterval = 5 * time.Millisecond

// Server is a running server.
type Server struct {
	// URL is where the server listens.
	URL string
	// RedirectURL is where plain HTTP is redirected to https; empty: nowhere.
	RedirectURL string
	// MetricsURL is where metrics are served; empty: off.
	MetricsURL string
	// Token is the management token.
	Token string
	// SetupLink is the link that creates the first owner, and SetupFile the file
	// that holds it. Both are empty once there is an owner.
	SetupLink, SetupFile string

	cfg        Config
	listener   net.Listener
	metrics    net.Listener    // nil without a MetricsAddr
	local      *localpg.Server // nil with a DatabaseURL
	pool       *pgxpool.Pool
	masterKey  *keys.MasterKey
	rooms      *room.Rooms
	limits     *limit.Limits
	meter      *meter.Meter
	streams    atomic.Int64                   // open event streams
	watch      atomic.Pointer[outsider.Watch] // of the own rooms; nil: turned off
	issuer     *ownIssuer                     // nil: turned off
	issuerSite *issuerweb.Site
	handler    atomic.Pointer[web.Server] // nil until the server can answer
	served     chan error                 // receives the HTTP server's result

	organizers organizers

	stops []func(context.Context) error // functions that Stop calls, last one first
}

// Start starts all parts of the server, and returns when visitors can join rooms.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg.Limits.Log = cfg.Log
	s := &Server{cfg: cfg, limits: limit.New(cfg.Limits), meter: meter.New(), served: make(chan error, 1)}
	if cfg.DatabaseURL != "" && cfg.MasterKey == "" {
		return nil, ErrNoMasterKey
	}
	if cfg.OwnerURL != "" && cfg.DatabaseURL == "" {
		return nil, ErrNoDatabase
	}
	s.atStop(func(ctx context.Context) error {
		cfg.Tracer.Close(ctx)
		return nil
	})
	for _, step := range []func(context.Context) error{
		s.listen, s.redirect, s.listenForMetrics, s.openDatabase, s.openSecrets, s.openIssuer, s.openRooms,
		s.serveMetrics, s.openOrganizers, s.openIssuerSite, s.keepAddress, s.serve,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// Stop answers open requests, stores the rooms' queued entries and closes the
// database, within ten seconds.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i](ctx))
	}
	s.stops = nil
	return errors.Join(errs...)
}

// Wait returns nil when ctx ends, and an error when the server has failed.
func (s *Server) Wait(ctx context.Context) error {
	var died <-chan struct{}
	if s.local != nil {
		died = s.local.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.served:
		return err
	case <-died:
		return s.local.Err()
	}
}

func (s *Server) atStop(stop func(context.Context) error) { s.stops = append(s.stops, stop) }

// listen opens the listener before the slow steps, so that early clients wait
// instead of being refused.
func (s *Server) listen(ctx context.Context) (err error) {
	var lc net.ListenConfig
	if s.listener, err = lc.Listen(ctx, "tcp", s.cfg.Addr); err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Addr, err)
	}
	s.atStop(func(context.Context) error { return closed(s.listener.Close()) })
	s.URL = s.cfg.HTTPS.Scheme() + "://" + listen.Address(s.listener.Addr())
	if s.cfg.PublicURL == "" {
		s.cfg.PublicURL = s.URL
		if s.cfg.HTTPS != nil && s.cfg.HTTPS.Host != "" {
			s.cfg.PublicURL = s.cfg.HTTPS.URL(s.listener.Addr())
		}
	}
	s.cfg.PublicURL, err = ParsePublicURL(s.cfg.PublicURL)
	return err
}

// closed drops the error of a listener that the HTTP server has closed already.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// redirect redirects plain HTTP to https, if the configuration says so.
func (s *Server) redirect(context.Context) (err error) {
	redirecting, stop := context.WithCancel(context.Background())
	on, done, err := s.cfg.HTTPS.Redirect(redirecting, s.listener.Addr())
	if err != nil {
		stop()
		return err
	}
	if on != "" {
		s.RedirectURL = "http://" + on
	}
	s.atStop(func(context.Context) error {
		stop()
		<-done
		return nil
	})
	return nil
}

// keepAddress writes the server's URL into its data directory, where commands that are given the directory look for
// it: the public one if the server speaks TLS, because its certificate is for that.
func (s *Server) keepAddress(context.Context) error {
	if err := os.MkdirAll(s.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	file, url := filepath.Join(s.cfg.Data, AddressFile), s.URL
	if s.cfg.HTTPS != nil {
		url = s.cfg.PublicURL
	}
	if err := os.WriteFile(file, []byte(url+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the server's address: %w", err)
	}
	return nil
}

// ParsePublicURL checks a URL that rooms are to be published under, and returns it
// without trailing slashes.
func ParsePublicURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%w: %q", ErrPublicURL, text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "":
		return "", fmt.Errorf("%w: %q has more than scheme, host and path", ErrPublicURL, u.Redacted())
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// RegisterKey returns the key of the server's log of rooms, which begins with the first room.
func (s *Server) RegisterKey(ctx context.Context) (string, error) { return s.rooms.Register.VKey(ctx) }

// openRooms opens the rooms and starts their clock.
func (s *Server) openRooms(ctx context.Context) error {
	marks, err := s.openMarks(ctx)
	if err != nil {
		return err
	}
	o := room.Options{
		Logs: s.logs(), Store: pgroom.NewStore(s.pool), MasterKey: s.masterKey,
		PublicURL: s.cfg.PublicURL, Log: s.cfg.Log, Chains: s.cfg.Chains, Witnesses: s.cfg.Witnesses, Marks: marks,
		JoinsPerMinute: s.cfg.JoinsPerMinute, Meter: s.meter, Tracer: s.cfg.Tracer,
	}
	if s.issuer != nil {
		o.Issuer = s.issuer
	}
	s.rooms = room.New(o)
	s.atStop(func(ctx context.Context) error {
		s.rooms.Leave(ctx)
		return marks.Close()
	})
	s.atStop(s.rooms.Close)
	if err := s.tryKey(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.rooms.Run(running)
	}()
	s.atStop(func(context.Context) error {
		stop()
		<-stopped
		return nil
	})
	return nil
}

// logs returns the logs of the database, and of the archive if there is one.
func (s *Server) logs() *pglog.Store {
	logs := pglog.NewStore(s.pool)
	if s.cfg.ArchiveDir != "" {
		logs.ReadArchive(export.Archive(s.cfg.ArchiveDir))
	}
	return logs
}

// openMarks opens the stored marks of how far this node has seen each log. If it cannot store them,
// the server warns and starts anyway: they only matter once the database has lost entries.
//
// The error is that of a wrong MarksS3: a store that does not answer is no reason not to start either.
func (s *Server) openMarks(ctx context.Context) (*mark.Store, error) {
	marks, err := mark.Open(filepath.Join(s.cfg.Data, MarksDir))
	if err != nil {
		s.cfg.Log.Warn("cannot store marks: after a restart this server cannot notice that its database lost entries; "+
			"give it a persistent data directory with --data (README.md, Your own PostgreSQL)", "err", err)
		marks = mark.Memory()
	}
	return marks, openBucket(ctx, marks, &s.cfg)
}

// openBucket has marks kept in object storage as well, if the configuration names a bucket.
func openBucket(ctx context.Context, marks *mark.Store, cfg *Config) error {
	if cfg.MarksS3 == "" {
		return nil
	}
	b, err := bucket.Open(ctx, cfg.MarksS3, marks.Node().String(), cfg.Log)
	if err != nil {
		return err
	}
	marks.Remote = b
	return nil
}

// tryKey opens the keys of the newest room, so that a wrong master key fails the start rather than later
// requests.
func (s *Server) tryKey(ctx context.Context) error {
	list, err := s.rooms.List(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	if err = s.rooms.CheckKey(ctx, list[0]); errors.Is(err, keys.ErrMasterKey) {
		return err
	}
	return nil
}

// serve starts answering requests, and returns once visitors can join rooms.
func (s *Server) serve(ctx context.Context) error {
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	o := &s.organizers
	var issuing http.Handler
	if s.issuerSite != nil {
		issuing = withoutCookies(s.issuerSite, s.issuerSite.CookieName())
	}
	options := web.Options{
		Limits: s.limits, Issuer: issuing,
		Rooms: s.rooms, Control: o.control, Keys: o.keys, Activity: o.activity, Accounts: o.accounts, Live: o.live,
		Webhooks: o.webhooks, Sites: o.sites, AdminToken: s.Token, MaxStreams: s.cfg.MaxStreams, Streams: &s.streams,
		Contacts: s.cfg.Contacts,
		Reports:  pgroom.NewStore(s.pool), TrustedProxies: s.cfg.TrustedProxies, Version: s.cfg.Version, Log: s.cfg.Log,
		Tracer: s.cfg.Tracer,
	}
	if s.cfg.HTTPS != nil {
		options.TLS, options.HSTS = s.cfg.HTTPS.Config, s.cfg.HTTPS.HSTS
	}
	handler := web.New(options)
	s.handler.Store(handler)
	go func() {
		defer close(ended)
		s.served <- handler.Serve(serving, s.listener)
	}()
	s.atStop(func(context.Context) error {
		stop()
		<-ended
		select {
		case err := <-s.served:
			return err
		default: // Wait has returned it
			return nil
		}
	})
	for !s.rooms.Ready() {
		select {
		case <-time.After(readyInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Package server runs Proofline from one [Config]: its database, its rooms and
// their HTTP.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web"
	"github.com/proofline/proofline/web/limit"
)

var (
	// ErrNoMasterKey is returned when a database is given without the master
	// key that goes with it.
	ErrNoMasterKey = errors.New("a database URL needs a master key")
	// ErrNoDatabase is returned when a database's owner is given without the
	// database URL that the server works with.
	ErrNoDatabase = errors.New("an owner's database URL needs a database URL")
	// ErrKeyLost is returned when the private PostgreSQL has rooms, and the
	// file of their master key is not there.
	ErrKeyLost = errors.New("the file of the master key is gone")
	// ErrPublicURL is returned when a text is no URL to publish rooms below.
	ErrPublicURL = errors.New("not a public URL")
)

// Config says what to run.
type Config struct {
	// Addr is where to listen, host:port; port 0 takes any that is free.
	Addr string
	// MetricsAddr is where /metrics and /debug/pprof/ are served, host:port, to
	// anyone who reaches it; empty: nowhere.
	MetricsAddr string
	// Data is the directory of the secrets and, without DatabaseURL, of a
	// private PostgreSQL. It is made if it does not exist.
	Data string
	// PublicURL is what visitors reach the server under, such as
	// https://example.com; empty means Addr. New rooms are named after it.
	PublicURL string
	// DatabaseURL names a PostgreSQL; empty starts a private one.
	DatabaseURL string
	// OwnerURL names the same database as the owner of its schema, which migrates
	// it at the start; empty means DatabaseURL.
	OwnerURL string
	// DatabaseWait is how long a database that does not answer is waited for at the
	// start; 0: for as long as it takes.
	DatabaseWait time.Duration
	// MasterKey is the key that seals the rooms' keys, or its file. Empty means
	// Data/master-key, which is made for a private PostgreSQL.
	MasterKey string
	// TokenFile holds the management token; empty means Data/admin-token. It
	// is made if it does not exist.
	TokenFile string
	// Chains are the beacons that rooms may use, and Witnesses those who are
	// asked to cosign.
	Chains    []room.Chain
	Witnesses []room.Witness
	// Contacts are URIs for reports of vulnerabilities; none: there is no security.txt.
	Contacts []string
	// MaxStreams is how many streams of events are open at most.
	MaxStreams int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Limits are the budgets of networks; its zero value limits nothing.
	Limits limit.Options
	// OIDC is how organizers sign in with OpenID Connect; nil: they do not.
	OIDC *account.OIDCConfig
	// WebhookNetworks are those that webhooks may lead to beside public addresses.
	WebhookNetworks []netip.Prefix
	// Mail sends alerts and invitations; nil: nobody does.
	Mail *hook.SMTP
	// Version is the program's.
	Version string
	// Log receives what happens. Never nil.
	Log *slog.Logger
}

// Files of the data directory.
const (
	MasterKeyFile = "master-key"
	TokenFile     = "admin-token"
	SetupFile     = "setup-link" // until there is an owner
	AddressFile   = "address"    // URL on this machine, of the latest start
	MarksDir      = "marks"
)

// stopTime is how long a stop may take. Requests get most of it: [web.Server]
// gives them 8 s. Should PostgreSQL need more than is left it is shut down at
// once, which loses nothing.
const stopTime = 9 * time.Second

const readyPoll = 5 * time.Millisecond

// Server is a running server.
type Server struct {
	// URL is where the server listens.
	URL string
	// MetricsURL is where metrics are served; empty: nowhere.
	MetricsURL string
	// Token is the management token.
	Token string
	// SetupLink makes the first owner, and is in the file SetupFile until one is
	// made; both are empty when there is an owner.
	SetupLink, SetupFile string

	cfg       Config
	listener  net.Listener
	metrics   net.Listener    // nil without a MetricsAddr
	local     *localpg.Server // nil with a DatabaseURL
	pool      *pgxpool.Pool
	masterKey *room.MasterKey
	rooms     *room.Rooms
	limits    *limit.Limits
	served    chan error // gets the end of HTTP

	organizers organizers

	stops []func(context.Context) error // what Stop does, in reverse order
}

// Start brings everything up and returns when rooms can be joined.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg.Limits.Log = cfg.Log
	s := &Server{cfg: cfg, limits: limit.New(cfg.Limits), served: make(chan error, 1)}
	if cfg.DatabaseURL != "" && cfg.MasterKey == "" {
		return nil, ErrNoMasterKey
	}
	if cfg.OwnerURL != "" && cfg.DatabaseURL == "" {
		return nil, ErrNoDatabase
	}
	for _, step := range []func(context.Context) error{s.listen, s.listenForMetrics, s.openDatabase, s.openSecrets, s.openRooms, s.serveMetrics, s.openOrganizers, s.keepAddress, s.serve} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// Stop answers the requests under way, finishes what rooms have queued and
// closes the database, within ten seconds.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i](ctx))
	}
	s.stops = nil
	return errors.Join(errs...)
}

// Wait returns nil when ctx ends, and an error when the server cannot go on.
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

// listen takes the address before anything slow happens. Who connects already
// waits until requests are served.
func (s *Server) listen(ctx context.Context) (err error) {
	var lc net.ListenConfig
	if s.listener, err = lc.Listen(ctx, "tcp", s.cfg.Addr); err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Addr, err)
	}
	s.atStop(func(context.Context) error { return closed(s.listener.Close()) })
	s.URL = "http://" + address(s.listener.Addr())
	if s.cfg.PublicURL == "" {
		s.cfg.PublicURL = s.URL
	}
	s.cfg.PublicURL, err = ParsePublicURL(s.cfg.PublicURL)
	return err
}

// closed is the error of closing a listener, which HTTP may have closed as well.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// keepAddress writes where this server listens into its data directory, so that
// programs that are given the directory find the server.
func (s *Server) keepAddress(context.Context) error {
	if err := os.MkdirAll(s.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	file := filepath.Join(s.cfg.Data, AddressFile)
	if err := os.WriteFile(file, []byte(s.URL+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the server's address: %w", err)
	}
	return nil
}

// address is where this machine reaches what listens on a.
func address(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// ParsePublicURL checks a URL that rooms are published below, and returns it
// without a slash at the end.
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

// openRooms lets the clock do its work in the rooms there are.
func (s *Server) openRooms(ctx context.Context) error {
	marks := s.openMarks()
	s.rooms = room.New(room.Options{
		Logs: pglog.NewStore(s.pool), Rooms: pgroom.NewStore(s.pool), MasterKey: s.masterKey,
		PublicURL: s.cfg.PublicURL, Log: s.cfg.Log, Chains: s.cfg.Chains, Witnesses: s.cfg.Witnesses, Marks: marks,
	})
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

// openMarks opens the marks of how far this server has seen each log. Without a
// place for them it starts all the same, for they only matter once the database has
// gone wrong; but it says so.
func (s *Server) openMarks() *mark.Store {
	marks, err := mark.Open(filepath.Join(s.cfg.Data, MarksDir))
	if err != nil {
		s.cfg.Log.Warn("no marks are kept: after a restart this server cannot notice that its database went back; "+
			"give it a data directory that stays, with --data (README.md, Your own PostgreSQL)", "err", err)
		return mark.Memory()
	}
	return marks
}

// tryKey opens the newest room, to say at the start rather than in its answers
// that the master key is another one's.
func (s *Server) tryKey(ctx context.Context) error {
	list, err := s.rooms.List(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	if _, err = s.rooms.Get(ctx, list[0].Slug); errors.Is(err, room.ErrMasterKey) {
		return err
	}
	return nil
}

// serve answers requests, and returns once rooms can be joined.
func (s *Server) serve(ctx context.Context) error {
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	o := &s.organizers
	handler := web.New(web.Options{
		Limits: s.limits,
		Rooms:  s.rooms, Desk: o.desk, Accounts: o.accounts, Live: o.live, Hooks: o.hooks, Sites: o.sites,
		AdminToken: s.Token, MaxStreams: s.cfg.MaxStreams, Contacts: s.cfg.Contacts, TrustedProxies: s.cfg.TrustedProxies, Version: s.cfg.Version, Log: s.cfg.Log,
	})
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
		default: // Wait has told
			return nil
		}
	})
	for !s.rooms.Ready() {
		select {
		case <-time.After(readyPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

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
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web"
)

var (
	// ErrNoMasterKey is returned when a database is given without the master
	// key that goes with it.
	ErrNoMasterKey = errors.New("a database URL needs a master key")
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
	// Data is the directory of the secrets and, without DatabaseURL, of a
	// private PostgreSQL. It is made if it does not exist.
	Data string
	// PublicURL is what visitors reach the server under, such as
	// https://example.com; empty means Addr. New rooms are named after it.
	PublicURL string
	// DatabaseURL names a PostgreSQL; empty starts a private one.
	DatabaseURL string
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
	// MaxStreams is how many streams of events are open at most.
	MaxStreams int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []*net.IPNet
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
	// Token is the management token.
	Token string
	// SetupLink makes the first owner; empty when there is one.
	SetupLink string

	cfg       Config
	listener  net.Listener
	local     *localpg.Server // nil with a DatabaseURL
	pool      *pgxpool.Pool
	masterKey *room.MasterKey
	rooms     *room.Rooms
	served    chan error // gets the end of HTTP

	organizers organizers

	stops []func(context.Context) error // what Stop does, in reverse order
}

// Start brings everything up and returns when rooms can be joined.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, served: make(chan error, 1)}
	if cfg.DatabaseURL != "" && cfg.MasterKey == "" {
		return nil, ErrNoMasterKey
	}
	for _, step := range []func(context.Context) error{s.listen, s.openDatabase, s.openSecrets, s.openRooms, s.openOrganizers, s.serve} {
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
	s.atStop(func(context.Context) error {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) { // HTTP closes it as well
			return err
		}
		return nil
	})
	s.URL = "http://" + address(s.listener.Addr())
	if s.cfg.PublicURL == "" {
		s.cfg.PublicURL = s.URL
	}
	s.cfg.PublicURL, err = ParsePublicURL(s.cfg.PublicURL)
	return err
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
	s.rooms = room.New(room.Options{
		Logs: pglog.NewStore(s.pool), Rooms: pgroom.NewStore(s.pool), MasterKey: s.masterKey,
		PublicURL: s.cfg.PublicURL, Log: s.cfg.Log, Chains: s.cfg.Chains, Witnesses: s.cfg.Witnesses,
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
		Rooms: s.rooms, Desk: o.desk, Accounts: o.accounts, Live: o.live, Hooks: o.hooks, Sites: o.sites,
		AdminToken: s.Token, MaxStreams: s.cfg.MaxStreams, TrustedProxies: s.cfg.TrustedProxies, Version: s.cfg.Version, Log: s.cfg.Log,
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

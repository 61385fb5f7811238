//go:build unix

// Package localpg runs a private, real PostgreSQL for people who have no
// DATABASE_URL: one storage engine everywhere, nothing to install by hand but
// the binaries.
//
// Everything lives in the data directory of the product:
//
//	DIR/lock           held with flock(2) by the process that runs the server
//	DIR/postgres/      the cluster: UTF8, locale C, data checksums
//	DIR/run/           the Unix socket, mode 0700; the only way in, there is no TCP
//	DIR/postgres.log   what postgres says, at most 16 MiB; DIR/postgres.log.1 the 16 MiB before
//
// A path that a socket cannot have, too long or with a comma, moves DIR/run to
// a private temporary directory. Authentication is "trust": whoever can enter the socket
// directory is already the user that runs postgres, or root.
//
// PostgreSQL refuses to run as root. Under root it runs as the system user
// postgres, which must be able to reach DIR; otherwise as the current user.
//
// The server is a child in its own process group, so that Ctrl-C in a terminal
// reaches only the product, which stops it when its last batch is written.
// A crashed postgres is started again. When the product itself is killed, Linux
// asks postgres to shut down; elsewhere, or if that takes time, the next Start
// finds the orphan on its cluster, stops it and waits.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// MinVersion is the oldest major version of PostgreSQL the product runs on.
const MinVersion = 15

var (
	// ErrNoBinaries is returned when no PostgreSQL of MinVersion or newer is found.
	ErrNoBinaries = errors.New("no usable PostgreSQL on this machine")
	// ErrInUse is returned when another living process runs a server in the directory.
	ErrInUse = errors.New("data directory is in use")
	// ErrVersion is returned when the cluster was made by another major version
	// than every PostgreSQL found.
	ErrVersion = errors.New("cluster belongs to another PostgreSQL version")
	// ErrUnreachable is returned under root when the user postgres cannot enter
	// the data directory or the directory of the binaries.
	ErrUnreachable = errors.New("directory is closed to the user postgres")
	// ErrNoUser is returned under root when there is no system user postgres.
	ErrNoUser = errors.New("no system user postgres to run PostgreSQL as")
	// ErrNotCluster is returned when DIR/postgres holds files that are not a cluster.
	ErrNotCluster = errors.New("not a PostgreSQL cluster")
	// ErrDied is returned when postgres ended without being asked to.
	ErrDied = errors.New("postgres died")
)

// Config says where the server lives and how it is found.
type Config struct {
	// Dir is the data directory of the product, made if it does not exist.
	Dir string
	// BinDir holds initdb and postgres. Empty means PROOFLINE_PG_BIN, and if that
	// is empty too, PATH and the places where packages install PostgreSQL.
	BinDir string
	// Log receives one record per event: first start, crash, restart, orphan. May be nil.
	Log *slog.Logger
	// Settings are further lines of postgresql.conf, such as "fsync = off"; they
	// win over the product's own.
	Settings []string
	// NoRestart leaves a postgres that died dead: Done is closed instead.
	NoRestart bool
}

// Server is a running PostgreSQL. Its methods may be called concurrently.
type Server struct {
	cfg      Config
	restarts int // how many in a row may fail
	cluster  cluster
	socket   socket
	lock     *os.File
	log      *logFile

	ready    chan struct{} // closed when the server takes connections for the first time
	stopping chan struct{} // closed by Stop: shut down, disconnecting clients
	aborting chan struct{} // closed by Stop: shut down at once
	done     chan struct{} // closed when the supervisor has ended; err is set before
	err      error

	stopOnce, abortOnce sync.Once
}

// Start makes the cluster if there is none, starts PostgreSQL on it and returns
// when it takes connections; ctx bounds the start, not the life of the server.
// Expect 1 to 3 seconds the first time, a tenth of that afterwards, and longer
// when PostgreSQL has to recover from a crash.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return newServer(cfg).start(ctx)
}

func newServer(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		cfg:      cfg,
		restarts: math.MaxInt,
		ready:    make(chan struct{}),
		stopping: make(chan struct{}),
		aborting: make(chan struct{}),
		done:     make(chan struct{}),
	}
}

func (s *Server) start(ctx context.Context) (*Server, error) {
	if err := s.prepare(ctx); err != nil {
		s.release()
		return nil, fmt.Errorf("start local PostgreSQL: %w", err)
	}
	go s.supervise()
	select {
	case <-s.ready:
		return s, nil
	case <-s.done:
		return nil, fmt.Errorf("start local PostgreSQL: %w", s.err)
	case <-ctx.Done():
		return nil, fmt.Errorf("start local PostgreSQL: %w", errors.Join(ctx.Err(), s.Stop(ctx)))
	}
}

// prepare does all that comes before the first postgres process.
func (s *Server) prepare(ctx context.Context) error {
	dir, owner, err := openDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	if s.lock, err = lockDir(dir); err != nil {
		return err
	}
	s.cluster = cluster{dir: filepath.Join(dir, "postgres"), owner: owner}
	if err := s.cluster.choose(ctx, s.cfg.BinDir); err != nil {
		return err
	}
	if err := s.cluster.ensure(ctx, s.cfg.Log); err != nil {
		return err
	}
	if err := s.cluster.configure(s.cfg.Settings); err != nil {
		return err
	}
	if s.socket, err = makeSocket(dir, owner); err != nil {
		return err
	}
	s.log, err = openLog(filepath.Join(dir, "postgres.log"))
	return err
}

// release undoes prepare.
func (s *Server) release() {
	if s.log != nil {
		_ = s.log.Close()
	}
	s.socket.remove()
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// URL returns the superuser's connection string, in the form that pgx and libpq
// read. It stays the same when postgres is restarted.
func (s *Server) URL() string { return s.URLOf(superuser) }

// URLOf returns the connection string of a role.
func (s *Server) URLOf(role string) string {
	q := url.Values{
		"host":    {s.socket.dir},
		"port":    {socketPort},
		"user":    {role},
		"sslmode": {"disable"},
	}
	return "postgres:///postgres?" + strings.ReplaceAll(q.Encode(), "+", "%20") // libpq takes + literally
}

// Done is closed when postgres has ended for good: after Stop, or when it died
// and could not be started again.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns nil before Done is closed and after Stop; otherwise why postgres
// ended, which wraps ErrDied unless it could not even be tried again.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop shuts PostgreSQL down, disconnecting clients, and waits for it. When ctx
// ends first the shutdown is made immediate, which costs the next start a
// recovery but no committed data. Stop may be called more than once.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stopping) })
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	s.abortOnce.Do(func() { close(s.aborting) })
	select {
	case <-s.done:
		return s.err
	case <-time.After(abortWait):
		return fmt.Errorf("stop local PostgreSQL: %w", ctx.Err())
	}
}

// Kill ends postgres and all its processes with SIGKILL, as a power cut would,
// and returns when they are gone. It is for tests of durability; unless the
// server was started with NoRestart, postgres comes back as after any crash.
func (s *Server) Kill() error {
	if err := s.cluster.kill(); err != nil {
		return fmt.Errorf("kill local PostgreSQL: %w", err)
	}
	return nil
}

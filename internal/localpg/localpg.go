//go:build unix

// Package localpg runs a private PostgreSQL for operators without a DATABASE_URL. So Proofline needs
// only one storage engine, and only PostgreSQL's programs must be installed.
//
// Everything is in Proofline's data directory:
//
//	DIR/lock           held with flock(2) by the process that runs the server
//	DIR/postgres/      the cluster: UTF8, locale C, data checksums
//	DIR/run/           the Unix socket, mode 0700; PostgreSQL does not listen on TCP
//	DIR/postgres.log   the messages of postgres, at most 16 MiB; DIR/postgres.log.1: the previous 16 MiB
//
// If the socket's path would be too long or contain a comma, DIR/run moves to a private temporary
// directory. Authentication is "trust": only root and the user that runs postgres can enter the
// socket directory.
//
// PostgreSQL refuses to run as root. Under root it runs as the system user postgres, which must be
// able to reach DIR; otherwise it runs as the current user.
//
// PostgreSQL is a child process in its own process group, so that Ctrl-C in a terminal reaches only Proofline,
// which stops PostgreSQL after writing its last batch. If PostgreSQL crashes, it is started again. If Proofline is
// killed, Linux sends postgres a shutdown signal. On other systems, or if the shutdown takes long, the next Start
// finds the orphan, stops it and waits.
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

// MinVersion is the oldest supported major version of PostgreSQL.
const MinVersion = 15

var (
	// ErrNoBinaries is returned when no PostgreSQL of MinVersion or newer is found.
	ErrNoBinaries = errors.New("no usable PostgreSQL on this machine")
	// ErrInUse is returned when another process runs a server in the directory.
	ErrInUse = errors.New("data directory is in use")
	// ErrVersion is returned when no PostgreSQL with the major version of the cluster is found.
	ErrVersion = errors.New("cluster belongs to another PostgreSQL version")
	// ErrUnreachable is returned under root when the user postgres cannot enter the data directory
	// or that of the binaries.
	ErrUnreachable = errors.New("the user postgres cannot enter the directory")
	// ErrNoUser is returned under root when there is no system user postgres.
	ErrNoUser = errors.New("no system user postgres to run PostgreSQL as")
	// ErrNotCluster is returned when DIR/postgres holds files that are not a cluster.
	ErrNotCluster = errors.New("not a PostgreSQL cluster")
	// ErrDied is returned when postgres ended unexpectedly.
	ErrDied = errors.New("postgres died")
)

// Config configures a server.
type Config struct {
	// Dir is Proofline's data directory. It is created if needed.
	Dir string
	// BinDir contains initdb and postgres. If empty, PROOFLINE_PG_BIN is used, then PATH and the
	// usual installation directories.
	BinDir string
	// Log receives one record per event: first start, crash, restart, orphan; may be nil.
	Log *slog.Logger
	// Settings are additional lines of postgresql.conf, such as "fsync = off". They override
	// Proofline's own.
	Settings []string
	// NoRestart disables restarts: Done is closed when postgres dies.
	NoRestart bool
	// Prototypes is a directory for new clusters, of each version one. Further clusters are copies,
	// which takes a tenth of the time of initdb and is for tests: copies share their system identifier,
	// and are not synced to disk.
	Prototypes string
}

// Server is a running PostgreSQL. Its methods may be called concurrently.
type Server struct {
	cfg      Config
	restarts int // number of consecutive restarts that may fail
	cluster  cluster
	socket   socket
	lock     *os.File
	log      *logFile

	ready    chan struct{} // closed when the server first accepts connections
	stopping chan struct{} // closed by Stop for a shutdown that disconnects clients
	aborting chan struct{} // closed by Stop for an immediate shutdown
	done     chan struct{} // closed when the supervisor has ended, after setting err
	err      error

	stopOnce, abortOnce sync.Once
}

// Start makes the cluster if needed, starts PostgreSQL and waits until it accepts connections. ctx
// limits the start, not the life of the server. The first start takes 1 to 3 seconds, later ones a
// tenth of that, and longer if PostgreSQL recovers from a crash.
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

// prepare does everything that precedes the first postgres process.
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
	if err := s.cluster.ensure(ctx, s.cfg.Prototypes, s.cfg.Log); err != nil {
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

// URL returns the superuser's connection string for pgx and libpq. Restarts do not change it.
func (s *Server) URL() string { return s.URLOf(superuser) }

// URLOf returns the connection string of a role.
func (s *Server) URLOf(role string) string {
	q := url.Values{
		"host":    {s.socket.dir},
		"port":    {socketPort},
		"user":    {role},
		"sslmode": {"disable"},
	}
	return "postgres:///postgres?" + strings.ReplaceAll(q.Encode(), "+", "%20") // libpq does not decode +
}

// Done returns a channel that is closed when postgres has ended for good: after Stop, or when it
// cannot be restarted.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why postgres ended for good, or nil before that and after Stop. The error wraps ErrDied,
// unless no restart could be attempted.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop shuts PostgreSQL down, disconnecting clients, and waits for the end. If ctx is done first, the
// shutdown becomes immediate: the next start must recover, but no committed data is lost. Stop may be
// called more than once.
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

// Kill ends postgres and all its processes with SIGKILL, as a power cut would, and waits until they are gone. It
// is for tests of durability. Without NoRestart, postgres is started again as after any crash.
func (s *Server) Kill() error {
	if err := s.cluster.kill(); err != nil {
		return fmt.Errorf("kill local PostgreSQL: %w", err)
	}
	return nil
}

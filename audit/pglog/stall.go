package pglog

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// How long an append waits for a room's lock before it looks at the holder, how
// often it looks, and how long the holder may keep the lock without a word from
// its node before its connection is ended.
const (
	lockPatience = 500 * time.Millisecond
	stallLook    = 250 * time.Millisecond
	stallMost    = 2 * time.Second
	stallTimeout = 3 * time.Second // of one look
)

// stalls ends connections that hold the lock of a room while PostgreSQL waits
// for the node at their other end: one that froze, or that the network cut off.
// PostgreSQL alone would keep the lock until its own timeouts. Safe for
// concurrent use.
type stalls struct {
	pool *pgxpool.Pool // for its configuration alone: all its connections may be waiting
	log  *slog.Logger

	mu      sync.Mutex          // guards all below
	waiting map[uint32]struct{} // backends of this node that wait for a lock
	looking bool                // a goroutine does
}

// watch notes that a backend of this node begins to wait for a lock. Stop must be
// called when it waits no longer.
func (s *stalls) watch(backend uint32) (stop func()) {
	timer := time.AfterFunc(lockPatience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting[backend] = struct{}{}
		if !s.looking {
			s.looking = true
			go s.look()
		}
	})
	return func() {
		if timer.Stop() {
			return // it never got to the map
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, backend)
	}
}

// backends returns those that wait; when there are none, looking is over.
func (s *stalls) backends() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = len(s.waiting) > 0
	return slices.Collect(maps.Keys(s.waiting))
}

// look looks at the holders of locks for as long as a backend waits for one.
func (s *stalls) look() {
	var conn *pgx.Conn
	defer func() { closeSoon(conn) }()
	seen := map[string]time.Time{} // when each holder was first seen as it is, by this node's clock
	for backends := s.backends(); len(backends) > 0; backends = s.backends() {
		err := error(nil)
		if conn == nil || conn.IsClosed() {
			conn, err = s.connect()
		}
		if err == nil {
			err = s.lookOnce(conn, backends, seen)
		}
		if err != nil {
			s.log.Warn("holder of a room's lock cannot be looked at", "err", err)
		}
		time.Sleep(stallLook)
	}
}

// connect opens a connection beside the pool.
func (s *stalls) connect() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stallTimeout)
	defer cancel()
	config := s.pool.Config()
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil && config.AfterConnect != nil {
		err = config.AfterConnect(ctx, conn)
	}
	if err != nil {
		closeSoon(conn)
		return nil, err
	}
	return conn, nil
}

func closeSoon(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stallTimeout)
	defer cancel()
	_ = conn.Close(ctx) // it is gone either way
}

// lookOnce ends the holders that have been silent for too long, and remembers
// the others. A holder is known by its backend and by when it fell silent, so
// that one which is merely slow counts anew whenever it goes on. How long that
// is says this node's clock: PostgreSQL's may jump.
func (s *stalls) lookOnce(conn *pgx.Conn, backends []uint32, seen map[string]time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), stallTimeout)
	defer cancel()
	waiters := make([]int32, len(backends))
	for i, b := range backends {
		waiters[i] = int32(b) //nolint:gosec // a process id
	}
	tooLong := []string{}
	for id, since := range seen {
		if time.Since(since) >= stallMost {
			tooLong = append(tooLong, id)
		}
	}
	rows, _ := conn.Query(ctx, `select holder, pid, ended from stalled_holders($1, $2)`, waiters, tooLong)
	type holder struct {
		ID    string
		PID   int32
		Ended bool
	}
	holders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[holder])
	if err != nil {
		return fmt.Errorf("look at holders of locks: %w", err)
	}
	before := maps.Clone(seen)
	clear(seen)
	for _, h := range holders {
		since, known := before[h.ID]
		if !known {
			since = time.Now()
		}
		if seen[h.ID] = since; h.Ended {
			s.log.Warn("connection ended: it held a room's lock and its node was silent", "backend", h.PID, "silent_for", time.Since(since).Round(time.Millisecond))
		}
	}
	return nil
}

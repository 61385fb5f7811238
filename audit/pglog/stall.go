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

// lockPatience is how long an append waits for a room's lock before it looks at the lock holder,
// and stallInterval the time between looks. maxSilence is how long the holder may keep the lock
// without receiving anything from its node before its connection is terminated.
const (
	lockPatience  = 500 * time.Millisecond
	stallInterval = 250 * time.Millisecond
	maxSilence    = 2 * time.Second
	stallTimeout  = 3 * time.Second // limit for one look
)

// stalls terminates connections that hold a room's lock while PostgreSQL waits for the node at the
// other end, because the node froze or lost its network. PostgreSQL alone would keep the lock until
// its own timeouts. It is safe for concurrent use.
type stalls struct {
	pool *pgxpool.Pool // used for its configuration only, because all its connections may be waiting
	log  *slog.Logger

	mu      sync.Mutex          // guards the fields below
	waiting map[uint32]struct{} // backends of this node that wait for a lock
	looking bool                // whether the goroutine runs
}

// watch records that a backend of this node starts waiting for a lock. The caller must call stop
// when the wait is over.
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
			return // the timer had not fired, so there is nothing to delete
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, backend)
	}
}

// backends returns the waiting backends; if there are none, it ends the search.
func (s *stalls) backends() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = len(s.waiting) > 0
	return slices.Collect(maps.Keys(s.waiting))
}

// isNeeded reports whether a backend still waits, so that a failure matters.
func (s *stalls) isNeeded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// look checks the lock holders for as long as a backend of this node waits.
func (s *stalls) look() {
	var conn *pgx.Conn
	defer func() { closeSoon(conn) }()
	seen := map[string]time.Time{} // when each holder was first seen in its present silence, by this node's clock
	for backends := s.backends(); len(backends) > 0; backends = s.backends() {
		err := error(nil)
		if conn == nil || conn.IsClosed() {
			conn, err = s.connect()
		}
		if err == nil {
			err = s.lookOnce(conn, backends, seen)
		}
		if err != nil && s.isNeeded() {
			s.log.Warn("cannot check the holder of a room's lock", "err", err)
		}
		time.Sleep(stallInterval)
	}
}

// connect opens a connection outside the pool.
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
	_ = conn.Close(ctx) // the connection is unusable anyway
}

// lookOnce terminates the holders that have been silent for too long and records the others. A
// holder is identified by its backend and the start of its silence, so a merely slow one starts
// anew whenever it continues. This node's clock measures the silence, because PostgreSQL's may
// jump.
func (s *stalls) lookOnce(conn *pgx.Conn, backends []uint32, seen map[string]time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), stallTimeout)
	defer cancel()
	waiters := make([]int32, len(backends))
	for i, b := range backends {
		waiters[i] = int32(b) //nolint:gosec // a process id
	}
	tooLong := []string{}
	for id, since := range seen {
		if time.Since(since) >= maxSilence {
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
		return fmt.Errorf("query lock holders: %w", err)
	}
	before := maps.Clone(seen)
	clear(seen)
	for _, h := range holders {
		since, known := before[h.ID]
		if !known {
			since = time.Now()
		}
		if seen[h.ID] = since; h.Ended {
			s.log.Warn("terminated a connection that held a room's lock while its node was silent", "backend", h.PID,
				"silent_for", time.Since(since).Round(time.Millisecond))
		}
	}
	return nil
}

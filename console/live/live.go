// Package live provides the figures of rooms for dashboards while they run, and their history and
// summary afterwards.
//
//	room.Metrics ─► once a second: ring of 15 minutes ─► Figures ─► encoded once ─► every watcher
//	                    └► once a minute: a row in the database, kept 30 days ─► History
//	transcript of an ended room ─► one pass ─► Summary, stored
//
// The cost of a dashboard does not depend on the length of the line, and hardly on the number of
// dashboards: figures are computed once per second and room, and only while someone watches. Every
// node has its own ring and watchers. All nodes that run a room send its rows; the database keeps
// the first of each minute.
//
// Times are the database's, in UTC. Rates are differences of sums divided by the time between them.
// An unknown value, such as the no-show rate before any claim has been settled, is null rather than
// 0.
//
// Callers check permissions.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Intervals and limits.
const (
	sampleInterval = time.Second
	ringSpan       = 15 * time.Minute // span of the ring in memory
	Kept           = 30 * 24 * time.Hour
	pruneInterval  = time.Hour
	storeTimeout   = 10 * time.Second // timeout of one database query
	maxWaitingRows = 10_000           // rows that may wait for the database
)

var (
	// ErrStreams is returned when the limit of watchers has been reached.
	ErrStreams = errors.New("too many dashboards are open: close one first")
	// ErrNotEnded is returned for the summary of a room that has not ended.
	ErrNotEnded = errors.New("the room has not ended")
	// ErrComputing is returned while a summary is being computed.
	ErrComputing = errors.New("the summary is being computed: try again in a few seconds")
	// ErrSpan is returned for an invalid interval or step of a history.
	ErrSpan = errors.New("invalid time span")
)

// Records reads the rooms of the database, including those that have ended. Error:
// [pgroom.ErrNotFound].
type Records interface {
	Get(ctx context.Context, slug string) (pgroom.Room, error)
}

// Options configures [New]. Rooms, Store and Log are required.
type Options struct {
	Rooms   *room.Rooms
	Records Records
	Store   *pglive.Store
	Name    string // name of this machine, for display
	Version string // version of the program
	Log     *slog.Logger
	// Refused returns the number of requests that this node has refused since its start, by limit;
	// nil: no limits.
	Refused func() map[string]uint64
	// Seen returns what is wrong with a room as its visitors see it, in words; empty: nothing was found.
	Seen func(slug string) string
	// MaxStreams is the limit of watchers on this node, and MaxOwn the limit per person or token;
	// 0: [DefaultStreams], [DefaultOwn].
	MaxStreams, MaxOwn int
}

// Defaults of [Options].
const (
	DefaultStreams = 500
	DefaultOwn     = 10
)

// Live computes the figures of the rooms of a node. It is safe for concurrent use.
type Live struct {
	Options
	id      uuid.UUID // id of this node
	started time.Time

	work     sync.WaitGroup     // background work of Run
	group    singleflight.Group // computes a summary once for concurrent callers
	digests  chan struct{}      // semaphore: one value while a summary is computed
	watchers watcherLimit

	nodes   atomic.Pointer[[]pglive.Node] // nodes as of the latest heartbeat
	waiting []pglive.Minute               // rows to store; used by the sampler only
	sending []pglive.Minute               // rows being stored, nil if none; used by the sampler only
	stored  chan error                    // results of storing; received by the sampler only
	failing bool                          // storing failed, and the failure has been logged; used by the sampler only

	mu     sync.Mutex // guards tracks
	tracks map[uuid.UUID]*track
}

// track holds the samples and watchers of a loaded room.
type track struct {
	room  *room.Room
	board board

	mu     sync.Mutex // guards the fields below
	ring   ring
	minute int64         // minute of the row being collected, since the Unix epoch; 0 before the first sample
	peak   int64         // peak arrivals per second in that minute
	row    pglive.Minute // latest row
	ended  bool          // the room has ended; no more rows are collected
}

// New returns the live figures of rooms. The caller must call Run.
func New(o Options) *Live {
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultStreams
	}
	if o.MaxOwn == 0 {
		o.MaxOwn = DefaultOwn
	}
	return &Live{
		Options: o, id: uuid.New(), started: time.Now(), digests: make(chan struct{}, 1), stored: make(chan error, 1),
		watchers: watcherLimit{max: o.MaxStreams, maxOwn: o.MaxOwn}, tracks: map[uuid.UUID]*track{},
	}
}

// Run samples rooms, stores rows and sends heartbeats of this node until ctx is done.
func (l *Live) Run(ctx context.Context) {
	defer l.work.Wait()
	l.work.Go(func() { l.heartbeat(ctx) })
	l.work.Go(func() { l.prune(ctx) })
	timer := time.NewTimer(sampleInterval) // not a ticker, because after a late sample that would fire early
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			l.sample(ctx)
			timer.Reset(sampleInterval)
		case <-ctx.Done():
			l.leave()
			return
		}
	}
}

// sample samples every loaded room, and drops the tracks of rooms that have left memory.
func (l *Live) sample(ctx context.Context) {
	l.mu.Lock()
	gone := maps.Clone(l.tracks) // copied before the rooms are listed, because more may be loaded meanwhile
	l.mu.Unlock()
	for _, r := range l.Rooms.Loaded() {
		delete(gone, r.ID)
		l.sampleRoom(ctx, l.track(r))
	}
	l.mu.Lock()
	for id, t := range gone {
		t.board.close()
		delete(l.tracks, id)
	}
	l.mu.Unlock()
	l.send(ctx)
}

// track returns the track of a room. It replaces the track of an earlier load.
func (l *Live) track(r *room.Room) *track {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.tracks[r.ID]
	if ok && t.room == r {
		return t
	}
	if ok {
		t.board.close()
	}
	t = &track{room: r}
	l.tracks[r.ID] = t
	return t
}

// sampleRoom samples one room, sends figures to its watchers, and adds a row when a minute is over.
func (l *Live) sampleRoom(ctx context.Context, t *track) {
	v := t.room.Metrics()
	if ended := l.collect(t, &v); ended {
		l.work.Go(func() { l.digestEnded(ctx, t.room) })
	}
	if t.board.hasWatchers() {
		t.board.post(l.encode(t, &v))
	}
}

// find returns the track of a room, loading the room if necessary.
func (l *Live) find(ctx context.Context, slug string) (*track, error) {
	r, err := l.Rooms.Get(ctx, slug)
	if err != nil {
		return nil, err
	}
	return l.track(r), nil
}

// prune deletes old rows once per interval.
func (l *Live) prune(ctx context.Context) {
	ticker := time.NewTicker(pruneInterval)
	defer ticker.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, pruneInterval/2)
		if _, err := l.Store.Prune(asked, time.Now().Add(-Kept)); err != nil && ctx.Err() == nil {
			l.Log.Warn("cannot prune history", "err", err)
		}
		cancel()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func invalidSpan(detail string) error { return fmt.Errorf("%w: %s", ErrSpan, detail) }

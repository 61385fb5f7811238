// Package live shows organizers what their rooms are doing, while they do it
// and afterwards.
//
//	room.Vitals ─► once a second: ring of 15 minutes ─► Figures ─► encoded once ─► every watcher
//	                    └► once a minute: a row in the database, kept 30 days ─► History
//	transcript of a room that has ended ─► one pass ─► Summary, kept
//
// What a look costs does not depend on how many people are in line, nor much on
// how many look: figures are made once a second and room, and only while
// somebody watches. Every node has its own ring and its own watchers; the rows
// of minutes are sent by all nodes that run a room, and the first one stays.
//
// Times are the database's, in UTC. Rates are differences of sums, over the time
// that passed between the two. A figure that does not exist, such as the rate of
// no-shows before anybody could be one, is null and not 0.
//
// Who may look is decided in front of this package.
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
)

// How often things are looked at, and how long they are kept.
const (
	sampleEvery = time.Second
	kept        = 15 * time.Minute // in memory, a sample a second
	Kept        = 30 * 24 * time.Hour
	pruneEvery  = time.Hour
	storeLimit  = 10 * time.Second // for one question to the database
	minutesMost = 10_000           // rows that wait for the database, at most
)

var (
	// ErrStreams is returned when as many watch as may.
	ErrStreams = errors.New("too many dashboards are open")
	// ErrNotEnded is returned when a summary is asked for of a room that goes on.
	ErrNotEnded = errors.New("the room has not ended")
	// ErrComputing is returned when a summary is on its way: ask again.
	ErrComputing = errors.New("the summary is being made")
	// ErrSpan is returned when a history is asked for with times or a step that
	// make none.
	ErrSpan = errors.New("no span of time")
)

// Options is what [New] needs. Rooms, Store and Log must be given.
type Options struct {
	Rooms   *room.Rooms
	Store   *pglive.Store
	Name    string // of this machine, for people
	Version string // of the program
	Log     *slog.Logger
	// Refused counts the requests that this node refused since its start, by the
	// limit of their network; nil: it limits none.
	Refused func() map[string]uint64
	// MaxStreams is how many watch at once on this node, and MaxOwn how many of
	// them may be of one person or token; 0: [DefaultStreams], [DefaultOwn].
	MaxStreams, MaxOwn int
}

// Defaults of [Options].
const (
	DefaultStreams = 500
	DefaultOwn     = 10
)

// Live has the figures of the rooms of a node. Safe for concurrent use.
type Live struct {
	Options
	id      uuid.UUID // of this node
	started time.Time

	work    sync.WaitGroup     // what Run does beside samples
	group   singleflight.Group // makes a summary once
	digests chan struct{}      // holds one token for each summary that is being made
	seats   seats

	nodes   atomic.Pointer[[]pglive.Node] // as of the latest heartbeat
	waiting []pglive.Minute               // for the database; the sampler alone uses it
	sending []pglive.Minute               // on the way to it, nil for none; the sampler alone uses it
	stored  chan error                    // answers of it; the sampler alone reads it
	failing bool                          // and that is logged; the sampler alone uses it

	mu     sync.Mutex // guards tracks
	tracks map[uuid.UUID]*track
}

// track is what is kept of one room as long as it is in memory.
type track struct {
	room  *room.Room
	board board

	mu     sync.Mutex // guards all below
	ring   ring
	minute int64         // Unix minutes of the row that is being collected, 0 before the first sample
	peak   int64         // in that minute
	row    pglive.Minute // the latest one
	ended  bool          // nothing is collected any more
}

// New returns the live figures of rooms. Run must be called.
func New(o Options) *Live {
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultStreams
	}
	if o.MaxOwn == 0 {
		o.MaxOwn = DefaultOwn
	}
	return &Live{
		Options: o, id: uuid.New(), started: time.Now(), digests: make(chan struct{}, 1), stored: make(chan error, 1),
		seats: seats{most: o.MaxStreams, own: o.MaxOwn}, tracks: map[uuid.UUID]*track{},
	}
}

// Run takes samples, stores what is kept and says that this node is there, until
// ctx ends.
func (l *Live) Run(ctx context.Context) {
	defer l.work.Wait()
	l.work.Go(func() { l.beat(ctx) })
	l.work.Go(func() { l.prune(ctx) })
	timer := time.NewTimer(sampleEvery) // no ticker: that would make up for a late sample by an early one
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			l.sample(ctx)
			timer.Reset(sampleEvery)
		case <-ctx.Done():
			l.leave()
			return
		}
	}
}

// sample looks at every room once, and lets go of those that are not in memory
// any more.
func (l *Live) sample(ctx context.Context) {
	l.mu.Lock()
	gone := maps.Clone(l.tracks) // from before the rooms are listed: more may be loaded meanwhile
	l.mu.Unlock()
	for _, r := range l.Rooms.Loaded() {
		delete(gone, r.ID)
		l.look(ctx, l.track(r))
	}
	l.mu.Lock()
	for id, t := range gone {
		t.board.close()
		delete(l.tracks, id)
	}
	l.mu.Unlock()
	l.send(ctx)
}

// track returns what is kept of a room, anew when the room was loaded anew.
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

// look takes a sample of one room, tells those who watch, and adds a row when a
// minute is over.
func (l *Live) look(ctx context.Context, t *track) {
	v := t.room.Vitals()
	if ended := l.collect(t, &v); ended {
		l.work.Go(func() { l.digestEnded(ctx, t.room) })
	}
	if t.board.isWatched() {
		t.board.post(l.encode(t, &v))
	}
}

// find returns a room, loaded if need be, and what is kept of it.
func (l *Live) find(ctx context.Context, slug string) (*track, error) {
	r, err := l.Rooms.Get(ctx, slug)
	if err != nil {
		return nil, err
	}
	return l.track(r), nil
}

// prune deletes what is too old, now and then.
func (l *Live) prune(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, pruneEvery/2)
		if _, err := l.Store.Prune(asked, time.Now().Add(-Kept)); err != nil && ctx.Err() == nil {
			l.Log.Warn("history cannot be pruned", "err", err)
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

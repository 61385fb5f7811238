package room

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/setting"
)

// Options configures [New].
type Options struct {
	Logs      *pglog.Store
	Rooms     *pgroom.Store
	MasterKey *keys.MasterKey
	PublicURL string // scheme, host and path below which the rooms are published, without a trailing slash
	Log       *slog.Logger
	// Chains are the beacons that rooms may use, the default first. Witnesses cosign the rooms that name
	// them; new rooms name all.
	Chains    []Chain
	Witnesses []Witness
	// MaxClockStep is the largest jump of the database's clock that is followed at once; 0: five seconds.
	// [clock.AnyStep] suits tests with their own clocks.
	MaxClockStep time.Duration
	// Marks records how far this node has seen each log; nil: in this process only.
	Marks *mark.Store
}

// Rooms manages all rooms of a server. It is safe for concurrent use.
type Rooms struct {
	Options
	clock *clock.Clock

	ctx    context.Context // ends the sequencers
	cancel context.CancelFunc
	group  singleflight.Group // loads a room only once

	strangers strangers // verifies rounds that anyone may send
	counsel   counsel

	adopted  atomic.Bool            // the rooms that existed at the start are loaded
	troubled atomic.Bool            // the database did not answer the latest tick
	answered atomic.Pointer[answer] // latest answer of the database
	watcher  *clock.Watcher         // only tick uses it
	surveyed time.Time              // when the flows were last read; only tick uses it
	counted  counting               // latest count of unqueued sessions; only tick uses it
	failing  map[string]bool        // slugs of rooms that did not load; only adopt uses it
	settling settling               // only tick uses it

	mu     sync.RWMutex // guards all below
	loaded map[string]*Room
	aside  map[uuid.UUID]aside
	closed bool
}

// New returns the rooms of a server. Call Run for the work that depends on the clock.
func New(o Options) *Rooms {
	ctx, cancel := context.WithCancel(context.Background())
	if o.Marks == nil {
		o.Marks = mark.Memory()
	}
	if o.Logs != nil && o.Log != nil {
		o.Logs.LogTo(o.Log)
	}
	rs := &Rooms{
		Options: o, ctx: ctx, cancel: cancel, clock: clock.New(o.MaxClockStep), strangers: newStrangers(),
		failing: map[string]bool{}, loaded: map[string]*Room{}, aside: map[uuid.UUID]aside{},
	}
	rs.watcher, rs.counsel.witnesses = clock.NewWatcher(rs.clock, o.Logs, o.Log), o.Witnesses
	if o.Logs != nil {
		o.Logs.Stamp(rs.clock.Stamp)
	}
	if o.Logs != nil && o.Rooms != nil {
		o.Rooms.Through(o.Logs.Acquire)
	}
	return rs
}

// loadWait limits how long a visitor waits for a room that is not loaded.
const loadWait = 15 * time.Second

// Get returns the room with the slug, and loads it if necessary; else [ErrNotFound].
func (rs *Rooms) Get(ctx context.Context, slug string) (*Room, error) {
	if r, ok := rs.find(slug); ok {
		return r, r.complete()
	}
	if !setting.IsSlug(slug) {
		return nil, ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, loadWait)
	defer cancel()
	r, err := rs.load(ctx, slug)
	if err != nil {
		return nil, err
	}
	return r, r.complete()
}

// find returns a loaded room. It marks the room as used while it holds the lock, so that the room is not
// unloaded before the caller uses it.
func (rs *Rooms) find(slug string) (*Room, bool) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	r, ok := rs.loaded[slug]
	if ok {
		r.touch()
	}
	return r, ok
}

// load returns a room. It opens the room only once for any number of concurrent callers.
func (rs *Rooms) load(ctx context.Context, slug string) (*Room, error) {
	select {
	case result := <-rs.group.DoChan(slug, func() (any, error) { return rs.open(slug) }):
		r, _ := result.Val.(*Room)
		return r, result.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open reads a room from its log and starts its sequencer, unless it is already loaded.
func (rs *Rooms) open(slug string) (*Room, error) {
	rs.mu.RLock()
	r, ok := rs.loaded[slug]
	closed := rs.closed
	rs.mu.RUnlock()
	switch {
	case ok:
		return r, nil
	case closed:
		return nil, ErrStopping
	}
	ctx, cancel := context.WithTimeout(rs.ctx, loadWait)
	defer cancel()
	record, err := rs.Options.Rooms.Get(ctx, slug)
	if errors.Is(err, pgroom.ErrNotFound) {
		return nil, rs.missing(slug)
	}
	if err != nil {
		return nil, err
	}
	if r, err = rs.prepare(ctx, record); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := r.reload(rs.ctx); err != nil && (r.regression.Load() == nil || r.live == nil || r.live.Size() == 0) {
		return nil, err
	}
	r.current.note(began)
	if r.live.Size() == 0 {
		return nil, ErrNotFound // its creation was interrupted
	}
	if err := r.openGate(ctx); err != nil {
		return nil, fmt.Errorf("open room %s: %w", slug, err)
	}
	return rs.start(r)
}

// prepare builds the room without its projection.
func (rs *Rooms) prepare(ctx context.Context, record pgroom.Room) (*Room, error) {
	sealed, err := rs.Options.Rooms.Keys(ctx, record.ID)
	if err != nil {
		return nil, err
	}
	k, err := keys.Open(rs.MasterKey, record, sealed)
	if err != nil {
		return nil, fmt.Errorf("open room %s: %w", record.Slug, err)
	}
	r := &Room{
		ID: record.ID, Slug: record.Slug, Owner: record.Owner, Origin: record.Origin, URL: rs.URL(record), VKey: k.VKey,
		log: rs.Log, store: rs.Logs, texts: rs.Options.Rooms, clock: rs.clock, keys: k,
		evidence: evidence{store: rs.Options.Rooms}, strangers: rs.strangers, counsel: &rs.counsel, marks: rs.Marks,
		chunk: leastChunk, queue: newQueue(), done: make(chan struct{}),
	}
	r.title.Store(&record.Title)
	r.settings.Store(&storedSettings{})
	r.flow.store, r.flow.master = rs.Options.Rooms, rs.MasterKey
	if err := r.openFlow(ctx); err != nil {
		return nil, fmt.Errorf("open room %s: %w", record.Slug, err)
	}
	return r, r.readSettings(ctx, record.SettingsVersion)
}

// start registers a loaded room and starts its sequencer.
func (rs *Rooms) start(r *Room) (*Room, error) {
	policy := *r.live.Policy() // a copy: a pointer would keep the old state alive after a reload
	r.policy = &policy
	r.refresh(rs.ctx)
	r.touch()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, ErrStopping
	}
	if loaded, ok := rs.loaded[r.Slug]; ok {
		return loaded, nil
	}
	rs.loaded[r.Slug] = r
	delete(rs.aside, r.ID)
	go r.sequence(rs.ctx)
	r.attend(rs.ctx, &rs.Options)
	return r, nil
}

// URL returns the URL of a room: below the server's own address, with the room's custom host in place of the
// server's, if it has one.
func (rs *Rooms) URL(record pgroom.Room) string {
	base := rs.PublicURL
	if u, err := url.Parse(base); err == nil && record.Host != nil {
		port := u.Port()
		if u.Host = *record.Host; port != "" {
			u.Host = net.JoinHostPort(u.Host, port)
		}
		base = u.String()
	}
	return base + "/r/" + record.Slug
}

// List returns all rooms, newest first.
func (rs *Rooms) List(ctx context.Context) ([]pgroom.Room, error) { return rs.Options.Rooms.List(ctx) }

// Abandon stops all rooms at once: requests that wait for the database fail with [ErrStopping], and may or
// may not be stored.
func (rs *Rooms) Abandon() {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	rs.cancel()
}

// Close stops all rooms after finishing their queued work, as long as ctx lasts. Rooms refuse further work
// with [ErrStopping].
func (rs *Rooms) Close(ctx context.Context) error {
	rs.mu.Lock()
	rs.closed = true
	rooms := slices.Collect(maps.Values(rs.loaded))
	rs.mu.Unlock()
	defer rs.cancel()
	for _, r := range rooms {
		r.queue.stop()
	}
	for _, r := range rooms {
		select {
		case <-r.done:
		case <-ctx.Done():
			return fmt.Errorf("close rooms: %w", ctx.Err())
		}
	}
	return nil
}

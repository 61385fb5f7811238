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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pace"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/queueit"
	"github.com/proofline/proofline/room/quota"
	"github.com/proofline/proofline/room/register"
	"github.com/proofline/proofline/room/regression"
	"github.com/proofline/proofline/room/revocation"
	"github.com/proofline/proofline/room/safetynet"
	"github.com/proofline/proofline/room/sequence"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/room/transfer"
)

// Options configures [New].
type Options struct {
	Logs      *pglog.Store
	Store     *pgroom.Store
	MasterKey *keys.MasterKey
	PublicURL string // scheme, host and path below which the rooms are published, without a trailing slash
	Log       *slog.Logger
	// Chains are the beacons that rooms may use, the default first. Witnesses cosign the rooms that name
	// them; new rooms name all.
	Chains    []evidence.Chain
	Witnesses []evidence.Witness
	// MaxClockStep is the largest jump of the database's clock that is followed immediately; 0: five seconds.
	// [clock.AnyStep] suits tests with their own clocks.
	MaxClockStep time.Duration
	// Marks records how far this node has seen each log; nil: in this process only.
	Marks *mark.Store
	// JoinsPerMinute is the maximum number of joins a minute of all rooms on this node; 0: no limit.
	JoinsPerMinute uint32
	// Issuer is the server's own issuer; nil: rooms name the keys of others.
	Issuer Issuer
	// Meter measures what this node does; nil: nothing is measured.
	Meter *meter.Meter
	// Tracer traces what this node does; nil: nothing is traced.
	Tracer *traces.Tracer
}

// Rooms manages all rooms of a server. It is safe for concurrent use.
type Rooms struct {
	Options
	Register *register.Register // the log of rooms
	Quotas   *quota.Quotas      // what organizations may use of this node
	clock    *clock.Clock
	pace     pace.Limit // of JoinsPerMinute

	ctx    context.Context // ends the sequencers
	cancel context.CancelFunc
	group  singleflight.Group // loads a room only once

	limiter   *evidence.RoundLimiter
	witnesses *evidence.Witnesses

	adopted  atomic.Bool            // the rooms that existed at the start are loaded
	isDown   atomic.Bool            // the database did not answer the latest tick
	answered atomic.Pointer[answer] // latest answer of the database
	failing  map[string]bool        // slugs of rooms that did not load; only adopt uses it

	// The ticker alone uses these.
	watcher *clock.Watcher
	poller  *controlsPoller
	settler *regression.Settler

	mu       sync.RWMutex // guards the fields below
	loaded   map[string]*Room
	unloaded map[uuid.UUID]unloadedRoom
	closed   bool
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
		Options: o, clock: clock.New(o.MaxClockStep), ctx: ctx, cancel: cancel, limiter: evidence.NewRoundLimiter(),
		witnesses: evidence.NewWitnesses(o.Witnesses), failing: map[string]bool{}, loaded: map[string]*Room{},
		unloaded: map[uuid.UUID]unloadedRoom{},
	}
	rs.watcher, rs.poller = clock.NewWatcher(rs.clock, o.Logs, o.Log), newControlsPoller(o.Store, rs.clock, o.Log)
	rs.Register = register.New(register.Options{Logs: o.Logs, Store: o.Store, MasterKey: o.MasterKey, Marks: o.Marks,
		Witnesses: o.Witnesses, Origin: originOf(o.PublicURL + "/" + roomlog.Path), Meter: o.Meter, Tracer: o.Tracer, Log: o.Log,
		Now: rs.clock.Now})
	rs.Quotas = quota.New(o.Store, o.Log, func() map[uuid.UUID]uint64 {
		waiting := map[uuid.UUID]uint64{}
		for _, r := range rs.Loaded() {
			waiting[r.Owner.Org] += r.Snapshot().Counts.Unsettled()
		}
		return waiting
	})
	rs.settler = regression.NewSettler(rs.sources(), o.Log, func() error { return rs.restore(ctx) }, rs.suspect)
	if o.Logs != nil {
		o.Logs.Stamp(rs.clock.Stamp)
	}
	if o.Logs != nil && o.Store != nil {
		o.Store.Sessions.Through(o.Logs.Acquire)
	}
	return rs
}

// sources returns where rooms, logs and marks are found.
func (rs *Rooms) sources() regression.Sources {
	return regression.Sources{Records: rs.Store, Logs: rs.Logs, Marks: rs.Marks, MasterKey: rs.MasterKey,
		Lost: rs.Register.Lost}
}

// restore stores the redemptions that the database has lost.
func (rs *Rooms) restore(ctx context.Context) error {
	return session.Restore(ctx, rs.Marks, rs.Store.Sessions, rs.Log)
}

// suspect makes a loaded room, or the log of rooms, compare itself with the database.
func (rs *Rooms) suspect(slug string) {
	if slug == pgroom.RegisterName {
		rs.Register.Suspect()
		return
	}
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if r, ok := rs.loaded[slug]; ok {
		r.sequencer.Suspect()
	}
}

// loadWait limits how long a visitor waits for a room that is not loaded.
const loadWait = 15 * time.Second

// Get returns the room with the slug, and loads it if necessary. It returns [ErrNotFound] if there
// is none.
func (rs *Rooms) Get(ctx context.Context, slug string) (*Room, error) {
	if r, ok := rs.find(slug); ok {
		return r, r.guard.Err()
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
	return r, r.guard.Err()
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

// load returns a room, which it opens only once for any number of concurrent callers.
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
	missing := regression.MissingRoom(rs.Marks, slug) // before the database: the room may be created meanwhile
	record, err := rs.Store.Get(ctx, slug)
	if errors.Is(err, pgroom.ErrNotFound) {
		if missing != nil {
			return nil, missing
		}
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if r, err = rs.prepare(ctx, record); err != nil {
		return nil, err
	}
	if err := r.sequencer.Load(rs.ctx); err != nil && (r.guard.Regression() == nil || r.view.Size() == 0) {
		return nil, err
	}
	if r.view.Size() == 0 {
		return nil, ErrNotFound // the room's creation was interrupted
	}
	policy := r.view.Policy()
	r.policy = &policy
	r.attach(rs.Store, rs.Marks, rs.MasterKey)
	// The unqueued sessions must be known before the first call.
	if err := rs.poller.countUnqueued(ctx, map[uuid.UUID]*Room{r.ID: r}); err != nil {
		return nil, fmt.Errorf("open room %s: %w", slug, err)
	}
	return rs.start(r)
}

// CheckKey returns [keys.ErrMasterKey] if the master key did not seal the keys of a room.
func (rs *Rooms) CheckKey(ctx context.Context, record pgroom.Room) error {
	_, err := rs.openKeys(ctx, record)
	return err
}

func (rs *Rooms) openKeys(ctx context.Context, record pgroom.Room) (*keys.Keys, error) {
	sealed, err := rs.Store.Keys(ctx, record.ID)
	if err != nil {
		return nil, err
	}
	k, err := keys.Open(rs.MasterKey, record, sealed)
	if err != nil {
		return nil, fmt.Errorf("open room %s: %w", record.Slug, err)
	}
	return k, nil
}

// prepare builds the room without its projection.
func (rs *Rooms) prepare(ctx context.Context, record pgroom.Room) (*Room, error) {
	k, err := rs.openKeys(ctx, record)
	if err != nil {
		return nil, err
	}
	r := &Room{
		ID: record.ID, Slug: record.Slug, Owner: record.Owner, Origin: record.Origin, URL: rs.URL(record), VKey: k.VKey,
		PassKeys:   session.NewPassKeys(record.ID, k.Pass, rs.MasterKey, rs.Store.Controls, rs.clock),
		isImported: record.VKey != nil,
		log:        rs.Log, clock: rs.clock, keys: k, store: rs.Logs, pull: rs.Store.Controls,
		Issuer: rs.Issuer, controls: &projection.Controls{},
		guard: regression.NewGuard(record.ID, mark.Log{Slug: record.Slug, Key: k.Log.KeyHash()}, rs.Logs, rs.Marks,
			rs.Log),
	}
	known := &evidence.Known{}
	target := evidence.Target{ID: r.ID, Slug: r.Slug, Origin: r.Origin, Signer: k.Log, IsImported: r.isImported,
		Logs: rs.Logs, Holder: r.guard, Forks: &evidence.Forks{}, Meter: rs.Meter, Tracer: rs.Tracer, Log: rs.Log,
		Now: r.Now}
	r.sequencer = sequence.New(sequence.Options{
		ID: r.ID, Slug: r.Slug, Origin: r.Origin, Keys: k, Store: rs.Logs, Log: rs.Log, Guard: r.guard,
		Controls: r.controls, Evidence: known, Meter: rs.Meter, Tracer: rs.Tracer,
		IsFull: func(n fairness.Counts) bool { return r.details.IsFull(n) },
		Consult: func(ctx context.Context, p *projection.Projection) {
			rs.witnesses.Consult(ctx, target, p.Policy().Witnesses, p.Size())
		},
		Restore: rs.restore, Changed: r.refresh,
	})
	r.view = r.sequencer.View()
	r.Transcript, r.Refused = Transcript{r}, Refusals{r, rs.Meter}
	r.pace.server, r.pace.most = &rs.pace, rs.JoinsPerMinute
	r.details = newDetails(r.ID, rs.Store, record.Title, r.sequencer.Wake)
	r.Quota = rs.Quotas.Of(r.Owner.Org)
	r.details.overQuota = r.Quota.IsFull
	r.Evidence = evidence.NewCollector(target, known, rs.Store.Evidence, r.view, r.sequencer, rs.limiter)
	r.Lists = revocation.New(r.sequencer)
	r.Transfers = transfer.New(r.ID, r.Origin, r, rs.Store.Transfers)
	if err := rs.poller.readControls(ctx, r); err != nil {
		return nil, fmt.Errorf("open room %s: %w", record.Slug, err)
	}
	return r, r.details.ReadVersion(ctx, record.SettingsVersion)
}

// attach builds the parts that depend on the room's policy.
func (r *Room) attach(store *pgroom.Store, marks *mark.Store, master *keys.MasterKey) {
	r.Sessions = session.New(session.Options{
		Room:   session.Room{ID: r.ID, Slug: r.Slug, Origin: r.Origin, URL: r.URL},
		Policy: r.policy, Keys: r.PassKeys, Transcript: r, Store: store.Sessions, Marks: marks, Clock: r.clock,
		Log: r.log,
	})
	r.SafetyNet = safetynet.New(safetynet.Options{
		Room: r.ID, Session: time.Duration(r.policy.Session) * time.Millisecond, Store: store.Connectors,
		Unqueued: &r.controls.Unqueued, Transcript: r.sequencer, Clock: r.clock,
		Status: func() safetynet.Status {
			s := r.Snapshot()
			return safetynet.Status{Gate: s.Gate, Outflow: s.Outflow, IsEnded: s.Ended}
		},
	})
	r.QueueIt = queueit.New(r.ID, r.Slug, master, r.details, r.Sessions, r.Now)
}

// start registers a loaded room and starts its sequencer.
func (rs *Rooms) start(r *Room) (*Room, error) {
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
	delete(rs.unloaded, r.ID)
	go r.sequencer.Run(rs.ctx)
	ctx, cancel := context.WithCancel(rs.ctx)
	go func() {
		<-r.sequencer.Done()
		cancel()
	}()
	r.Evidence.Start(ctx, r.policy, rs.Chains, rs.Witnesses)
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

// originOf returns the origin of the log that is published below a URL.
func originOf(url string) string {
	_, origin, _ := strings.Cut(url, "://")
	return origin
}

// List returns all rooms, newest first.
func (rs *Rooms) List(ctx context.Context) ([]pgroom.Room, error) { return rs.Store.List(ctx) }

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
		r.sequencer.Stop()
	}
	for _, r := range rooms {
		select {
		case <-r.sequencer.Done():
		case <-ctx.Done():
			return fmt.Errorf("close rooms: %w", ctx.Err())
		}
	}
	return nil
}

// Refresh reads other nodes' changes of a room, so that its configuration is at least as recent as the call.
func (rs *Rooms) Refresh(ctx context.Context, r *Room) error {
	before := r.details.Known()
	record, err := rs.Store.Get(ctx, r.Slug)
	if err != nil {
		return err
	}
	if err := r.details.Take(ctx, before, &record); err != nil {
		return err
	}
	return r.ReadLatest(ctx)
}

// Recover examines a held room. It changes nothing.
func (rs *Rooms) Recover(ctx context.Context, slug string) (*regression.Recovery, error) {
	return regression.Recover(ctx, rs.sources(), slug)
}

// leaveTimeout limits how long a stop waits for the database.
const leaveTimeout = time.Second

// Leave records in the database that this node has stopped. If that fails, the other nodes wait a moment for this
// one when the database is next replaced.
func (rs *Rooms) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := rs.Logs.Leave(ctx, rs.Marks.Node()); err != nil {
		rs.Log.Warn("cannot tell the other servers that this one has stopped", "err", err)
	}
}

// ConfirmClock makes all servers follow the jump of the database's clock that they refuse.
func (rs *Rooms) ConfirmClock(ctx context.Context) error { return rs.Logs.ConfirmClock(ctx) }

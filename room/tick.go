package room

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/quota"
	"github.com/proofline/proofline/room/sequence"
)

// How often a node checks its rooms, and when it unloads one.
const (
	tickInterval  = 100 * time.Millisecond
	tickTimeout   = 5 * time.Second
	adoptInterval = 5 * time.Second  // how often to look for rooms created on other nodes
	unloadAfter   = 10 * time.Minute // idle time before a room with nothing left to do is unloaded
)

// Run does the clock's work for all rooms until ctx ends: it reads the database's time and what other nodes
// appended, wakes rooms with something due or to publish, loads rooms that other nodes created, and processes
// connector reports.
func (rs *Rooms) Run(ctx context.Context) {
	rs.Logs.Guard()
	rs.tick(ctx) // the time must be known before any room is loaded
	var others sync.WaitGroup
	others.Go(func() { rs.adoptAll(ctx) })
	others.Go(func() { rs.Register.Run(ctx) })
	if rs.Marks.Remote != nil {
		others.Go(func() { rs.Marks.Remote.Run(ctx, rs.settler.Compare) })
	}
	others.Go(func() { timing.Every(ctx, cleanupInterval, rs.cleanUp) })
	others.Go(func() { timing.Every(ctx, quota.Interval, rs.Quotas.Compare) })
	timing.Every(ctx, tickInterval, rs.tick)
	others.Wait()
}

// adoptAll loads rooms outside of the ticks, which a large room would delay.
func (rs *Rooms) adoptAll(ctx context.Context) {
	rs.adopt(ctx)
	timing.Every(ctx, adoptInterval, func(ctx context.Context) {
		rs.unload()
		rs.adopt(ctx)
	})
}

// minLoading is the number of rooms loaded at once on a machine with fewer cores; others load one per core. Small
// rooms mostly wait for the database, and should not wait for a large room.
const minLoading = 4

// adopt loads every room that has not ended and was not unloaded.
func (rs *Rooms) adopt(ctx context.Context) {
	before := map[*Room]earlier{} // state before the records are read
	rooms, _ := rs.watched()
	for _, r := range rooms {
		before[r] = r.details.Known()
	}
	records, err := rs.Store.ListOpen(ctx)
	if err != nil {
		rs.noteDown(ctx, err)
		return
	}
	errs := make([]error, len(records))
	var loading errgroup.Group
	loading.SetLimit(max(minLoading, runtime.GOMAXPROCS(0)))
	for i := range records {
		loading.Go(func() error {
			errs[i] = rs.adoptOne(ctx, &records[i], before)
			return nil
		})
	}
	_ = loading.Wait() // each room has its own error
	if ctx.Err() != nil {
		return
	}
	for i := range records {
		rs.reportLoad(records[i].Slug, errs[i])
	}
	rs.adopted.Store(true)
}

// adoptOne loads a room unless it was unloaded, and applies its record.
func (rs *Rooms) adoptOne(ctx context.Context, record *pgroom.Room, before map[*Room]earlier) error {
	if rs.isUnloaded(record.ID) {
		return nil
	}
	r, err := rs.load(ctx, record.Slug)
	if err != nil {
		return err
	}
	return r.details.Take(ctx, before[r], record)
}

// reportLoad logs once that a room cannot be loaded. A room whose creation is not finished is not an error.
func (rs *Rooms) reportLoad(slug string, err error) {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrStopping) {
		delete(rs.failing, slug)
		return
	}
	if !rs.failing[slug] {
		rs.Log.Error("cannot load room", "room", slug, "err", err)
	}
	rs.failing[slug] = true
}

// Ready reports whether the rooms that existed at the start are loaded and the database answers.
func (rs *Rooms) Ready() bool { return rs.adopted.Load() && rs.Answers() }

// Answers reports whether the database answered the latest tick, and answered within two seconds: a frozen
// database does not return errors.
func (rs *Rooms) Answers() bool {
	a := rs.answered.Load()
	return a != nil && !rs.isDown.Load() && time.Since(a.asked) <= sequence.StaleAfter
}

// tick checks every room once. It waits for no room's lock, so that a stuck room does not delay the others.
func (rs *Rooms) tick(running context.Context) {
	ctx, cancel := context.WithTimeout(running, tickTimeout)
	defer cancel()
	rooms, ids := rs.watched()
	durable := make(map[uuid.UUID]uint64, len(rooms)) // state before the heads are read
	for id, r := range rooms {
		r.ticked.reportStuck(r)
		durable[id] = r.view.Size()
	}
	asked := time.Now()
	heads, raw, err := rs.Logs.Heads(ctx, ids)
	if _, begun := rs.Logs.Accepted(); errors.Is(err, pglog.ErrUnsettled) || err == nil && !begun {
		if err = rs.settler.Settle(ctx); err == nil {
			asked = time.Now()
			heads, raw, err = rs.Logs.Heads(ctx, ids)
		}
	}
	if err != nil {
		rs.noteDown(running, err)
		return
	}
	now := rs.clock.Observe(raw, asked, time.Now())
	rs.answered.Store(&answer{asked, time.Since(asked)})
	rs.watcher.ReportSkew()
	if err := rs.watcher.Exchange(ctx, raw); err != nil {
		rs.noteDown(running, err)
		return
	}
	if err := rs.poller.poll(ctx, rooms, millis.Of(now)); err != nil {
		rs.noteDown(running, err)
		return
	}
	rs.noteUp()
	var lagging []uuid.UUID
	for _, h := range heads {
		r, ok := rooms[h.Room]
		if !ok {
			rs.reload(h)
			continue
		}
		isKnown, lags := r.sequencer.Follow(h, durable[h.Room], asked, millis.Of(now))
		if isKnown {
			r.noteHead(h, millis.Of(now))
			rs.noteEnd(r)
		}
		if lags {
			lagging = append(lagging, h.Room)
		}
	}
	if err := rs.Logs.Publish(ctx, lagging); err != nil {
		rs.noteDown(running, err)
	}
}

// watched returns the loaded rooms, and the ids of those and of the unloaded rooms.
func (rs *Rooms) watched() (map[uuid.UUID]*Room, []uuid.UUID) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	rooms := make(map[uuid.UUID]*Room, len(rs.loaded))
	ids := make([]uuid.UUID, 0, len(rs.loaded)+len(rs.unloaded))
	for _, r := range rs.loaded {
		rooms[r.ID] = r
		ids = append(ids, r.ID)
	}
	for id := range rs.unloaded {
		ids = append(ids, id)
	}
	return rooms, ids
}

// noteDown records that the database does not answer, and logs it once. running is the context of all work, which
// ends when the server stops.
func (rs *Rooms) noteDown(running context.Context, err error) {
	if running.Err() == nil && !rs.isDown.Swap(true) {
		rs.Log.Error("database does not answer", "err", err)
	}
}

func (rs *Rooms) noteUp() {
	if !rs.isDown.Swap(false) {
		return
	}
	rs.Log.Info("database answers again")
	for _, r := range rs.Loaded() {
		r.sequencer.Retry()
	}
}

// ticked is what the ticker remembers of a room.
type ticked struct {
	isStuck     bool        // the room was stuck at the latest tick
	isEndStored atomic.Bool // the end is in the log of rooms and in the database, or is being stored
}

// reportStuck logs when a room gets stuck, and when it recovers.
func (t *ticked) reportStuck(r *Room) {
	stuck := r.Stuck()
	switch was := t.isStuck; {
	case stuck > 0 && !was:
		r.log.Error("room cannot store anything: joins, claims and calls wait", "room", r.Slug,
			"for", stuck.Round(time.Second))
	case stuck == 0 && was:
		r.log.Info("room stores again", "room", r.Slug)
	}
	t.isStuck = stuck > 0
}

// noteHead stores what a tick has read about the room. It allocates only when the published checkpoint has
// changed.
func (r *Room) noteHead(h pglog.Head, now fairness.Time) {
	if was := r.published.Load(); was == nil || was.Size != h.Published || !was.At.Equal(h.PublishedAt) {
		r.published.Store(&Published{h.Published, h.PublishedAt})
	}
	r.view.Read(func(p *projection.Projection, _ uint64) { r.freed.Note(max(now, p.Now()), p) })
	if r.Snapshot().incomplete {
		r.sequencer.Wake()
	}
}

// How long storing the end of a room may take, and the pause after a failure.
const (
	endTimeout = 15 * time.Second
	endRetry   = time.Second
)

// noteEnd has the end of an ended room recorded, outside of the ticks. A node that stops before that leaves it to the
// next one, which loads every room that is not marked as ended.
func (rs *Rooms) noteEnd(r *Room) {
	if !r.Snapshot().Ended || r.ticked.isEndStored.Swap(true) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(rs.ctx, endTimeout)
		defer cancel()
		if err := rs.recordEnd(ctx, r); err != nil && rs.ctx.Err() == nil {
			rs.Log.Error("cannot record the end of a room", "room", r.Slug, "err", err)
			timing.Sleep(rs.ctx, endRetry)
			r.ticked.isEndStored.Store(false)
		}
	}()
}

// recordEnd records the end of a room in the log of rooms, and then marks the room as ended.
func (rs *Rooms) recordEnd(ctx context.Context, r *Room) error {
	marks, err := rs.Logs.Marks(ctx, []uuid.UUID{r.ID})
	if err == nil {
		err = rs.Register.End(ctx, r.Origin, marks[r.ID])
	}
	if err == nil {
		err = rs.Store.MarkEnded(ctx, r.ID)
	}
	return err
}

// unloadedRoom is a room that was unloaded: nothing can become due in it until its log grows or a request for it
// arrives.
type unloadedRoom struct {
	slug string
	size uint64
}

func (rs *Rooms) isUnloaded(id uuid.UUID) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	_, ok := rs.unloaded[id]
	return ok
}

// unload unloads rooms that have not been used for a while and have nothing left to do.
func (rs *Rooms) unload() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for slug, r := range rs.loaded {
		isIdle := time.Since(time.Unix(r.lastUse.Load(), 0)) >= unloadAfter
		if !isIdle || !r.view.IsQuiet() || r.Regression() != nil {
			continue
		}
		delete(rs.loaded, slug)
		if s := r.Snapshot(); !s.Ended { // an ended room does not change
			rs.unloaded[r.ID] = unloadedRoom{slug, s.Size}
		}
		r.sequencer.Stop()
	}
}

// reload loads a room again whose log has grown on another node.
func (rs *Rooms) reload(h pglog.Head) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	u, ok := rs.unloaded[h.Room]
	if !ok || h.Size <= u.size {
		return
	}
	delete(rs.unloaded, h.Room)
	rs.group.DoChan(u.slug, func() (any, error) { return rs.open(u.slug) }) // adopt retries a failure
}

// How often waiting reports are recorded and expired rows deleted, and how long expired rows are kept; a repeated
// report must still find its session.
const (
	cleanupInterval = time.Minute
	keptSessions    = 10 * time.Minute
	keptFailOpen    = 7 * 24 * time.Hour
)

// cleanUp records waiting fail-open reports, and deletes expired rows.
func (rs *Rooms) cleanUp(ctx context.Context) {
	rooms, _ := rs.watched()
	waiting, err := rs.Store.Connectors.WaitingFailOpen(ctx, slices.Collect(maps.Keys(rooms)))
	for _, id := range waiting {
		err = errors.Join(err, rooms[id].SafetyNet.RecordFailOpen(ctx))
	}
	err = errors.Join(err, rs.Store.Connectors.DeleteExpired(ctx, keptSessions, keptFailOpen))
	if err != nil && ctx.Err() == nil {
		rs.Log.Warn("cannot process connector reports", "err", err)
	}
}

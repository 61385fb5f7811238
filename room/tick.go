package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// How often a node checks its rooms, and when it unloads one.
const (
	tickEvery   = 100 * time.Millisecond
	tickTimeout = 5 * time.Second
	callEvery   = fairness.Time(250)     // minimum milliseconds between calls, so that each is worth an entry
	publishAge  = 500 * time.Millisecond // age of entries that the published checkpoint lacks
	adoptEvery  = 5 * time.Second        // how often to look for rooms created on other nodes
	unloadAfter = 10 * time.Minute       // time without a visitor, once nothing is left to do
)

// Run does the clock's work for all rooms until ctx ends: it reads the database's time and what other nodes
// appended, wakes rooms with something due or to publish, loads rooms that other nodes created, and processes
// connector reports.
func (rs *Rooms) Run(ctx context.Context) {
	rs.Logs.Guard()
	rs.tick(ctx) // the time must be known before any room is loaded
	var beside sync.WaitGroup
	beside.Go(func() { rs.adoptAll(ctx) })
	beside.Go(func() { every(ctx, tendEvery, rs.tend) })
	every(ctx, tickEvery, rs.tick)
	beside.Wait()
}

// adoptAll loads rooms outside of the ticks, which a large room would delay.
func (rs *Rooms) adoptAll(ctx context.Context) {
	rs.adopt(ctx)
	every(ctx, adoptEvery, func(ctx context.Context) {
		rs.unload()
		rs.adopt(ctx)
	})
}

func every(ctx context.Context, d time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// adopt loads every room that has not ended and is not set aside.
func (rs *Rooms) adopt(ctx context.Context) {
	titles := map[*Room]*string{} // as of before the records are read
	rooms, _ := rs.watched()
	for _, r := range rooms {
		titles[r] = r.title.Load()
	}
	records, err := rs.Options.Rooms.ListOpen(ctx)
	if err != nil {
		rs.trouble(ctx, err)
		return
	}
	for _, record := range records {
		if rs.isAside(record.ID) {
			continue
		}
		r, err := rs.load(ctx, record.Slug)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			r.takeTitle(titles[r], record.Title) // another node may have changed it
			err = r.readSettings(ctx, record.SettingsVersion)
		}
		rs.reportLoad(record.Slug, err)
	}
	rs.adopted.Store(true)
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

// Answers reports whether the database answered the latest tick, and answered within [staleAfter]: a frozen
// database does not return errors.
func (rs *Rooms) Answers() bool {
	a := rs.answered.Load()
	return a != nil && !rs.troubled.Load() && time.Since(a.asked) <= staleAfter
}

// tick checks every room once. It waits for no room's lock, so that a stuck room does not delay the others.
func (rs *Rooms) tick(running context.Context) {
	ctx, cancel := context.WithTimeout(running, tickTimeout)
	defer cancel()
	rooms, ids := rs.watched()
	stored := make(map[uuid.UUID]uint64, len(rooms)) // before the heads are read
	for id, r := range rooms {
		r.reportStuck()
		stored[id] = r.durableSize()
	}
	asked := time.Now()
	heads, raw, err := rs.Logs.Heads(ctx, ids)
	if _, begun := rs.Logs.Accepted(); errors.Is(err, pglog.ErrUnsettled) || err == nil && !begun {
		if err = rs.settle(ctx); err == nil {
			asked = time.Now()
			heads, raw, err = rs.Logs.Heads(ctx, ids)
		}
	}
	if err != nil {
		rs.trouble(running, err)
		return
	}
	now := rs.clock.Observe(raw, asked, time.Now())
	rs.answered.Store(&answer{asked, time.Since(asked)})
	rs.watcher.ReportSkew()
	if err := rs.watcher.Exchange(ctx, raw); err != nil {
		rs.trouble(running, err)
		return
	}
	if err := rs.survey(ctx, rooms, now); err != nil {
		rs.trouble(running, err)
		return
	}
	rs.calm()
	for _, h := range heads {
		if r, ok := rooms[h.Room]; ok {
			if h.Size < stored[h.Room] || h.Held || r.regression.Load() != nil {
				r.adrift.Store(true)
				r.queue.signal()
				continue // the room's state is unknown
			}
			r.beat(h, asked, fromTime(now))
			rs.markEnded(ctx, r)
		} else {
			rs.recall(h)
		}
	}
}

// watched returns the loaded rooms, and the ids of those and of the rooms set aside.
func (rs *Rooms) watched() (map[uuid.UUID]*Room, []uuid.UUID) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	rooms := make(map[uuid.UUID]*Room, len(rs.loaded))
	ids := make([]uuid.UUID, 0, len(rs.loaded)+len(rs.aside))
	for _, r := range rs.loaded {
		rooms[r.ID] = r
		ids = append(ids, r.ID)
	}
	for id := range rs.aside {
		ids = append(ids, id)
	}
	return rooms, ids
}

// trouble notes that the database does not answer, and logs that once. running is the context of all work,
// which ends when the server stops.
func (rs *Rooms) trouble(running context.Context, err error) {
	if running.Err() == nil && !rs.troubled.Swap(true) {
		rs.Log.Error("database does not answer", "err", err)
	}
}

func (rs *Rooms) calm() {
	if rs.troubled.Swap(false) {
		rs.Log.Info("database answers again")
	}
}

func (rs *Rooms) markEnded(ctx context.Context, r *Room) {
	if !r.Snapshot().Ended || r.marked {
		return
	}
	if err := rs.Options.Rooms.MarkEnded(ctx, r.ID); err != nil {
		rs.Log.Error("cannot mark room as ended", "room", r.Slug, "err", err)
		return
	}
	r.marked = true
}

// aside is a room that was unloaded: nothing can become due in it until its log grows or a request comes for
// it.
type aside struct {
	slug string
	size uint64
}

func (rs *Rooms) isAside(id uuid.UUID) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	_, ok := rs.aside[id]
	return ok
}

// unload unloads rooms that have not been used for a while and have nothing left to do.
func (rs *Rooms) unload() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for slug, r := range rs.loaded {
		if time.Since(time.Unix(r.lastUse.Load(), 0)) < unloadAfter || !r.isQuiet() || r.regression.Load() != nil {
			continue
		}
		delete(rs.loaded, slug)
		if s := r.Snapshot(); !s.Ended { // an ended room does not change
			rs.aside[r.ID] = aside{slug, s.Size}
		}
		r.queue.stop()
	}
}

// recall loads a room again whose log has grown on another node.
func (rs *Rooms) recall(h pglog.Head) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	a, ok := rs.aside[h.Room]
	if !ok || h.Size <= a.size {
		return
	}
	delete(rs.aside, h.Room)
	rs.group.DoChan(a.slug, func() (any, error) { return rs.open(a.slug) }) // adopt retries a failure
}

// beat wakes the room's sequencer if there is something to read, to do, or to publish. asked is when the head
// was queried, by this machine's clock.
func (r *Room) beat(h pglog.Head, asked time.Time, now fairness.Time) {
	r.pulse.see(h)
	r.mu.RLock()
	now = max(now, r.live.Now())
	behind, due := h.Size > r.stored, r.live.isDue(now)
	r.pulse.freed.note(now, r.live)
	r.mu.RUnlock()
	if !behind {
		r.current.note(asked)
	}
	if due {
		r.pulse.owed.owe()
		r.queue.duties()
	}
	if behind || r.Snapshot().incomplete {
		r.queue.signal()
	}
	switch {
	case h.Published == h.Size:
		r.unpublished = time.Time{}
	case r.unpublished.IsZero():
		r.unpublished = time.Now()
	case time.Since(r.unpublished) >= publishAge:
		r.unpublished = time.Time{}
		r.queue.publish()
	}
}

// isDue reports whether an entry is due.
func (l *live) isDue(now fairness.Time) bool {
	if l.Ended() {
		return false
	}
	if due, ok := l.FreezeDue(); ok && now >= due {
		return true
	}
	if _, ok := l.nextDraw(now); ok {
		return true
	}
	if _, ok := l.NextAssign(); ok {
		return true
	}
	if l.Counts().Waiting > 0 {
		if late, _ := l.NoShows(nil, l.noShows, now, 1); len(late) > 0 {
			return true
		}
	}
	_, call := l.nextCall(now)
	_, isSwitched := l.nextSwitch(now)
	return call || isSwitched || l.finished(now)
}

// nextCall returns how far the clock should advance the serving pointer now.
func (l *live) nextCall(now fairness.Time) (fairness.Position, bool) {
	if l.flow.isPull() || now < l.lastCall+callEvery {
		return 0, false
	}
	return l.CallLimit(now, l.capacity(now))
}

// capacity returns how many more visitors may enter before max_active is reached.
func (l *live) capacity(now fairness.Time) uint64 {
	most := uint64(l.Outflow().MaxActive)
	if most == 0 {
		return fairness.MaxArrivals
	}
	if !l.flow.isKnown() {
		return 0 // the next survey counts them
	}
	return most - min(most, l.active(now))
}

// finished reports whether the last window is over and all visitors have been admitted or skipped.
func (l *live) finished(now fairness.Time) bool {
	return now >= l.Schedule().Closes() && l.settled()
}

// settled reports whether all visitors who joined have been admitted or skipped, and all positions recorded.
func (l *live) settled() bool {
	c := l.Counts()
	return c.Assigned == c.Arrivals && c.Admitted+c.NoShows+c.Left+c.Revoked == c.Arrivals
}

// isQuiet reports whether nothing can become due before a visitor joins.
func (r *Room) isQuiet() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.live.Ended() || r.live.settled() && r.live.Schedule().Closes() == fairness.Never
}

package room

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Gate is the state of a room's safety net: whether visitors enter the site without waiting.
type Gate string

// The states of a gate.
const (
	GateNone Gate = ""     // the room never opened its gate
	GateOpen Gate = "open" // visitors enter without waiting, within the outflow
	GateShut Gate = "shut" // visitors wait in line
)

// A gate that was open before opens again after calmFor without anyone in line, and with at most calmParts of
// ofParts of the outflow in use.
const (
	calmFor   = fairness.Time(60_000) // milliseconds
	calmParts = 4
	ofParts   = 5
)

// freeFresh is the maximum age of the counts of unqueued sessions by which a gate may open, in milliseconds.
const freeFresh = fairness.Time(15_000)

// guests is what a node knows of a room's unqueued sessions. The zero value knows nothing. It is safe for
// concurrent use.
type guests struct {
	mu     sync.Mutex // guards all below
	isUsed bool       // there may be unqueued sessions
	turns  int        // number of times that counts were taken
	counts pgroom.Free
	at     fairness.Time // time of the counts; 0: never counted
	hot    fairness.Time // latest time at which more than calmParts of ofParts of the outflow was in use
	turned bool          // visitors were sent to the line while the gate was open, because the nodes' shares were used up
}

// active returns the number of live unqueued sessions.
func (g *guests) active() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts.Active
}

// use notes that there may be unqueued sessions, so that they are counted.
func (g *guests) use() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isUsed = true
}

// areCounted reports whether the unqueued sessions have been counted, or there cannot be any.
func (g *guests) areCounted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.isUsed || g.at > 0
}

// turn returns how often counts were taken, and whether unqueued sessions must be counted.
func (g *guests) turn() (turns int, isUsed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns, g.isUsed
}

// take stores counts if isNews approves of the number of times that counts were taken before.
func (g *guests) take(f pgroom.Free, at fairness.Time, isNews func(turns int) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !isNews(g.turns) {
		return
	}
	g.turns++
	g.counts, g.at = f, at
	if g.hot == 0 {
		g.hot = at // nothing is known of the time before
	}
}

// note records that the outflow is busy, and that visitors were sent to the line.
func (g *guests) note(at fairness.Time, isHot, turned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isHot {
		g.hot = at
	}
	g.turned = g.turned || turned
}

// look returns the latest counts and notes.
func (g *guests) look() (counts pgroom.Free, at, hot fairness.Time, turned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts, g.at, g.hot, g.turned
}

// passed is the part of the gate that the state does not keep: recent switches and fail-open intervals.
type passed struct {
	used     bool          // the gate was switched at least once
	since    fairness.Time // time of the latest switch
	isLined  bool          // visitors wait in line, not yet called
	lined    fairness.Time // when the line last became empty
	switches []GateSwitch  // the latest, oldest first
	failOpen []FailOpen    // the latest fail-open intervals, oldest first
}

// GateSwitch is one opening or shutting of the gate.
type GateSwitch struct {
	At    time.Time
	To    Gate   // open or shut
	Entry uint64 // index in the transcript
}

// keptSwitches is the number of switches that a projection keeps.
const keptSwitches = 100

// FailOpen is a fail-open interval, as the transcript records it.
type FailOpen struct {
	At          time.Time // when it was recorded
	From, Until time.Time
	Requests    uint64 // let in during the interval
}

// keptFailOpen is the number of fail-open intervals that a projection keeps: more than one hour can have.
const keptFailOpen = failOpenMost + 4

// note records an entry that was applied.
func (p *passed) note(e fairness.Entry, s *fairness.State) {
	if s.Counts().InLine > 0 {
		p.isLined = true
	} else if p.isLined {
		p.isLined, p.lined = false, s.Now()
	}
	a, ok := e.(*fairness.Amend)
	if !ok {
		return
	}
	switch a.Change {
	case fairness.ChangeOpen, fairness.ChangeShut:
		p.used, p.since = true, a.Time
		to := GateShut
		if a.Change == fairness.ChangeOpen {
			to = GateOpen
		}
		p.switches = keep(p.switches, keptSwitches, GateSwitch{timeOf(a.Time), to, s.Size() - 1})
	case fairness.ChangeUnguarded:
		p.failOpen = keep(p.failOpen, keptFailOpen,
			FailOpen{timeOf(a.Time), timeOf(a.From), timeOf(a.Until), a.Requests})
	}
}

// keep appends to a list of the latest items. It copies the list, because readers may hold the one before.
func keep[T any](list []T, most int, latest T) []T {
	kept := list[max(0, len(list)-(most-1)):]
	return append(kept[:len(kept):len(kept)], latest)
}

// gateOf returns the state of the gate.
func (l *live) gateOf() Gate {
	switch {
	case !l.passed.used:
		return GateNone
	case l.IsOpen() && !l.Ended():
		return GateOpen
	}
	return GateShut
}

// maxFree limits the unqueued sessions of a room, both live ones and those that begin in a minute, whatever
// its outflow: they are counted four times a second.
const maxFree = 1_000_000

// isOverfull reports whether a room has reached maxFree: anyone who holds a token could make sessions up.
func isOverfull(f pgroom.Free) bool { return max(f.Active, f.Started) >= maxFree }

// left returns how many more unqueued sessions may begin, given the counts f.
func (l *live) left(f pgroom.Free, now fairness.Time) uint64 {
	if isOverfull(f) {
		return 0
	}
	rate := uint64(l.Outflow().PerMinute)
	return min(rate-min(rate, f.Started), l.capacity(now))
}

// isHot reports whether more than calmParts of ofParts of the outflow is in use.
func (l *live) isHot(f pgroom.Free, now fairness.Time) bool {
	rate, most := uint64(l.Outflow().PerMinute), uint64(l.Outflow().MaxActive)
	return f.Started*ofParts > rate*calmParts || most > 0 && l.active(now)*ofParts > most*calmParts
}

// nextSwitch returns the switch of the gate that is due, if one is.
func (l *live) nextSwitch(now fairness.Time) (fairness.Change, bool) {
	if l.flow == nil || l.Ended() {
		return "", false
	}
	counts, at, hot, turned := l.flow.guests.look()
	if at == 0 {
		return "", false
	}
	left := l.left(counts, now)
	still := l.Paused() || l.flow.isPull() // the clock calls nobody, so visitors cannot pass without a call either
	if l.IsOpen() {
		return fairness.ChangeShut, left == 0 || turned || still
	}
	if still || now < l.Policy().Starts || left == 0 || counts.Nodes == 0 || now > at+freeFresh ||
		l.Counts().InLine > 0 {
		return "", false
	}
	if !l.passed.used {
		return fairness.ChangeOpen, true
	}
	return fairness.ChangeOpen, now >= max(l.passed.lined, l.passed.since, hot)+calmFor
}

// switches appends the gate switch that is due.
func (f *filler) switches() error {
	change, ok := f.live.nextSwitch(f.now)
	if !ok {
		return nil
	}
	err := f.emit(&fairness.Amend{Time: f.now, Change: change})
	if err == nil {
		f.live.flow.guests.switched()
	}
	return err
}

// switched forgets that visitors were sent to the line.
func (g *guests) switched() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turned = false
}

// openGate counts the unqueued sessions of a room that is being loaded: they must be known before the first
// call.
func (r *Room) openGate(ctx context.Context) error {
	return surveyFree(ctx, r.flow.store, map[uuid.UUID]*Room{r.ID: r})
}

// counting is the time and duration of a count.
type counting struct {
	at   time.Time
	took time.Duration
}

// countShare limits counting to one part in countShare of the time: the more sessions there are, the longer a
// count takes.
const countShare = 5

// surveyGuests counts the unqueued sessions of all rooms, unless the latest count was too recent for its duration.
func (rs *Rooms) surveyGuests(ctx context.Context, rooms map[uuid.UUID]*Room) error {
	began := time.Now()
	if began.Sub(rs.counted.at) < countShare*rs.counted.took {
		return nil
	}
	err := surveyFree(ctx, rs.Options.Rooms, rooms)
	rs.counted = counting{time.Now(), time.Since(began)}
	return err
}

// surveyFree counts the unqueued sessions of the rooms that may have some.
func surveyFree(ctx context.Context, store *pgroom.Store, rooms map[uuid.UUID]*Room) error {
	var ids []uuid.UUID
	var turns []int
	for id, r := range rooms {
		if n, isUsed := r.flow.guests.turn(); isUsed {
			ids, turns = append(ids, id), append(turns, n)
		}
	}
	counts, err := store.Free(ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		rooms[id].takeFree(counts[id], false, func(n int) bool { return n == turns[i] })
	}
	return nil
}

// takeFree stores counts of unqueued sessions, and triggers the gate switch if one is due. It returns how
// many more sessions may begin.
func (r *Room) takeFree(f pgroom.Free, turned bool, isNews func(int) bool) (left uint64) {
	r.mu.RLock()
	now := max(fromTime(r.clock.Now()), r.live.Now())
	r.flow.guests.take(f, now, isNews)
	left = r.live.left(f, now)
	r.flow.guests.note(now, r.live.isHot(f, now), turned && left < f.Nodes)
	_, due := r.live.nextSwitch(now)
	r.mu.RUnlock()
	if due {
		r.queue.duties()
	}
	return left
}

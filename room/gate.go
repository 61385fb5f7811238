package room

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Gate is whether the site of a room lets visitors in who are not in line.
type Gate string

// The states of a gate.
const (
	GateNone Gate = ""     // the room never had one
	GateOpen Gate = "open" // visitors pass without waiting, within the outflow
	GateShut Gate = "shut" // they wait in line
)

// A gate that was open before opens again when nobody has waited for that long,
// and that long at most four fifths of the outflow were used.
const (
	calmFor   = fairness.Time(60_000) // milliseconds
	calmParts = 4                     // of
	ofParts   = 5
)

// freeFresh is how old the counts of free sessions may be that open a gate, in
// milliseconds.
const freeFresh = fairness.Time(15_000)

// guests are what a node knows of a room's free sessions. The zero value knows
// nothing. Safe for concurrent use.
type guests struct {
	mu     sync.Mutex // guards all below
	isUsed bool       // there may be free sessions
	turns  int        // how often counts were taken
	counts pgroom.Free
	at     fairness.Time // of the counts; 0: there are none
	hot    fairness.Time // when more than the calm part of the outflow was used, at last
	turned bool          // visitors were led to the line while the gate was open, and not every node had a share left
}

// active returns how many free sessions go on.
func (g *guests) active() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts.Active
}

// use notes that there may be free sessions, so that they are counted.
func (g *guests) use() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isUsed = true
}

// areCounted tells whether it is known how many free sessions go on, if there may
// be some.
func (g *guests) areCounted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.isUsed || g.at > 0
}

// turn returns whether free sessions are to be counted, and how often they were.
func (g *guests) turn() (turns int, isUsed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns, g.isUsed
}

// take takes counts, those of a survey only if no others came meanwhile.
func (g *guests) take(f pgroom.Free, at fairness.Time, isNews func(turns int) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !isNews(g.turns) {
		return
	}
	g.turns++
	g.counts, g.at = f, at
	if g.hot == 0 {
		g.hot = at // of what was before nothing is known
	}
}

// note notes that the outflow is much used at a moment, and that visitors were
// turned away.
func (g *guests) note(at fairness.Time, isHot, turned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isHot {
		g.hot = at
	}
	g.turned = g.turned || turned
}

// look returns what is known.
func (g *guests) look() (counts pgroom.Free, at, hot fairness.Time, turned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts, g.at, g.hot, g.turned
}

// passed is what the projection keeps of the gate beside the state.
type passed struct {
	used      bool          // there was a switch
	since     fairness.Time // of the latest switch
	isLined   bool          // somebody is in line and not called
	lined     fairness.Time // when the last one was
	switches  []GateSwitch  // the latest, oldest first
	unguarded []Unguarded   // the latest, oldest first
}

// GateSwitch is a switch of the gate.
type GateSwitch struct {
	At    time.Time
	To    Gate   // open or shut
	Entry uint64 // of the transcript
}

// keptSwitches is how many switches a projection keeps.
const keptSwitches = 100

// Unguarded is a time in which a connector let everybody in, as the transcript
// has it.
type Unguarded struct {
	At          time.Time // when it was recorded
	From, Until time.Time
	Requests    uint64 // that were let in
}

// keptUnguarded is how many unguarded times a projection keeps: more than an
// hour can have.
const keptUnguarded = unguardedMost + 4

// note takes an entry that was applied.
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
		p.unguarded = keep(p.unguarded, keptUnguarded, Unguarded{timeOf(a.Time), timeOf(a.From), timeOf(a.Until), a.Requests})
	}
}

// keep adds to a list of the latest, anew, for readers may hold the one before.
func keep[T any](list []T, most int, latest T) []T {
	kept := list[max(0, len(list)-(most-1)):]
	return append(kept[:len(kept):len(kept)], latest)
}

// gateOf returns the gate as of the projection.
func (l *live) gateOf() Gate {
	switch {
	case !l.passed.used:
		return GateNone
	case l.IsOpen() && !l.Ended():
		return GateOpen
	}
	return GateShut
}

// maxFree is how many free sessions a room may have at once, and begin in a
// minute, whatever its outflow: they are counted four times a second.
const maxFree = 1_000_000

// isOverfull tells whether no more can be counted: whoever has a token can make
// them up.
func isOverfull(f pgroom.Free) bool { return max(f.Active, f.Started) >= maxFree }

// left returns how many free sessions may begin now by counts of them.
func (l *live) left(f pgroom.Free, now fairness.Time) uint64 {
	if isOverfull(f) {
		return 0
	}
	rate := uint64(l.Outflow().PerMinute)
	return min(rate-min(rate, f.Started), l.capacity(now))
}

// isHot tells whether more than the calm part of the outflow is used.
func (l *live) isHot(f pgroom.Free, now fairness.Time) bool {
	rate, most := uint64(l.Outflow().PerMinute), uint64(l.Outflow().MaxActive)
	return f.Started*ofParts > rate*calmParts || most > 0 && l.active(now)*ofParts > most*calmParts
}

// nextSwitch returns how the gate is to be switched now, if it is.
func (l *live) nextSwitch(now fairness.Time) (fairness.Change, bool) {
	if l.flow == nil || l.Ended() {
		return "", false
	}
	counts, at, hot, turned := l.flow.guests.look()
	if at == 0 {
		return "", false
	}
	left := l.left(counts, now)
	still := l.Paused() || l.flow.isPull() // nobody is called by the clock, so nobody passes by it
	if l.IsOpen() {
		return fairness.ChangeShut, left == 0 || turned || still
	}
	if still || now < l.Policy().Starts || left == 0 || counts.Nodes == 0 || now > at+freeFresh || l.Counts().InLine > 0 {
		return "", false
	}
	if !l.passed.used {
		return fairness.ChangeOpen, true
	}
	return fairness.ChangeOpen, now >= max(l.passed.lined, l.passed.since, hot)+calmFor
}

// switches appends the switch of the gate that is due.
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

// switched forgets that visitors were turned away.
func (g *guests) switched() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turned = false
}

// openGate counts the free sessions of a room that is being loaded, if it may
// have some: before anybody is called, it must be known who is there.
func (r *Room) openGate(ctx context.Context) error {
	return surveyFree(ctx, r.flow.store, map[uuid.UUID]*Room{r.ID: r})
}

// counting is when something was counted, and how long that took.
type counting struct {
	at   time.Time
	took time.Duration
}

// countShare is the part of its time that the database may spend on counting for
// one node: the more sessions there are, the longer it takes.
const countShare = 5

// surveyGuests counts the free sessions of all rooms, unless that was done just
// now.
func (rs *Rooms) surveyGuests(ctx context.Context, rooms map[uuid.UUID]*Room) error {
	began := time.Now()
	if began.Sub(rs.counted.at) < countShare*rs.counted.took {
		return nil
	}
	err := surveyFree(ctx, rs.Options.Rooms, rooms)
	rs.counted = counting{time.Now(), time.Since(began)}
	return err
}

// surveyFree counts the free sessions of rooms that may have some.
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

// takeFree takes counts of free sessions, and has the gate switched if that is
// due by them.
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

package room

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// Bounds of what vitals look at, so that they cost the same in any room.
const (
	watchedDraws = 10 // the latest, for how witnesses do
	shownAwaited = 16 // the draws that wait, the next ones
)

// Vitals is how a room does, for its organizer: what a [Snapshot] does not say
// to everybody. Taking it costs the same however many people are in line.
type Vitals struct {
	Now       time.Time // by the database's clock
	Snapshot  *Snapshot
	Active    uint64        // people called and expected, and sessions that go on
	Queued    int           // joins and other requests that wait for an append
	Appended  time.Duration // what the latest append of this node took; 0 before the first
	Stored    time.Duration // how long ago this node stored something, or found that nothing was due; negative before the first
	Stuck     time.Duration // for how long it has not stored what was due; 0: it does
	HasBeacon bool
	Pending   int       // draws that wait for a round of the beacon
	Awaited   []Awaited // these, the next one first, at most 16
	Witnesses []WitnessVitals
	Published Published
	Gate      GateVitals
}

// GateVitals is how the gate of a room does, whose state is in the snapshot, and
// when its site was unguarded.
type GateVitals struct {
	Since     time.Time    // of the state
	Started   uint64       // free sessions that began in the last minute
	Active    uint64       // free sessions that go on
	Nodes     uint64       // connectors that share what may begin
	Switches  []GateSwitch // the latest, oldest first, at most 100
	Unguarded []Unguarded  // the latest, oldest first, at most 64
}

// WitnessVitals is how one witness of the room does.
type WitnessVitals struct {
	Name     string
	Cosigned int // of the latest draws, those whose freeze it signed in time
	Draws    int // how many these are, at most 10
}

// Published is the published checkpoint; the zero value before the first tick
// that saw the room.
type Published struct {
	Size uint64
	At   time.Time // by the database's clock
}

// pulse is what a room notes for its vitals.
type pulse struct {
	took      atomic.Int64 // the latest append, in nanoseconds
	published atomic.Pointer[Published]
	freed     freed
	owed      owed
}

// see takes the head that a tick read, without memory for every tick.
func (p *pulse) see(h pglog.Head) {
	if was := p.published.Load(); was == nil || was.Size != h.Published || !was.At.Equal(h.PublishedAt) {
		p.published.Store(&Published{h.Published, h.PublishedAt})
	}
}

// Vitals returns how the room does, as of the durable transcript.
func (r *Room) Vitals() Vitals {
	v := Vitals{Now: r.Now(), Snapshot: r.Snapshot(), Queued: r.queue.length(), Appended: time.Duration(r.pulse.took.Load()), HasBeacon: r.policy.Beacon != nil}
	v.Stored = -1
	if _, ago, ever := r.pulse.owed.look(); ever {
		v.Stored = ago
	}
	v.Stuck = r.Stuck()
	if p := r.pulse.published.Load(); p != nil {
		v.Published = *p
	}
	r.mu.RLock()
	v.Active = r.live.active(max(fromTime(v.Now), r.live.Now()))
	cosigned := r.live.cosigned
	v.Gate = r.live.passed.vitals()
	r.mu.RUnlock()
	counts, _, _, _ := r.flow.guests.look()
	v.Gate.Started, v.Gate.Active, v.Gate.Nodes = counts.Started, counts.Active, counts.Nodes
	if v.HasBeacon {
		pending := r.durablePending()
		v.Pending = len(pending)
		v.Awaited = r.awaited(pending[:min(len(pending), shownAwaited)])
	}
	for _, key := range r.policy.Witnesses {
		v.Witnesses = append(v.Witnesses, vitalsOf(key, cosigned))
	}
	return v
}

// vitals returns what the projection knows.
func (p *passed) vitals() GateVitals {
	v := GateVitals{Switches: p.switches, Unguarded: p.unguarded}
	if p.used {
		v.Since = timeOf(p.since)
	}
	return v
}

// vitalsOf counts the draws that a witness, given by its verifier key, cosigned.
func vitalsOf(key string, cosigned [][]uint32) WitnessVitals {
	name, _, _ := strings.Cut(key, "+")
	v := WitnessVitals{Name: name, Draws: len(cosigned)}
	w, err := audit.ParseWitness(key)
	if err != nil {
		return v // the rules let none such into a policy
	}
	hash := w.KeyHash()
	for _, draw := range cosigned {
		if slices.Contains(draw, hash) {
			v.Cosigned++
		}
	}
	return v
}

// noteCosigned remembers who cosigned the freeze of a draw. The list is made
// anew, for readers may hold the one before.
func (l *live) noteCosigned(e *fairness.Draw) {
	if len(l.Policy().Witnesses) == 0 {
		return
	}
	hashes := make([]uint32, 0, len(e.Cosignatures))
	for i := range e.Cosignatures {
		hashes = append(hashes, binary.BigEndian.Uint32(e.Cosignatures[i][:]))
	}
	kept := l.cosigned[max(0, len(l.cosigned)-(watchedDraws-1)):]
	l.cosigned = append(slices.Clone(kept), hashes)
}

// length returns how many requests wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.work.joins) + len(q.work.acts)
}

// Health is how this node and its database do.
type Health struct {
	Ready    bool          // see [Rooms.Ready]
	Answers  bool          // the database does, as far as known for at most two seconds
	Answered time.Time     // when that was asked which it answered last, by this machine's clock
	Took     time.Duration // that answer
	Ahead    time.Duration // the time that rooms go by, of this machine's clock
	Step     time.Duration // by which the database's clock has jumped, which rooms do not follow; 0: it has not
	Rooms    int           // loaded
	Stuck    int           // of these, those that cannot store anything
	Held     int           // of these, those that lack entries that were shown
	Marked   bool          // marks are kept, and the latest one was written
	Longest  time.Duration // for how long the first of them has not
	Pool     pglog.PoolUse
}

// answer is when the database was asked, and how long it took to answer.
type answer struct {
	asked time.Time
	took  time.Duration
}

// Health returns how this node and its database do.
func (rs *Rooms) Health() Health {
	h := Health{
		Ready: rs.Ready(), Answers: rs.Answers(), Ahead: time.Duration(rs.clock.ahead.Load()),
		Step: rs.clock.pending().by, Rooms: len(rs.Loaded()), Pool: rs.Logs.PoolUse(),
	}
	if a := rs.answered.Load(); a != nil {
		h.Answered, h.Took = a.asked, a.took
	}
	h.Marked = rs.Marks.IsKept() && rs.Marks.Err() == nil
	for _, r := range rs.Loaded() {
		if r.regression.Load() != nil {
			h.Held++
		}
	}
	for _, r := range rs.StuckRooms() {
		h.Stuck, h.Longest = h.Stuck+1, max(h.Longest, r.Stuck())
	}
	return h
}

// Loaded returns the rooms that are in memory, in no order. To look at them so
// does not keep them there.
func (rs *Rooms) Loaded() []*Room {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return slices.Collect(maps.Values(rs.loaded))
}

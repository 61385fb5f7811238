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

// Limits that keep the cost of Vitals the same in every room.
const (
	watchedDraws = 10 // latest draws whose cosignatures are counted
	shownAwaited = 16 // pending draws that are listed
)

// Vitals are a room's figures for its organizer, in addition to the public [Snapshot]. Reading them costs the
// same however many visitors are in line.
type Vitals struct {
	Now       time.Time // by the database's clock
	Snapshot  *Snapshot
	Active    uint64        // called visitors whose claim is open, plus live sessions
	Queued    int           // joins and other requests waiting for an append
	Appended  time.Duration // duration of this node's latest append; 0 before the first
	Stored    time.Duration // time since this node last stored something, or found nothing due; negative before the first
	Stuck     time.Duration // how long it has failed to store what was due; 0: it does not fail
	HasBeacon bool
	Pending   int       // draws waiting for a beacon round
	Awaited   []Awaited // the next of them, at most 16
	Witnesses []WitnessVitals
	Published Published
	Gate      GateVitals
}

// GateVitals are the figures of a room's gate, and the latest fail-open intervals.
type GateVitals struct {
	Since    time.Time    // time of the latest switch
	Started  uint64       // unqueued sessions that began in the last minute
	Active   uint64       // live unqueued sessions
	Nodes    uint64       // connectors that share what may begin
	Switches []GateSwitch // the latest, oldest first, at most 100
	FailOpen []FailOpen   // the latest, oldest first, at most 64
}

// WitnessVitals are the figures of one witness of the room.
type WitnessVitals struct {
	Name     string
	Cosigned int // of Draws, those whose freeze it cosigned in time
	Draws    int // the latest draws, at most 10
}

// Published is the published checkpoint; zero before the first tick that saw the room.
type Published struct {
	Size uint64
	At   time.Time // by the database's clock
}

// pulse collects the values that Vitals needs besides the state.
type pulse struct {
	took      atomic.Int64 // duration of the latest append, in nanoseconds
	published atomic.Pointer[Published]
	freed     freed
	owed      owed
}

// see stores the head that a tick read. It allocates only when the head has changed.
func (p *pulse) see(h pglog.Head) {
	if was := p.published.Load(); was == nil || was.Size != h.Published || !was.At.Equal(h.PublishedAt) {
		p.published.Store(&Published{h.Published, h.PublishedAt})
	}
}

// Vitals returns the room's figures as of the durable transcript.
func (r *Room) Vitals() Vitals {
	v := Vitals{Now: r.Now(), Snapshot: r.Snapshot(), Queued: r.queue.length(),
		Appended: time.Duration(r.pulse.took.Load()), HasBeacon: r.policy.Beacon != nil}
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

// vitals returns the part of the figures that the projection has.
func (p *passed) vitals() GateVitals {
	v := GateVitals{Switches: p.switches, FailOpen: p.failOpen}
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
		return v // cannot happen: the rules refuse such a policy
	}
	hash := w.KeyHash()
	for _, draw := range cosigned {
		if slices.Contains(draw, hash) {
			v.Cosigned++
		}
	}
	return v
}

// noteCosigned records the witnesses that cosigned the freeze of a draw. It copies the list, because readers
// may hold the one before.
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

// length returns the number of waiting requests.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.work.joins) + len(q.work.acts)
}

// Health is the condition of this node and its database.
type Health struct {
	Ready    bool          // see [Rooms.Ready]
	Answers  bool          // the database answers, as of at most two seconds ago
	Answered time.Time     // when the latest answered query was sent, by this machine's clock
	Took     time.Duration // how long that answer took
	Ahead    time.Duration // how far the rooms' time is ahead of this machine's clock
	Step     time.Duration // jump of the database's clock that rooms do not follow; 0: none
	Rooms    int           // loaded rooms
	Stuck    int           // of Rooms, those that cannot store anything
	Held     int           // of Rooms, those that lack published entries
	Marked   bool          // marks are kept on disk, and the latest write succeeded
	Longest  time.Duration // how long the longest stuck room has been stuck
	Pool     pglog.PoolUse
}

// answer is when the database was queried, and how long the answer took.
type answer struct {
	asked time.Time
	took  time.Duration
}

// Health returns the condition of this node and its database.
func (rs *Rooms) Health() Health {
	h := Health{
		Ready: rs.Ready(), Answers: rs.Answers(), Ahead: rs.clock.Ahead(),
		Step: rs.clock.Step(), Rooms: len(rs.Loaded()), Pool: rs.Logs.PoolUse(),
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

// Loaded returns the rooms in memory, in no order. Listing does not keep them there.
func (rs *Rooms) Loaded() []*Room {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return slices.Collect(maps.Values(rs.loaded))
}

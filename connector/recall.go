package connector

import (
	"fmt"
	"sync"
	"time"
)

const (
	gateLongest = time.Hour   // after the server was heard last a gate is not known any more to a node that starts
	gateExact   = time.Minute // how exactly it is kept when that was, so that little is written
	maxGates    = 1_000
)

// recordedGate is a gate that was open, in the file.
type recordedGate struct {
	Room      string `json:"room"`
	At        int64  `json:"at"` // ms since 1970
	PerMinute int    `json:"per_minute"`
	MaxActive int    `json:"max_active"`
	Nodes     int    `json:"nodes"`
	SessionMS int64  `json:"session_ms"`
}

// keptGate is a gate that was open when the server was last heard. Those that
// were not need not be kept: who knows nothing takes them for shut.
type keptGate struct {
	room string // its URL
	at   time.Time
	notice
}

func recordGate(g keptGate) recordedGate {
	return recordedGate{g.room, g.at.UnixMilli(), g.perMinute, g.maxActive, g.nodes, g.length}
}

// gates reads the gates of the file, but for what is too old, or of tomorrow.
// Error: errRecord.
func (all *recordFile) gates(now time.Time) (list []keptGate, err error) {
	for _, g := range all.Gates {
		said := roomReply{Gate: GateOpen, PerMinute: g.PerMinute, MaxActive: g.MaxActive, Nodes: g.Nodes, SessionMS: g.SessionMS}
		n, ok := said.notice()
		if !ok || !isSafe(g.Room) || g.At < 1 || g.At > maxExact {
			return nil, fmt.Errorf("%w: gate of %.100q", errRecord, g.Room)
		}
		if k := (keptGate{g.Room, time.UnixMilli(g.At), n}); k.isFresh(now) {
			list = append(list, k)
		}
	}
	return list, nil
}

func (k keptGate) isFresh(now time.Time) bool {
	age := now.Sub(k.at)
	return age >= 0 && age < gateLongest
}

// recalledGates are the gates of before the start, until the rules name their
// rooms.
type recalledGates struct {
	mu     sync.Mutex
	byRoom map[string]keptGate
}

func (r *recalledGates) have(list []keptGate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRoom = map[string]keptGate{}
	for _, k := range list {
		r.byRoom[k.room] = k
	}
}

// take returns the gate of a room, once. False: there is none.
func (r *recalledGates) take(room string, now time.Time) (keptGate, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.byRoom[room]
	delete(r.byRoom, room)
	return k, ok && k.isFresh(now)
}

// left returns the gates whose rooms the rules did not name.
func (r *recalledGates) left() (list []keptGate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.byRoom {
		list = append(list, k)
	}
	return list
}

// newLink returns what is known of a room, which is nothing unless there was a
// gate before the start.
func (c *Connector) newLink(url, origin string) *link {
	l, now := &link{url: url, origin: origin}, c.options.Now()
	if k, ok := c.record.gates.take(url, now); ok {
		l.gate.recall(k, now)
	}
	return l
}

// recall goes on by what the server said before the start, as by an answer that
// is late: the node counts for itself.
func (g *gate) recall(k keptGate, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told, g.at = k.notice, k.at
	if late := now.Add(-answerLate - time.Millisecond); g.at.After(late) {
		g.at = late
	}
}

// openGates returns the gates that are open, as far as a start could use them.
func (c *Connector) openGates() (list []keptGate) {
	now := c.options.Now()
	for _, l := range c.current.Load().links {
		if k, ok := l.gate.kept(l.url); ok && k.isFresh(now) {
			list = append(list, k)
		}
	}
	if c.HasRules() {
		return list
	}
	return append(list, c.record.gates.left()...)
}

// kept returns what a start needs of a gate. False: it is not open.
func (g *gate) kept(room string) (keptGate, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return keptGate{room, g.at.Truncate(gateExact), g.told}, !g.at.IsZero() && g.told.isOpen
}

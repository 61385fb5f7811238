package connector

import (
	"fmt"
	"sync"
	"time"
)

const (
	maxGateAge        = time.Hour   // after the server was heard last a gate is not known any more to a node that starts
	gateTimePrecision = time.Minute // how exactly it is kept when that was, so that little is written
	maxGates          = 1_000
)

// recordedGate is a gate that was open, in the file.
type gateRecord struct {
	Room      string `json:"room"`
	At        int64  `json:"at"` // ms since 1970
	PerMinute int    `json:"per_minute"`
	MaxActive int    `json:"max_active"`
	Nodes     int    `json:"nodes"`
	SessionMS int64  `json:"session_ms"`
}

// keptGate is a gate that was open when the server was last heard. Those that
// were not need not be kept: who knows nothing takes them for shut.
type savedGate struct {
	room string // its URL
	at   time.Time
	gateReply
}

func newGateRecord(g savedGate) gateRecord {
	return gateRecord{g.room, g.at.UnixMilli(), g.perMinute, g.maxActive, g.nodes, g.length}
}

// gates reads the gates of the file, but for what is too old, or of tomorrow.
// Error: errRecord.
func (all *stateFile) gates(now time.Time) (list []savedGate, err error) {
	for _, g := range all.Gates {
		said := roomReply{Gate: GateOpen, PerMinute: g.PerMinute, MaxActive: g.MaxActive, Nodes: g.Nodes, SessionMS: g.SessionMS}
		n, ok := said.gateReply()
		if !ok || !isSafe(g.Room) || g.At < 1 || g.At > maxExact {
			return nil, fmt.Errorf("%w: gate of %.100q", errStateFile, g.Room)
		}
		if k := (savedGate{g.Room, time.UnixMilli(g.At), n}); k.isFresh(now) {
			list = append(list, k)
		}
	}
	return list, nil
}

func (k savedGate) isFresh(now time.Time) bool {
	age := now.Sub(k.at)
	return age >= 0 && age < maxGateAge
}

// recalledGates are the gates of before the start, until the rules name their
// rooms.
type savedGates struct {
	mu     sync.Mutex
	byRoom map[string]savedGate
}

func (r *savedGates) set(list []savedGate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRoom = map[string]savedGate{}
	for _, k := range list {
		r.byRoom[k.room] = k
	}
}

// take returns the gate of a room, once. False: there is none.
func (r *savedGates) take(room string, now time.Time) (savedGate, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.byRoom[room]
	delete(r.byRoom, room)
	return k, ok && k.isFresh(now)
}

// left returns the gates whose rooms the rules did not name.
func (r *savedGates) remaining() (list []savedGate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.byRoom {
		list = append(list, k)
	}
	return list
}

// newLink returns what is known of a room, which is nothing unless there was a
// gate before the start.
func (c *Connector) newRoomState(url, origin string) *roomState {
	st, now := &roomState{url: url, origin: origin}, c.options.Now()
	if k, ok := c.saved.gates.take(url, now); ok {
		st.gate.restore(k, now)
	}
	return st
}

// recall goes on by what the server said before the start, as by an answer that
// is late: the node counts for itself.
func (g *gate) restore(k savedGate, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reply, g.replyAt = k.gateReply, k.at
	if late := now.Add(-replyTTL - time.Millisecond); g.replyAt.After(late) {
		g.replyAt = late
	}
}

// openGates returns the gates that are open, as far as a start could use them.
func (c *Connector) gatesToSave() (list []savedGate) {
	now := c.options.Now()
	for _, st := range c.current.Load().states {
		if k, ok := st.gate.saved(st.url); ok && k.isFresh(now) {
			list = append(list, k)
		}
	}
	if c.HasRules() {
		return list
	}
	return append(list, c.saved.gates.remaining()...)
}

// kept returns what a start needs of a gate. False: it is not open.
func (g *gate) saved(room string) (savedGate, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return savedGate{room, g.replyAt.Truncate(gateTimePrecision), g.reply}, !g.replyAt.IsZero() && g.reply.isOpen
}

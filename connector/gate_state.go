package connector

import (
	"fmt"
	"sync"
	"time"
)

const (
	maxGateAge        = time.Hour   // of the last reply; older saved gates are ignored
	gateTimePrecision = time.Minute // of saved reply times, so that the file rarely changes
	maxGates          = 1_000
)

// gateRecord is an open gate in the state file.
type gateRecord struct {
	Room      string `json:"room"`
	At        int64  `json:"at"` // ms since 1970
	PerMinute int    `json:"per_minute"`
	MaxActive int    `json:"max_active"`
	Nodes     int    `json:"nodes"`
	SessionMS int64  `json:"session_ms"`
}

// savedGate is a gate that was open in the last reply. Shut gates are not saved,
// because a gate without a reply counts as shut.
type savedGate struct {
	room string // URL
	at   time.Time
	gateReply
}

func newGateRecord(g savedGate) gateRecord {
	return gateRecord{g.room, g.at.UnixMilli(), g.perMinute, g.maxActive, g.nodes, g.length}
}

// gates parses the gates in the file, without those too old or in the future.
// Error: errStateFile.
func (all *stateFile) gates(now time.Time) (list []savedGate, err error) {
	for _, g := range all.Gates {
		said := roomReply{
			Gate: GateOpen, PerMinute: g.PerMinute, MaxActive: g.MaxActive, Nodes: g.Nodes, SessionMS: g.SessionMS,
		}
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

// savedGates are the gates of the state file that no room has taken over yet.
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

// take removes and returns the gate of a room. False: none that is still fresh.
func (r *savedGates) take(room string, now time.Time) (savedGate, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.byRoom[room]
	delete(r.byRoom, room)
	return k, ok && k.isFresh(now)
}

// remaining returns the gates that no room has taken over.
func (r *savedGates) remaining() (list []savedGate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.byRoom {
		list = append(list, k)
	}
	return list
}

// newRoomState returns the state of a room, with its saved gate if there is one.
func (c *Connector) newRoomState(url, origin string) *roomState {
	st, now := &roomState{url: url, origin: origin}, c.options.Now()
	if k, ok := c.saved.gates.take(url, now); ok {
		st.gate.restore(k, now)
	}
	return st
}

// restore sets the saved reply. It counts as an old reply, so that the node admits
// its part of the limits only.
func (g *gate) restore(k savedGate, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reply, g.replyAt = k.gateReply, k.at
	if late := now.Add(-replyTTL - time.Millisecond); g.replyAt.After(late) {
		g.replyAt = late
	}
}

// gatesToSave returns the open gates that are fresh enough to be restored.
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

// saved returns the gate as it is saved. False: it is not open.
func (g *gate) saved(room string) (savedGate, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return savedGate{room, g.replyAt.Truncate(gateTimePrecision), g.reply}, !g.replyAt.IsZero() && g.reply.isOpen
}

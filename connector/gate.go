package connector

import (
	"net/netip"
	"sync"
	"time"
)

// States of a gate in [RoomStats].
const (
	GateOpen = "open"
	GateShut = "shut"
)

// gate is what a node knows of a gate: whether it is open, how many unqueued
// sessions may begin here, and which did.
type gate struct {
	mu           sync.Mutex
	reply        gateReply     // in the latest reply to a report
	replyAt      time.Time     // time of that reply; zero: none
	share        int           // unqueued sessions that may begin until the next reply
	startedSince int           // sessions that began since the current report was made
	recent       recentCounts  // sessions that began in the last minute
	byNetwork    networkStarts // sessions that began in the last minute, by network
	unqueued     map[[16]byte]int64
	sweptAt      time.Time // last removal of expired sessions from unqueued
	started      uint64    // since the connector's start
	turned       uint64
	crowded      uint64

	news gateNews
}

// gateReply is the server's view of a gate.
type gateReply struct {
	isOpen    bool
	perMinute int
	maxActive int // 0: no limit
	nodes     int
	length    int64 // of sessions, in ms
}

// gateNews is what the server has not been sent yet. The reporter removes ids from
// the front.
type gateNews struct {
	started, active, ended [][16]byte
	turned                 uint64
}

// update stores the server's reply, and reports whether the gate was switched.
func (g *gate) update(n gateReply, share int, now time.Time) (isSwitched bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isSwitched = g.reply.isOpen != n.isOpen
	g.reply, g.replyAt = n, now
	g.share = share - g.startedSince
	g.sweep(now, sweepInterval)
	return isSwitched
}

// refusal is the reason why no unqueued session begins.
type refusal int

const (
	notRefused       refusal = iota
	gateShut                 // or no fresh reply, and over this node's part of the limits
	overShare                // gate open, but this node's share is used up
	overNetworkLimit         // gate open, but the client's network is over its limit
)

// refusal returns why no unqueued session may begin now.
func (g *gate) refusal(network [8]byte, now time.Time) refusal {
	switch {
	case g.replyAt.IsZero() || !g.reply.isOpen:
		return gateShut
	case g.byNetwork.count(network, now) >= networkLimit(g.reply.perMinute, g.reply.nodes):
		return overNetworkLimit
	case now.Sub(g.replyAt) > replyTTL && !g.isWithinPart(now):
		return gateShut
	case now.Sub(g.replyAt) <= replyTTL && g.share <= 0:
		return overShare
	}
	return notRefused
}

// begin begins an unqueued session, or returns why none may begin. A refusal is
// not counted on a dry run.
func (g *gate) begin(rm *room, client netip.Addr, agent string, now time.Time, isDry bool) (s *session, why refusal) {
	var network [8]byte
	if client.IsValid() {
		network = networkOf(client)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if why = g.refusal(network, now); why != notRefused {
		if !isDry {
			g.countRefusal(why)
		}
		return nil, why
	}
	s = &session{room: rm.tag, issued: now.UnixMilli(), length: g.reply.length, bind: rm.bindOf(client, agent)}
	s.pass = newRaw()
	s.maxEnds = s.issued + maxLengths*s.length
	s.ends = s.issued + s.length
	g.share--
	g.startedSince++
	g.started++
	g.recent.add(now.Unix())
	g.byNetwork.add(network, now)
	g.remember(s, now)
	g.news.started = appendBounded(g.news.started, s.pass)
	return s, notRefused
}

// countRefusal counts a visitor sent to the room although the gate is open. Those
// over their network's limit are not reported: one network must not shut the gate.
func (g *gate) countRefusal(why refusal) {
	switch why {
	case overShare:
		g.turned++
		g.news.turned++
	case overNetworkLimit:
		g.crowded++
	}
}

// isWithinPart reports whether one more session fits into this node's part of the
// limits, which applies while there is no fresh reply.
func (g *gate) isWithinPart(now time.Time) bool {
	if g.recent.count(now.Unix())+1 > nodePart(g.reply.perMinute, g.reply.nodes) {
		return false
	}
	if g.reply.maxActive == 0 {
		return true
	}
	most := min(nodePart(g.reply.maxActive, g.reply.nodes), maxUnqueued)
	if len(g.unqueued) >= most {
		g.sweep(now, time.Second)
	}
	return len(g.unqueued) < most
}

// nodePart returns a node's part of a limit, rounded up.
func nodePart(all, nodes int) int { return (all + max(nodes, 1) - 1) / max(nodes, 1) }

// noteActive records that the visitor of an unqueued session is active.
func (g *gate) noteActive(s *session, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remember(s, now)
	g.news.active = appendBounded(g.news.active, s.pass)
}

// end records that an unqueued session was ended.
func (g *gate) end(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unqueued, s.pass)
	g.news.ended = appendBounded(g.news.ended, s.pass)
}

// forget removes unqueued sessions that ended elsewhere.
func (g *gate) forget(over [][16]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, pass := range over {
		delete(g.unqueued, pass)
	}
}

// remember stores when an unqueued session ends. Above maxUnqueued, others are
// dropped here; the server still counts them.
func (g *gate) remember(s *session, now time.Time) {
	if g.unqueued == nil {
		g.unqueued = map[[16]byte]int64{}
	}
	if len(g.unqueued) >= maxUnqueued {
		g.sweep(now, sweepInterval)
	}
	for pass := range g.unqueued {
		if len(g.unqueued) < maxUnqueued {
			break
		}
		delete(g.unqueued, pass)
	}
	g.unqueued[s.pass] = min(now.UnixMilli()+s.length, s.maxEnds)
}

// sweep removes expired sessions, if the last sweep was at least every ago.
func (g *gate) sweep(now time.Time, every time.Duration) {
	if now.Sub(g.sweptAt) < every {
		return
	}
	g.sweptAt = now
	for pass, ends := range g.unqueued {
		if ends <= now.UnixMilli() {
			delete(g.unqueued, pass)
		}
	}
}

// stats fills in the gate's part of the stats.
func (g *gate) stats(s *RoomStats) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Unqueued, s.Started, s.Turned, s.Crowded, s.HeardAt = len(g.unqueued), g.started, g.turned, g.crowded, g.replyAt
	switch {
	case g.replyAt.IsZero():
	case g.reply.isOpen:
		s.Gate = GateOpen
	default:
		s.Gate = GateShut
	}
}

// take returns up to most of the oldest news of each kind, and starts a new report.
func (g *gate) take(most int) gateNews {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.startedSince = 0
	n := g.news
	n.started = n.started[:min(len(n.started), most)]
	n.active = n.active[:min(len(n.active), most)]
	n.ended = n.ended[:min(len(n.ended), most)]
	return n
}

// drop removes news that the server has received, and reports whether another full
// report is waiting.
func (g *gate) drop(sent gateNews) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &g.news
	n.started = append([][16]byte(nil), n.started[len(sent.started):]...)
	n.active = append([][16]byte(nil), n.active[len(sent.active):]...)
	n.ended = append([][16]byte(nil), n.ended[len(sent.ended):]...)
	n.turned -= sent.turned
	return max(len(n.started), len(n.active), len(n.ended)) >= maxReportIDs
}

func (n *gateNews) size() int { return len(n.started) + len(n.active) + len(n.ended) }

// hasNews reports whether there is something left to report.
func (g *gate) hasNews() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.news.size() > 0
}

// appendBounded appends an id to a list that is not full. For a dropped id, the
// server counts too few sessions until it would have ended.
func appendBounded(list [][16]byte, id [16]byte) [][16]byte {
	if len(list) >= maxUnqueued {
		return list
	}
	return append(list, id)
}

// recentCounts counts events of the last 60 seconds, or minutes, one slot for each.
type recentCounts struct {
	at [60]int64 // second or minute that the slot counts, since 1970
	n  [60]int
}

func (r *recentCounts) add(now int64) {
	i := now % 60
	if r.at[i] != now {
		r.at[i], r.n[i] = now, 0
	}
	r.n[i]++
}

func (r *recentCounts) count(now int64) (all int) {
	for i, at := range r.at {
		if age := now - at; age >= 0 && age < 60 {
			all += r.n[i]
		}
	}
	return all
}

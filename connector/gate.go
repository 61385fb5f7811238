package connector

import (
	"net/netip"
	"sync"
	"time"
)

// Gates of rooms in mode safety-net, as [RoomStats] has them.
const (
	GateOpen = "open"
	GateShut = "shut"
)

// gate is what a node knows of a room in mode safety-net: whether visitors get
// in without waiting, how many of them may here, and who did.
type gate struct {
	mu           sync.Mutex
	reply        gateReply     // the latest answer to a report
	replyAt      time.Time     // of it; zero: there was none
	share        int           // free sessions that may begin until the next answer
	startedSince int           // since the report under way was made
	recent       recentCounts  // beginnings of the last minute
	byNetwork    networkStarts // the same, by network
	unqueued     map[[16]byte]int64
	sweptAt      time.Time // when live was rid of what is over
	started      uint64    // since the connector began
	turned       uint64
	crowded      uint64

	news gateNews
}

// notice is what the server says about a room.
type gateReply struct {
	isOpen    bool
	perMinute int
	maxActive int // 0: no limit
	nodes     int
	length    int64 // of sessions, in ms
}

// news is what the server has not been told. Only the reporter takes from it,
// and from its beginning.
type gateNews struct {
	started, active, ended [][16]byte
	turned                 uint64
}

// hear takes the server's answer, and tells whether the gate is switched.
func (g *gate) update(n gateReply, share int, now time.Time) (isSwitched bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isSwitched = g.reply.isOpen != n.isOpen
	g.reply, g.replyAt = n, now
	g.share = share - g.startedSince
	g.sweep(now, sweepInterval)
	return isSwitched
}

// refusal is why no free session begins.
type refusal int

const (
	notRefused       refusal = iota
	gateShut                 // or so long unheard of that the visitor waits
	overShare                // the gate is open, but there are too many here
	overNetworkLimit         // the gate is open, but there are too many of the visitor's network
)

// refuses tells why no free session may begin now.
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

// begin begins a free session, if one may; else it says why not, and counts that
// unless the visitor asks again.
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

// turn counts who is led to the line although the gate is open. Those of one
// network do not count for the room: they could shut the gate for all.
func (g *gate) countRefusal(why refusal) {
	switch why {
	case overShare:
		g.turned++
		g.news.turned++
	case overNetworkLimit:
		g.crowded++
	}
}

// isWithin tells whether one more is within this node's part of the limits,
// which it goes by while reports are not answered.
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

// part is a node's part of all, rounded up.
func nodePart(all, nodes int) int { return (all + max(nodes, 1) - 1) / max(nodes, 1) }

// stay notes that the visitor of a free session is active.
func (g *gate) noteActive(s *session, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remember(s, now)
	g.news.active = appendBounded(g.news.active, s.pass)
}

// end notes that a free session is over before its time.
func (g *gate) end(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unqueued, s.pass)
	g.news.ended = appendBounded(g.news.ended, s.pass)
}

// forget notes that free sessions ended elsewhere.
func (g *gate) forget(over [][16]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, pass := range over {
		delete(g.unqueued, pass)
	}
}

// know keeps until when a free session goes on. When there are too many,
// others are forgotten: they count at the server all the same.
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

// sweep forgets the sessions that are over, at most so often.
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

// stats says what is known of the gate; false: nothing.
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

// take returns the first of the news, at most so many of each kind.
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

// drop forgets news that the server has been told, and tells whether there is
// more to tell than fits into one report.
func (g *gate) drop(told gateNews) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &g.news
	n.started = append([][16]byte(nil), n.started[len(told.started):]...)
	n.active = append([][16]byte(nil), n.active[len(told.active):]...)
	n.ended = append([][16]byte(nil), n.ended[len(told.ended):]...)
	n.turned -= told.turned
	return max(len(n.started), len(n.active), len(n.ended)) >= maxReportIDs
}

func (n *gateNews) size() int { return len(n.started) + len(n.active) + len(n.ended) }

// hasNews tells whether there is something that the server has not been told.
func (g *gate) hasNews() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.news.size() > 0
}

// kept appends an id, unless there are too many already: what is lost then
// counts less than it should at the server, until its time is over.
func appendBounded(list [][16]byte, id [16]byte) [][16]byte {
	if len(list) >= maxUnqueued {
		return list
	}
	return append(list, id)
}

// recent counts what happened in the last 60 seconds, or minutes, by each.
type recentCounts struct {
	at [60]int64 // of each slot, since 1970
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

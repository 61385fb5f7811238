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
	mu      sync.Mutex
	told    notice    // the latest answer to a report
	at      time.Time // of it; zero: there was none
	share   int       // free sessions that may begin until the next answer
	begun   int       // since the report under way was made
	recent  recent    // beginnings of the last minute
	crowd   crowd     // the same, by network
	live    map[[16]byte]int64
	swept   time.Time // when live was rid of what is over
	started uint64    // since the connector began
	turned  uint64
	crowded uint64

	news news
}

// notice is what the server says about a room.
type notice struct {
	isOpen    bool
	perMinute int
	maxActive int // 0: no limit
	nodes     int
	length    int64 // of sessions, in ms
}

// news is what the server has not been told. Only the reporter takes from it,
// and from its beginning.
type news struct {
	started, active, ended [][16]byte
	turned                 uint64
}

// hear takes the server's answer, and tells whether the gate is switched.
func (g *gate) hear(n notice, share int, now time.Time) (isSwitched bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isSwitched = g.told.isOpen != n.isOpen
	g.told, g.at = n, now
	g.share = share - g.begun
	g.sweep(now, liveAgain)
	return isSwitched
}

// refusal is why no free session begins.
type refusal int

const (
	notRefused refusal = iota
	isShut             // or so long unheard of that the visitor waits
	isTurned           // the gate is open, but there are too many here
	isCrowded          // the gate is open, but there are too many of the visitor's network
)

// refuses tells why no free session may begin now.
func (g *gate) refuses(network [8]byte, now time.Time) refusal {
	switch {
	case g.at.IsZero() || !g.told.isOpen:
		return isShut
	case g.crowd.count(network, now) >= crowdOf(g.told.perMinute, g.told.nodes):
		return isCrowded
	case now.Sub(g.at) > answerLate && !g.isWithin(now):
		return isShut
	case now.Sub(g.at) <= answerLate && g.share <= 0:
		return isTurned
	}
	return notRefused
}

// begin begins a free session, if one may; else it says why not, and counts that
// unless the visitor asks again.
func (g *gate) begin(d *door, client netip.Addr, agent string, now time.Time, isDry bool) (s *session, why refusal) {
	var network [8]byte
	if client.IsValid() {
		network = networkOf(client)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if why = g.refuses(network, now); why != notRefused {
		if !isDry {
			g.turn(why)
		}
		return nil, why
	}
	s = &session{room: d.tag, issued: now.UnixMilli(), length: g.told.length, bind: d.bindOf(client, agent)}
	s.pass = newRaw()
	s.most = s.issued + maxSlides*s.length
	s.ends = s.issued + s.length
	g.share--
	g.begun++
	g.started++
	g.recent.add(now.Unix())
	g.crowd.add(network, now)
	g.know(s, now)
	g.news.started = kept(g.news.started, s.pass)
	return s, notRefused
}

// turn counts who is led to the line although the gate is open. Those of one
// network do not count for the room: they could shut the gate for all.
func (g *gate) turn(why refusal) {
	switch why {
	case isTurned:
		g.turned++
		g.news.turned++
	case isCrowded:
		g.crowded++
	}
}

// isWithin tells whether one more is within this node's part of the limits,
// which it goes by while reports are not answered.
func (g *gate) isWithin(now time.Time) bool {
	if g.recent.count(now.Unix())+1 > part(g.told.perMinute, g.told.nodes) {
		return false
	}
	if g.told.maxActive == 0 {
		return true
	}
	most := min(part(g.told.maxActive, g.told.nodes), maxLive)
	if len(g.live) >= most {
		g.sweep(now, time.Second)
	}
	return len(g.live) < most
}

// part is a node's part of all, rounded up.
func part(all, nodes int) int { return (all + max(nodes, 1) - 1) / max(nodes, 1) }

// stay notes that the visitor of a free session is active.
func (g *gate) stay(s *session, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.know(s, now)
	g.news.active = kept(g.news.active, s.pass)
}

// end notes that a free session is over before its time.
func (g *gate) end(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, s.pass)
	g.news.ended = kept(g.news.ended, s.pass)
}

// forget notes that free sessions ended elsewhere.
func (g *gate) forget(over [][16]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, pass := range over {
		delete(g.live, pass)
	}
}

// know keeps until when a free session goes on. When there are too many,
// others are forgotten: they count at the server all the same.
func (g *gate) know(s *session, now time.Time) {
	if g.live == nil {
		g.live = map[[16]byte]int64{}
	}
	if len(g.live) >= maxLive {
		g.sweep(now, liveAgain)
	}
	for pass := range g.live {
		if len(g.live) < maxLive {
			break
		}
		delete(g.live, pass)
	}
	g.live[s.pass] = min(now.UnixMilli()+s.length, s.most)
}

// sweep forgets the sessions that are over, at most so often.
func (g *gate) sweep(now time.Time, every time.Duration) {
	if now.Sub(g.swept) < every {
		return
	}
	g.swept = now
	for pass, ends := range g.live {
		if ends <= now.UnixMilli() {
			delete(g.live, pass)
		}
	}
}

// stats says what is known of the gate; false: nothing.
func (g *gate) stats(s *RoomStats) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Free, s.Started, s.Turned, s.Crowded, s.Heard = len(g.live), g.started, g.turned, g.crowded, g.at
	switch {
	case g.at.IsZero():
	case g.told.isOpen:
		s.Gate = GateOpen
	default:
		s.Gate = GateShut
	}
}

// take returns the first of the news, at most so many of each kind.
func (g *gate) take(most int) news {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun = 0
	n := g.news
	n.started = n.started[:min(len(n.started), most)]
	n.active = n.active[:min(len(n.active), most)]
	n.ended = n.ended[:min(len(n.ended), most)]
	return n
}

// drop forgets news that the server has been told, and tells whether there is
// more to tell than fits into one report.
func (g *gate) drop(told news) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &g.news
	n.started = append([][16]byte(nil), n.started[len(told.started):]...)
	n.active = append([][16]byte(nil), n.active[len(told.active):]...)
	n.ended = append([][16]byte(nil), n.ended[len(told.ended):]...)
	n.turned -= told.turned
	return max(len(n.started), len(n.active), len(n.ended)) >= maxNews
}

func (n *news) size() int { return len(n.started) + len(n.active) + len(n.ended) }

// hasNews tells whether there is something that the server has not been told.
func (g *gate) hasNews() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.news.size() > 0
}

// kept appends an id, unless there are too many already: what is lost then
// counts less than it should at the server, until its time is over.
func kept(list [][16]byte, id [16]byte) [][16]byte {
	if len(list) >= maxLive {
		return list
	}
	return append(list, id)
}

// recent counts what happened in the last 60 seconds, or minutes, by each.
type recent struct {
	at [60]int64 // of each slot, since 1970
	n  [60]int
}

func (r *recent) add(now int64) {
	i := now % 60
	if r.at[i] != now {
		r.at[i], r.n[i] = now, 0
	}
	r.n[i]++
}

func (r *recent) count(now int64) (all int) {
	for i, at := range r.at {
		if age := now - at; age >= 0 && age < 60 {
			all += r.n[i]
		}
	}
	return all
}

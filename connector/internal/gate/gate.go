// Package gate implements a node's part in the gates of rooms in mode safety-net: it decides which unqueued
// sessions may begin here, and collects what the node has to report about them.
//
//	request ─► Begin, Touch, End ─► News ─► report ─► Reply ─► Update: open or shut, and this node's share
package gate

import (
	"net/netip"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/recent"
	"github.com/proofline/proofline/connector/internal/session"
)

// MaxIDs is the maximum number of ids of one kind in a report.
const MaxIDs = 2_000

// Limits.
const (
	MaxUnqueued   = 200_000          // unqueued sessions of a room that are remembered
	SweepInterval = 10 * time.Second // time between removals of expired unqueued sessions
	ReplyTTL      = 5 * time.Second  // validity of a reply to a report; after that, nodes share the limits equally
)

// MaxLengths is the longest an unqueued session can last, in multiples of its length.
const MaxLengths = 4

// States of a gate.
const (
	Open = "open"
	Shut = "shut"
)

// Gate is what a node knows about a room's gate: whether it is open, how many unqueued sessions may
// begin here, and which have begun.
type Gate struct {
	mu           sync.Mutex
	reply        Reply         // the latest reply to a report
	replyAt      time.Time     // time of that reply; zero: none
	share        int           // unqueued sessions that may begin until the next reply
	startedSince int           // sessions that began since the current report was made
	recent       recent.Counts // sessions that began in the last minute
	byNetwork    networkStarts // sessions that began in the last minute, by network
	unqueued     map[id.ID]int64
	sweptAt      time.Time // last removal of expired sessions from unqueued
	started      uint64    // number of sessions begun since the connector's start
	turned       uint64
	crowded      uint64

	news News
}

// Reply is the server's view of a gate.
type Reply struct {
	IsOpen    bool
	PerMinute int
	MaxActive int // 0: no limit
	Nodes     int
	Length    int64 // length of sessions, in ms
}

// News is what has not been sent to the server yet. The reporter removes ids from the front.
type News struct {
	Started, Active, Ended []id.ID
	TurnedAway             uint64
}

// Update stores the server's reply, and reports whether the gate was switched.
func (g *Gate) Update(n Reply, share int, now time.Time) (isSwitched bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isSwitched = g.reply.IsOpen != n.IsOpen
	g.reply, g.replyAt = n, now
	g.share = share - g.startedSince
	g.sweep(now, SweepInterval)
	return isSwitched
}

// Refusal is the reason why no unqueued session begins.
type Refusal int

// Reasons of refusals.
const (
	Admitted         Refusal = iota
	shut                     // gate shut; or no fresh reply, and over this node's part of the limits
	OverShare                // gate open, but this node's share is used up
	OverNetworkLimit         // gate open, but the client's network is over its limit
)

// refusal returns why no unqueued session may begin now.
func (g *Gate) refusal(network [8]byte, now time.Time) Refusal {
	switch {
	case g.replyAt.IsZero() || !g.reply.IsOpen:
		return shut
	case g.byNetwork.count(network, now) >= networkLimit(g.reply.PerMinute, g.reply.Nodes):
		return OverNetworkLimit
	case now.Sub(g.replyAt) > ReplyTTL && !g.isWithinPart(now):
		return shut
	case now.Sub(g.replyAt) <= ReplyTTL && g.share <= 0:
		return OverShare
	}
	return Admitted
}

// Begin begins an unqueued session, or returns why none may begin. A refusal is
// not counted on a dry run.
func (g *Gate) Begin(
	rm *session.Room, client netip.Addr, agent string, now time.Time, isDry bool,
) (s *session.Session, why Refusal) {
	var network [8]byte
	if client.IsValid() {
		network = session.NetworkOf(client)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if why = g.refusal(network, now); why != Admitted {
		if !isDry {
			g.countRefusal(why)
		}
		return nil, why
	}
	s = rm.New(id.New(), client, agent, now)
	s.Length = g.reply.Length
	s.MaxEnds = s.Issued + MaxLengths*s.Length
	s.Ends = s.Issued + s.Length
	g.share--
	g.startedSince++
	g.started++
	g.recent.Add(now.Unix())
	g.byNetwork.add(network, now)
	g.remember(s, now)
	g.news.Started = appendBounded(g.news.Started, s.Pass)
	return s, Admitted
}

// countRefusal counts a visitor sent to the room although the gate is open. Those
// over their network's limit are not reported: one network must not shut the gate.
func (g *Gate) countRefusal(why Refusal) {
	switch why {
	case OverShare:
		g.turned++
		g.news.TurnedAway++
	case OverNetworkLimit:
		g.crowded++
	default:
	}
}

// isWithinPart reports whether one more session fits into this node's part of the
// limits, which applies while there is no fresh reply.
func (g *Gate) isWithinPart(now time.Time) bool {
	if g.recent.Count(now.Unix())+1 > nodePart(g.reply.PerMinute, g.reply.Nodes) {
		return false
	}
	if g.reply.MaxActive == 0 {
		return true
	}
	most := min(nodePart(g.reply.MaxActive, g.reply.Nodes), MaxUnqueued)
	if len(g.unqueued) >= most {
		g.sweep(now, time.Second)
	}
	return len(g.unqueued) < most
}

// nodePart returns a node's part of a limit, rounded up.
func nodePart(all, nodes int) int { return (all + max(nodes, 1) - 1) / max(nodes, 1) }

// Touch records that the visitor of an unqueued session is active.
func (g *Gate) Touch(s *session.Session, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remember(s, now)
	g.news.Active = appendBounded(g.news.Active, s.Pass)
}

// End records that an unqueued session was ended.
func (g *Gate) End(s *session.Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unqueued, s.Pass)
	g.news.Ended = appendBounded(g.news.Ended, s.Pass)
}

// Forget removes unqueued sessions that ended elsewhere.
func (g *Gate) Forget(over []id.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, pass := range over {
		delete(g.unqueued, pass)
	}
}

// remember stores when an unqueued session ends. Above MaxUnqueued, others are
// dropped here; the server still counts them.
func (g *Gate) remember(s *session.Session, now time.Time) {
	if g.unqueued == nil {
		g.unqueued = map[id.ID]int64{}
	}
	if len(g.unqueued) >= MaxUnqueued {
		g.sweep(now, SweepInterval)
	}
	for pass := range g.unqueued {
		if len(g.unqueued) < MaxUnqueued {
			break
		}
		delete(g.unqueued, pass)
	}
	g.unqueued[s.Pass] = min(now.UnixMilli()+s.Length, s.MaxEnds)
}

// sweep removes expired sessions, if the last sweep was at least every ago.
func (g *Gate) sweep(now time.Time, every time.Duration) {
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

// Stats are the counts and the state of a gate.
type Stats struct {
	State      string    // [Open] or [Shut] in the latest reply; empty: no reply yet
	ReplyAt    time.Time // time of the latest reply
	Unqueued   int       // active unqueued sessions known here
	Started    uint64    // number of sessions begun since the connector's start
	TurnedAway uint64
	Crowded    uint64
}

// Stats returns the counts and the state.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{
		ReplyAt: g.replyAt, Unqueued: len(g.unqueued), Started: g.started, TurnedAway: g.turned, Crowded: g.crowded,
	}
	switch {
	case g.replyAt.IsZero():
	case g.reply.IsOpen:
		s.State = Open
	default:
		s.State = Shut
	}
	return s
}

// Take returns up to most of the oldest news of each kind, and starts a new report.
func (g *Gate) Take(most int) News {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.startedSince = 0
	n := g.news
	n.Started = n.Started[:min(len(n.Started), most)]
	n.Active = n.Active[:min(len(n.Active), most)]
	n.Ended = n.Ended[:min(len(n.Ended), most)]
	return n
}

// Drop removes news that the server has received, and reports whether another full
// report is waiting.
func (g *Gate) Drop(sent News) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &g.news
	n.Started = append([]id.ID(nil), n.Started[len(sent.Started):]...)
	n.Active = append([]id.ID(nil), n.Active[len(sent.Active):]...)
	n.Ended = append([]id.ID(nil), n.Ended[len(sent.Ended):]...)
	n.TurnedAway -= sent.TurnedAway
	return max(len(n.Started), len(n.Active), len(n.Ended)) >= MaxIDs
}

// Size returns the number of ids.
func (n *News) Size() int { return len(n.Started) + len(n.Active) + len(n.Ended) }

// HasNews reports whether there is something left to report.
func (g *Gate) HasNews() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.news.Size() > 0
}

// appendBounded appends an id to a list that is not full. Dropping an id makes the server
// undercount by one until that session would have ended.
func appendBounded(list []id.ID, id id.ID) []id.ID {
	if len(list) >= MaxUnqueued {
		return list
	}
	return append(list, id)
}

// maxSavedAge is the maximum age of the last reply of a saved gate.
const maxSavedAge = time.Hour

// savedPrecision is the precision of saved reply times, so that the state file rarely changes.
const savedPrecision = time.Minute

// Saved is a gate that was open in the last reply, for the state file. Shut gates are
// not saved, because a gate without a reply counts as shut.
type Saved struct {
	Room string // URL of the room
	At   time.Time
	Reply
}

// IsFresh reports whether the gate can still be restored.
func (s Saved) IsFresh(now time.Time) bool {
	age := now.Sub(s.At)
	return age >= 0 && age < maxSavedAge
}

// Restore sets the saved reply. It counts as an outdated reply, so the node only admits its part of
// the limits.
func (g *Gate) Restore(s Saved, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reply, g.replyAt = s.Reply, s.At
	if late := now.Add(-ReplyTTL - time.Millisecond); g.replyAt.After(late) {
		g.replyAt = late
	}
}

// Save returns the gate as it is saved. It returns false if the gate is not open.
func (g *Gate) Save(room string) (Saved, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Saved{room, g.replyAt.Truncate(savedPrecision), g.reply}, !g.replyAt.IsZero() && g.reply.IsOpen
}

// maxSessionMS limits the length of sessions in a reply.
const maxSessionMS = 366 * 24 * 3600_000

// IsValid reports whether a reply is within the accepted limits.
func (r *Reply) IsValid() bool {
	const most = 1 << 31
	return r.PerMinute > 0 && r.PerMinute < most && r.MaxActive >= 0 && r.MaxActive < most &&
		r.Nodes < most && r.Length > 0 && r.Length < maxSessionMS
}

package connector

import (
	"net/http"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/report"
)

// fewestStarts is the limit of a network, however small the node's part.
const fewestStarts = 10

// TestNetworkLimit tests that a network over its limit waits, and does not count as
// turned away.
func TestNetworkLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perMinute, nodes int
		want             int
	}{
		"a fifth of the node's part": {600, 2, 60},
		"rounded down":               {599, 3, 39},
		"few":                        {12, 1, fewestStarts},
		"many nodes":                 {600, 1000, fewestStarts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetted(t)
			n.said = &report.RoomReply{Gate: GateOpen, Share: 1000, PerMinute: c.perMinute, Nodes: c.nodes, SessionMS: 600_000}
			s := n.shop("")
			cookie := s.free("the first")
			for range c.want - 1 {
				s.free("more of the network")
			}
			s.isQueued("one too many", s.get("/tickets"))
			s.isQueued("from the same network", s.get("/tickets", "Client: 198.51.100.255"))
			s.isQueued("a script", s.send(http.MethodPost, "/tickets"))
			s.isThrough("with a session", s.get("/tickets", cookie))
			s.free("another network", "Client: 198.51.101.7")
			s.report()
			if said, all := n.latest(), s.Stats(); said.TurnedAway != 0 || all.TurnedAway != 0 || all.Crowded != 3 ||
				all.Rooms["sale"].Crowded != 3 || len(said.Started) != c.want+1 ||
				n.reports[len(n.reports)-1].Counts["crowded"] != 3 {
				t.Errorf("reported %+v, counts %+v", said, all)
			}
			s.clock.pass(time.Minute - time.Millisecond)
			s.report()
			s.isQueued("within the minute", s.get("/tickets"))
			s.clock.pass(time.Millisecond)
			s.free("a minute later")
		})
	}
}

// TestNetworkLimitAtShutGate tests that visitors over the limit are not counted while the
// gate is shut.
func TestNetworkLimitAtShutGate(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.said = &report.RoomReply{Gate: GateOpen, Share: fewestStarts, PerMinute: 1, Nodes: 1, SessionMS: 600_000}
	s := n.shop("")
	for range fewestStarts {
		s.free("begins")
	}
	s.isQueued("crowded, and no share", s.get("/tickets"))
	s.isQueued("no share", s.get("/tickets", someone(1)))
	if got := s.Stats(); got.Crowded != 1 || got.TurnedAway != 1 {
		t.Errorf("counts %+v", got)
	}
	n.fails()
	s.clock.pass(gate.ReplyTTL + time.Second)
	s.isQueued("over the limit, without replies", s.get("/tickets"))
	if got := s.Stats(); got.Crowded != 2 || got.TurnedAway != 1 {
		t.Errorf("counts %+v", got)
	}
}

// TestNetworkLimitIPv6 tests that a network is a /48, and that unknown clients have none.
func TestNetworkLimitIPv6(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.said = &report.RoomReply{Gate: GateOpen, Share: 1000, PerMinute: 10, Nodes: 1, SessionMS: 600_000}
	s := n.shop("")
	for range fewestStarts {
		s.free("begins", "Client: [2001:db8:1::7]")
	}
	s.isQueued("the same network", s.get("/tickets", "Client: [2001:db8:1:ffff::8]"))
	s.free("another", "Client: [2001:db8:2::7]")
	for range fewestStarts + 5 {
		s.free("unknown client", "Client: @")
	}
}

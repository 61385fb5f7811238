package connector

import (
	"net/http"
	"testing"
	"time"
)

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
		"few":                        {12, 1, minNetworkLimit},
		"many nodes":                 {600, 1000, minNetworkLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetted(t)
			n.said = &roomReply{Gate: GateOpen, Share: 1000, PerMinute: c.perMinute, Nodes: c.nodes, SessionMS: 600_000}
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
			if said, all := n.latest(), s.Stats(); said.Turned != 0 || all.Turned != 0 || all.Crowded != 3 ||
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

// TestNetworkLimitClock tests that setting the clock back delays a network for a minute
// at most.
func TestNetworkLimitClock(t *testing.T) {
	t.Parallel()
	var c networkStarts
	network, now := [8]byte{1}, time.UnixMilli(1_800_000_000_000)
	c.add(network, now)
	for _, step := range []struct {
		to   time.Duration // from then
		want int
	}{{-time.Millisecond, 1}, {time.Millisecond - time.Minute, 1}, {-time.Minute, 0}, {0, 0}} {
		if got := c.count(network, now.Add(step.to)); got != step.want {
			t.Errorf("at %v: %d, want %d", step.to, got, step.want)
		}
	}
	if len(c.counts) != 0 || c.starts != nil {
		t.Errorf("kept %v, %v", c.counts, c.starts)
	}
}

// TestNetworkLimitAtShutGate tests that visitors over the limit are not counted while the
// gate is shut.
func TestNetworkLimitAtShutGate(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.said = &roomReply{Gate: GateOpen, Share: minNetworkLimit, PerMinute: 1, Nodes: 1, SessionMS: 600_000}
	s := n.shop("")
	for range minNetworkLimit {
		s.free("begins")
	}
	s.isQueued("crowded, and no share", s.get("/tickets"))
	s.isQueued("no share", s.get("/tickets", someone(1)))
	if got := s.Stats(); got.Crowded != 1 || got.Turned != 1 {
		t.Errorf("counts %+v", got)
	}
	n.fails()
	s.clock.pass(replyTTL + time.Second)
	s.isQueued("over the limit, without replies", s.get("/tickets"))
	if got := s.Stats(); got.Crowded != 2 || got.Turned != 1 {
		t.Errorf("counts %+v", got)
	}
}

// TestNetworkLimitIPv6 tests that a network is a /48, and that unknown clients have none.
func TestNetworkLimitIPv6(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.said = &roomReply{Gate: GateOpen, Share: 1000, PerMinute: 10, Nodes: 1, SessionMS: 600_000}
	s := n.shop("")
	for range minNetworkLimit {
		s.free("begins", "Client: [2001:db8:1::7]")
	}
	s.isQueued("the same network", s.get("/tickets", "Client: [2001:db8:1:ffff::8]"))
	s.free("another", "Client: [2001:db8:2::7]")
	for range minNetworkLimit + 5 {
		s.free("unknown client", "Client: @")
	}
}

// TestNetworkLimitMemory tests that the oldest starts are dropped.
func TestNetworkLimitMemory(t *testing.T) {
	t.Parallel()
	var c networkStarts
	now := newClock().now()
	for i := range maxNetworkStarts + 5 {
		c.add([8]byte{1, byte(i), byte(i >> 8), byte(i >> 16)}, now)
	}
	if n := c.count([8]byte{1, 4}, now); n != 0 || len(c.starts) != maxNetworkStarts || len(c.counts) != maxNetworkStarts {
		t.Errorf("the first counts %d of %d, and %d networks", n, len(c.starts), len(c.counts))
	}
	if n := c.count([8]byte{1, 5}, now); n != 1 {
		t.Errorf("the first that is left counts %d", n)
	}
	if n := c.count([8]byte{1, 5}, now.Add(time.Minute)); n != 0 || len(c.starts) != 0 || len(c.counts) != 0 {
		t.Errorf("a minute later %d of %d, and %d networks", n, len(c.starts), len(c.counts))
	}
}

package gate

import (
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/session"
)

// TestBounded tests that memory is bounded.
func TestBounded(t *testing.T) {
	t.Parallel()
	var g Gate
	now := time.UnixMilli(1_800_000_000_000)
	for i := range MaxUnqueued + 1000 {
		s := &session.Session{Length: 60_000, MaxEnds: 1 << 60}
		s.Pass = [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}
		g.Touch(s, now)
		g.End(&session.Session{Pass: [16]byte{1, 1, 1, 1, byte(i)}})
	}
	if len(g.unqueued) != MaxUnqueued || len(g.news.Active) != MaxUnqueued || len(g.news.Ended) != MaxUnqueued {
		t.Errorf("%d go on, news %d and %d", len(g.unqueued), len(g.news.Active), len(g.news.Ended))
	}
	start := time.Now()
	g.sweep(now.Add(time.Hour), 0)
	if len(g.unqueued) != 0 || time.Since(start) > 20*time.Second {
		t.Errorf("%d go on, after %v", len(g.unqueued), time.Since(start))
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

// TestNetworkLimitMemory tests that the oldest starts are dropped.
func TestNetworkLimitMemory(t *testing.T) {
	t.Parallel()
	var c networkStarts
	now := time.UnixMilli(1_800_000_000_000)
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

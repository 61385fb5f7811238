package gate

import "time"

// Parameters of the limit on sessions that one network may begin at a node within a minute.
const (
	minNetworkLimit  = 10     // sessions, however small the node's part
	networkLimitPart = 5      // a network may take 1/5 of the node's part
	maxNetworkStarts = 60_000 // starts that are remembered; the oldest are dropped
)

// networkLimit returns how many unqueued sessions a network may begin at a node
// within a minute.
func networkLimit(perMinute, nodes int) int {
	return max(minNetworkLimit, perMinute/(networkLimitPart*max(nodes, 1)))
}

// networkStarts counts session starts of the last minute by network. The zero
// value is ready.
type networkStarts struct {
	starts []networkStart // oldest first
	counts map[[8]byte]int
}

// networkStart is the start of an unqueued session.
type networkStart struct {
	network [8]byte
	at      int64 // ms since 1970
}

// count returns the number of starts of a network. The zero network stands for
// clients without an address, which are not counted.
func (c *networkStarts) count(network [8]byte, now time.Time) int {
	for len(c.starts) > 0 && !c.starts[0].isRecent(now) {
		c.drop()
	}
	return c.counts[network]
}

// isRecent reports whether a start was in the last minute. A start further in the
// future dates from before the clock was set back, and would otherwise count until then.
func (b networkStart) isRecent(now time.Time) bool {
	age := now.UnixMilli() - b.at
	return max(age, -age) < time.Minute.Milliseconds()
}

func (c *networkStarts) add(network [8]byte, now time.Time) {
	if network == [8]byte{} {
		return
	}
	if len(c.starts) >= maxNetworkStarts {
		c.drop()
	}
	if c.counts == nil {
		c.counts = map[[8]byte]int{}
	}
	c.starts = append(c.starts, networkStart{network, now.UnixMilli()})
	c.counts[network]++
}

// drop removes the oldest start.
func (c *networkStarts) drop() {
	oldest := c.starts[0].network
	if c.counts[oldest]--; c.counts[oldest] == 0 {
		delete(c.counts, oldest)
	}
	if c.starts = c.starts[1:]; len(c.starts) == 0 {
		c.starts = nil
	}
}

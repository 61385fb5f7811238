package connector

import "time"

// What one network may begin at a node within a minute.
const (
	minNetworkLimit  = 10     // free sessions, however few may begin
	networkLimitPart = 5      // else one of so many of the node's part
	maxNetworkStarts = 60_000 // beginnings that are known; before that many the oldest count no more
)

// crowdOf returns how many free sessions of one network may begin at a node in a
// minute.
func networkLimit(perMinute, nodes int) int {
	return max(minNetworkLimit, perMinute/(networkLimitPart*max(nodes, 1)))
}

// crowd counts beginnings of the last minute by network. The zero value is
// ready.
type networkStarts struct {
	starts []networkStart // the oldest first
	counts map[[8]byte]int
}

// beginning is when a free session began, and for whom.
type networkStart struct {
	network [8]byte
	at      int64 // ms since 1970
}

// count returns how many began for a network. Clients whose address is not known
// are of none, which is zero.
func (c *networkStarts) count(network [8]byte, now time.Time) int {
	for len(c.starts) > 0 && !c.starts[0].isRecent(now) {
		c.drop()
	}
	return c.counts[network]
}

// counts tells whether a beginning is of the last minute. One that is further
// ahead is of a clock that was set back, and would count until then.
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

// drop forgets the oldest.
func (c *networkStarts) drop() {
	oldest := c.starts[0].network
	if c.counts[oldest]--; c.counts[oldest] == 0 {
		delete(c.counts, oldest)
	}
	if c.starts = c.starts[1:]; len(c.starts) == 0 {
		c.starts = nil
	}
}

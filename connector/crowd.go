package connector

import "time"

// What one network may begin at a node within a minute.
const (
	crowdLeast = 10     // free sessions, however few may begin
	crowdPart  = 5      // else one of so many of the node's part
	maxCrowd   = 60_000 // beginnings that are known; before that many the oldest count no more
)

// crowdOf returns how many free sessions of one network may begin at a node in a
// minute.
func crowdOf(perMinute, nodes int) int { return max(crowdLeast, perMinute/(crowdPart*max(nodes, 1))) }

// crowd counts beginnings of the last minute by network. The zero value is
// ready.
type crowd struct {
	begun []beginning // the oldest first
	n     map[[8]byte]int
}

// beginning is when a free session began, and for whom.
type beginning struct {
	network [8]byte
	at      int64 // ms since 1970
}

// count returns how many began for a network. Clients whose address is not known
// are of none, which is zero.
func (c *crowd) count(network [8]byte, now time.Time) int {
	for len(c.begun) > 0 && !c.begun[0].counts(now) {
		c.drop()
	}
	return c.n[network]
}

// counts tells whether a beginning is of the last minute. One that is further
// ahead is of a clock that was set back, and would count until then.
func (b beginning) counts(now time.Time) bool {
	age := now.UnixMilli() - b.at
	return max(age, -age) < time.Minute.Milliseconds()
}

func (c *crowd) add(network [8]byte, now time.Time) {
	if network == [8]byte{} {
		return
	}
	if len(c.begun) >= maxCrowd {
		c.drop()
	}
	if c.n == nil {
		c.n = map[[8]byte]int{}
	}
	c.begun = append(c.begun, beginning{network, now.UnixMilli()})
	c.n[network]++
}

// drop forgets the oldest.
func (c *crowd) drop() {
	oldest := c.begun[0].network
	if c.n[oldest]--; c.n[oldest] == 0 {
		delete(c.n, oldest)
	}
	if c.begun = c.begun[1:]; len(c.begun) == 0 {
		c.begun = nil
	}
}

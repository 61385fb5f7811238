package demo

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// maxNarrated is the number of failed checks that are narrated.
const maxNarrated = 20

// checks narrates and counts failed checks, and counts what all visitors saw. Safe for concurrent
// use.
type checks struct {
	*Narrator

	mu        sync.Mutex
	failed    int
	joins     int
	refused   int           // requests that were refused as expected
	perSecond map[int64]int // joins by Unix second
}

func newChecks(n *Narrator) *checks { return &checks{Narrator: n, perSecond: map[int64]int{}} }

func (c *checks) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// join counts a join.
func (c *checks) join(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joins++
	c.perSecond[at.Unix()]++
}

// refuse counts a request that was refused as expected.
func (c *checks) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
}

// refusals returns the number of requests that were refused as expected.
func (c *checks) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// joined returns the number of joins, in total and in the busiest second.
func (c *checks) joined() (total, peak int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.perSecond {
		peak = max(peak, n)
	}
	return c.joins, peak
}

// expect counts and narrates a failed check, unless ok.
func (c *checks) expect(ok bool, format string, args ...any) {
	if ok {
		return
	}
	c.mu.Lock()
	c.failed++
	n := c.failed
	c.mu.Unlock()
	if n <= maxNarrated {
		c.Say("✗ unexpected: %s", fmt.Sprintf(format, args...))
	}
}

// isRefusal reports whether err is a refusal with the given status.
func isRefusal(err error, status int) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == status
}

// expectStatus checks that err is a refusal with the given status.
func (c *checks) expectStatus(err error, status int, what string) {
	if !isRefusal(err, status) {
		c.expect(false, "%s is answered with %v, not with %d", what, err, status)
		return
	}
	c.refuse()
}

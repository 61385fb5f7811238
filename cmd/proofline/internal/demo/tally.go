package demo

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// maxTold is the number of failed checks that are narrated.
const maxTold = 20

// tally counts what all visitors saw. Safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	failed    int // checks
	joins     int
	refused   int           // requests that were refused as expected
	perSecond map[int64]int // joins by Unix second
}

func (s *tally) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *tally) join(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perSecond == nil {
		s.perSecond = map[int64]int{}
	}
	s.joins++
	s.perSecond[at.Unix()]++
}

func (s *tally) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
}

// joined returns the number of joins, in total and in the busiest second.
func (s *tally) joined() (total, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.perSecond {
		peak = max(peak, n)
	}
	return s.joins, peak
}

// expect counts and narrates a failed check, unless ok.
func (d *demo) expect(ok bool, format string, args ...any) {
	if ok {
		return
	}
	d.tally.mu.Lock()
	d.tally.failed++
	n := d.tally.failed
	d.tally.mu.Unlock()
	if n <= maxTold {
		d.Narrator.Say("✗ unexpected: %s", fmt.Sprintf(format, args...))
	}
}

// expectStatus checks that err is a refusal with the given status.
func (d *demo) expectStatus(err error, status int, what string) {
	p := (*api.Problem)(nil)
	if !errors.As(err, &p) || p.Status != status {
		d.expect(false, "%s is answered with %v, not with %d", what, err, status)
		return
	}
	d.tally.refuse()
}

package demo

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// mostTold is how many surprises are told one by one.
const mostTold = 20

// seen collects what all visitors saw. Safe for concurrent use.
type seen struct {
	mu        sync.Mutex
	surprises int
	joins     int
	refused   int
	perSecond map[int64]int // joins by Unix second
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.surprises
}

func (s *seen) join(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perSecond == nil {
		s.perSecond = map[int64]int{}
	}
	s.joins++
	s.perSecond[at.Unix()]++
}

func (s *seen) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
}

// joined returns how many joined, and how many in the busiest second.
func (s *seen) joined() (total, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.perSecond {
		peak = max(peak, n)
	}
	return s.joins, peak
}

// expect tells of what is not as it must be.
func (d *demo) expect(ok bool, format string, args ...any) {
	if ok {
		return
	}
	d.seen.mu.Lock()
	d.seen.surprises++
	n := d.seen.surprises
	d.seen.mu.Unlock()
	if n <= mostTold {
		d.Narrator.Say("✗ must not be: %s", fmt.Sprintf(format, args...))
	}
}

// expectStatus wants the server to refuse with a status.
func (d *demo) expectStatus(err error, status int, what string) {
	p := (*api.Problem)(nil)
	if !errors.As(err, &p) || p.Status != status {
		d.expect(false, "%s is answered with %v, not with %d", what, err, status)
		return
	}
	d.seen.refuse()
}

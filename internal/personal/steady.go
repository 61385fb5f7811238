package personal

import "time"

// Settled is how long the clock of a machine must go without a jump before programs delete by it: also at the start,
// when it may not have been set yet.
const Settled = time.Hour

// mostDrift is the largest difference between the clocks of a machine that is no jump.
const mostDrift = time.Minute

// Steady notices jumps of this machine's clock: it compares it with the monotonic clock, which nothing sets. It is not
// safe for concurrent use.
type Steady struct {
	start time.Time
	wall  time.Time     // at the start, or at the latest jump
	up    time.Duration // at that time, by the monotonic clock
}

// NewSteady starts to watch the clock.
func NewSteady() *Steady {
	now := time.Now()
	return &Steady{start: now, wall: now.Round(0)}
}

// For returns how long the clock has gone without a jump.
func (s *Steady) For() time.Duration {
	now := time.Now()
	return s.observe(now.Round(0), now.Sub(s.start))
}

// observe takes a reading of both clocks.
func (s *Steady) observe(wall time.Time, up time.Duration) time.Duration {
	steady := up - s.up
	if (wall.Sub(s.wall) - steady).Abs() > mostDrift {
		s.wall, s.up = wall, up
		return 0
	}
	return steady
}

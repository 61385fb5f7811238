package personal

import (
	"testing"
	"time"
)

// TestSteady: the clock is steady from the start or the latest jump, in either direction.
func TestSteady(t *testing.T) {
	t.Parallel()
	s := NewSteady()
	at := s.wall
	for _, c := range []struct {
		name           string
		wall, up, want time.Duration
	}{
		{"at the start", 0, 0, 0},
		{"both go on", 2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		{"it drifts", 3*time.Hour + time.Minute, 3 * time.Hour, 3 * time.Hour},
		{"it jumps ahead", 5*time.Hour + time.Second + time.Minute, 5 * time.Hour, 0},
		{"it stays ahead", 6*time.Hour + time.Second + time.Minute, 6 * time.Hour, time.Hour},
		{"it jumps back", 7 * time.Hour, 7 * time.Hour, 0},
		{"and goes on", 8 * time.Hour, 8 * time.Hour, time.Hour},
	} {
		if got := s.observe(at.Add(c.wall), c.up); got != c.want {
			t.Errorf("%s: steady for %v, want %v", c.name, got, c.want)
		}
	}
	if s := NewSteady(); s.For() >= Settled {
		t.Error("a clock is settled at the start")
	}
}

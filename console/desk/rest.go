package desk

import (
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// IsServing tells whether some room of this node has people in line.
func (d *Desk) IsServing() bool {
	for _, r := range d.Rooms.Loaded() {
		s := r.Snapshot()
		n := s.Counts
		if !s.Ended && n.Arrivals > n.Admitted+n.NoShows+n.Left+n.Revoked {
			return true
		}
	}
	return false
}

// Rests is for a simulation on a machine that serves people: it rests as long as
// it has worked, at each report, which comes every thousand steps or so.
func Rests() simulate.Progress {
	since := time.Now()
	return func(int, int, int) {
		time.Sleep(time.Since(since))
		since = time.Now()
	}
}

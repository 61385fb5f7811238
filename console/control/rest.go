package control

import (
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// IsServing reports whether a room of this node has visitors in line.
func (rs *Rooms) IsServing() bool {
	for _, r := range rs.Rooms.Loaded() {
		s := r.Snapshot()
		n := s.Counts
		if !s.Ended && n.Arrivals > n.Admitted+n.NoShows+n.Left+n.Revoked {
			return true
		}
	}
	return false
}

// Rests returns a [simulate.Progress] that slows a simulation down on a machine that serves visitors:
// at each report, every thousand steps or so, it sleeps as long as the simulation has worked.
func Rests() simulate.Progress {
	since := time.Now()
	return func(int, int, int) {
		time.Sleep(time.Since(since))
		since = time.Now()
	}
}

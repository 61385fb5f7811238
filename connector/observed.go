package connector

import (
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// observed counts the requests that would have waited for a room that is off.
type observed struct {
	mu   sync.Mutex
	all  uint64       // since the connector began
	hour recentCounts // of the last 60 minutes
}

func (o *observed) add(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all++
	o.hour.add(minuteOf(now))
}

// counts returns how many there were, and in the last hour.
func (o *observed) counts(now time.Time) (all, hour uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all, uint64(o.hour.count(minuteOf(now)))
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// observe counts a request that would have waited if its room were not off.
func (q *requestCheck) observe() {
	rm := q.config.rooms[q.decision.Room]
	if rm == nil || rm.Mode != rules.Off || q.findSession(rm, new(session)) {
		return
	}
	q.counts.observed.Add(1)
	rm.state.observed.add(q.now)
}

// Names of counts in reports that say what happened in the last 60 minutes end
// with that of a room, as far as they fit.
const (
	observedHour = "observed_hour_"
	maxCountName = 50
	maxCounts    = 100 // in a report
)

// addObserved adds to the counts of a report what rooms that are off would have
// had to do in the last hour.
func (s *config) addObserved(counts map[string]uint64, now time.Time) {
	for name, rm := range s.rooms {
		count := observedHour + strings.ReplaceAll(name, "-", "_")
		if rm.Mode != rules.Off || len(count) > maxCountName || len(counts) >= maxCounts {
			continue
		}
		_, counts[count] = rm.state.observed.counts(now)
	}
}

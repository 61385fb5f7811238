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
	all  uint64 // since the connector began
	hour recent // of the last 60 minutes
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
func (q *inquiry) observe() {
	d := q.state.doors[q.decision.Room]
	if d == nil || d.Mode != rules.Off || q.find(d, new(session)) {
		return
	}
	q.counts.observed.Add(1)
	d.link.observed.add(q.now)
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
func (s *state) addObserved(counts map[string]uint64, now time.Time) {
	for name, d := range s.doors {
		count := observedHour + strings.ReplaceAll(name, "-", "_")
		if d.Mode != rules.Off || len(count) > maxCountName || len(counts) >= maxCounts {
			continue
		}
		_, counts[count] = d.link.observed.counts(now)
	}
}

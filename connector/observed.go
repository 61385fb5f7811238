package connector

import (
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/internal/recent"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/rules"
)

// observed counts requests that would have needed a session if the room were on.
type observed struct {
	mu   sync.Mutex
	all  uint64        // number of requests since the connector's start
	hour recent.Counts // requests of the last 60 minutes
}

func (o *observed) add(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all++
	o.hour.Add(minuteOf(now))
}

// counts returns the number since the start, and of the last hour.
func (o *observed) counts(now time.Time) (all, hour uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all, uint64(o.hour.Count(minuteOf(now)))
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// observe counts the request if it would have needed a session.
func (q *requestCheck) observe() {
	rm := q.config.rooms[q.decision.Room]
	if rm == nil || rm.Mode != rules.Off || q.finder.Find(rm.Room, new(session.Session)) {
		return
	}
	q.counts.observed.Add(1)
	rm.state.observed.add(q.now)
}

// Counts of the last 60 minutes are reported under this prefix followed by the room's name, within
// the limits.
const (
	observedHour = "observed_hour_"
	maxCountName = 50
	maxCounts    = 100 // counts in a report
)

// addObserved adds the hourly counts of rooms in mode off to a report's counts.
func (s *config) addObserved(counts map[string]uint64, now time.Time) {
	for name, rm := range s.rooms {
		count := observedHour + strings.ReplaceAll(name, "-", "_")
		if rm.Mode != rules.Off || len(count) > maxCountName || len(counts) >= maxCounts {
			continue
		}
		_, counts[count] = rm.state.observed.counts(now)
	}
}

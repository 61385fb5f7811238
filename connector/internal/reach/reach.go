// Package reach records whether a room's server can be reached, and the fail-open intervals in which it could not.
package reach

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/internal/id"
)

// maxIntervals limits the remembered fail-open intervals of a room.
const maxIntervals = 100

// Interval is an interval in which requests were admitted without a pass,
// because the room was out of reach.
type Interval struct {
	ID       id.ID // identifies the interval in reports and in the state file
	From     time.Time
	Until    time.Time // zero: still open
	Requests uint64    // admitted without a pass
}

// Reach tracks whether the server of one room can be reached. It is safe for concurrent use.
type Reach struct {
	room       string // URL of the room
	log        *slog.Logger
	unrecorded *Unrecorded

	mu          sync.Mutex // guards the fields below
	downSince   time.Time  // zero: reachable
	confirmedAt time.Time  // last request not shaped by a visitor that confirmed this
	intervals   []Interval // the latest, oldest first
}

// New returns the reach of a room that is assumed to be reachable. Its past fail-open
// intervals are added to unrecorded.
func New(room string, log *slog.Logger, unrecorded *Unrecorded) *Reach {
	return &Reach{room: room, log: log, unrecorded: unrecorded}
}

// DownSince returns when the room went out of reach; zero: it is reachable.
func (r *Reach) DownSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.downSince
}

// Answered records that the room answered a request.
func (r *Reach) Answered(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmedAt = now
	if !r.downSince.IsZero() {
		r.log.Info("room can be reached again", "room", r.room, "after", now.Sub(r.downSince))
		r.downSince = time.Time{}
		r.end(now, "visitors wait in line again")
	}
}

// Failed records that the room did not answer a request that no visitor shaped.
func (r *Reach) Failed(now time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmedAt = now
	r.fail(now, err)
}

// FailedVisitor records that the room did not answer a request that a visitor shaped.
// Such a failure does not confirm an outage.
func (r *Reach) FailedVisitor(now time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(now, err)
}

func (r *Reach) fail(now time.Time, err error) {
	if r.downSince.IsZero() {
		r.downSince = now
		r.log.Error("room cannot be reached", "room", r.room, "err", err)
	}
}

// FailsOpen reports whether the connector fails open for the room. The room must have failed at the
// beginning and at the end of the delay, the second time on a request that no visitor shaped. So
// neither a single failure nor a visitor can make it fail open.
func (r *Reach) FailsOpen(after time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failsOpen(after)
}

func (r *Reach) failsOpen(after time.Duration) bool {
	return !r.downSince.IsZero() && r.confirmedAt.Sub(r.downSince) >= after
}

// Admit reports whether the connector fails open for the room, and counts the request as admitted.
func (r *Reach) Admit(after time.Duration, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.failsOpen(after) {
		return false
	}
	if n := len(r.intervals); n == 0 || !r.intervals[n-1].Until.IsZero() {
		r.intervals = append(r.intervals, Interval{From: now, ID: id.New()})
		if len(r.intervals) > maxIntervals {
			r.intervals = r.intervals[1:]
		}
		r.log.Error("room is out of reach: failing open", "room", r.room, "since", r.downSince)
		r.unrecorded.notify()
	}
	r.intervals[len(r.intervals)-1].Requests++
	return true
}

// End ends the current fail-open interval, if any, and logs why.
func (r *Reach) End(now time.Time, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(now, why)
}

func (r *Reach) end(now time.Time, why string) {
	n := len(r.intervals)
	if n == 0 || !r.intervals[n-1].Until.IsZero() {
		return
	}
	last := &r.intervals[n-1]
	last.Until = now
	r.log.Warn(why, "room", r.room, "from", last.From, "requests", last.Requests)
	if !r.unrecorded.Add(Past{r.room, *last}) {
		r.log.Error("cannot record a fail-open interval: too many are unreported", "room", r.room, "from", last.From)
	}
	r.unrecorded.notify()
}

// Intervals returns the latest fail-open intervals, oldest first.
func (r *Reach) Intervals() []Interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.intervals)
}

// Current returns the current fail-open interval as if it ended now. It returns false if there is
// none.
func (r *Reach) Current(now time.Time) (Past, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.intervals)
	if n == 0 || !r.intervals[n-1].Until.IsZero() {
		return Past{}, false
	}
	last := r.intervals[n-1]
	last.Until = now
	return Past{r.room, last}, true
}

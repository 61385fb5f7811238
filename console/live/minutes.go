package live

import (
	"context"
	"time"

	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/room"
)

// collect takes a sample, and adds a row for the minute before when a new one
// begins, and for the last one when the room has just ended, which it tells.
// A room that had ended before it was loaded tells that too, without a row.
func (l *Live) collect(t *track, v *room.Vitals) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.ended = v.Snapshot.Ended
	if n := t.ring.len(); n == 0 && t.ended {
		return true
	}
	s := sampleOf(v)
	minute := s.at / time.Minute.Milliseconds()
	if t.minute != 0 && minute > t.minute {
		l.add(t, v, false)
		t.peak = 0
	}
	if n := t.ring.len(); n > 0 && s.at > t.ring.at(n-1).at {
		t.peak = max(t.peak, int64(perSecond(t.ring.at(n-1), s, arrivals)+0.5))
	}
	t.minute = max(minute, t.minute)
	t.ring.add(s)
	if t.ended {
		l.add(t, v, true)
	}
	return t.ended
}

// add makes the row of the minute that is being collected, unless nothing has
// changed since the row before and it is not the last. While the database is away the oldest rows go
// first. The track is locked.
func (l *Live) add(t *track, v *room.Vitals, isLast bool) {
	n := &v.Snapshot.Counts
	row := pglive.Minute{
		Room: t.room.ID, At: time.Unix(t.minute*60, 0).UTC(), Arrivals: signed(n.Arrivals), Drawn: signed(n.Drawn), Called: signed(n.Called),
		Admitted: signed(n.Admitted), NoShows: signed(n.NoShows), Gone: signed(n.Left + n.Revoked), Waiting: signed(waiting(v.Snapshot)),
		Active: signed(v.Active), Peak: t.peak, PerMinute: int64(v.Snapshot.Outflow.PerMinute), MaxActive: int64(v.Snapshot.Outflow.MaxActive), Paused: v.Snapshot.Paused,
	}
	same := t.row
	if same.At = row.At; same == row && !isLast {
		return
	}
	t.row = row
	l.waiting = latest(append(l.waiting, row))
}

// latest returns as many of the last rows as may wait.
func latest(rows []pglive.Minute) []pglive.Minute { return rows[max(0, len(rows)-minutesMost):] }

func signed(n uint64) int64 { return int64(n) } //nolint:gosec // people

// send stores the rows that wait, apart from the samples, which go on meanwhile.
// Rows that were not stored wait for the next time.
func (l *Live) send(ctx context.Context) {
	if l.sending != nil {
		select {
		case err := <-l.stored:
			l.settle(ctx, err)
		default:
			return
		}
	}
	if len(l.waiting) == 0 {
		return
	}
	l.sending, l.waiting = l.waiting, nil
	rows := l.sending
	l.work.Go(func() {
		asked, cancel := context.WithTimeout(ctx, storeLimit)
		defer cancel()
		l.stored <- l.Store.AddMinutes(asked, rows)
	})
}

// settle takes the database's answer about the rows that were sent.
func (l *Live) settle(ctx context.Context, err error) {
	if err != nil {
		l.waiting = latest(append(l.sending, l.waiting...))
	}
	if err != nil && !l.failing && ctx.Err() == nil {
		l.Log.Warn("history is not stored", "err", err)
	}
	l.sending, l.failing = nil, err != nil
}

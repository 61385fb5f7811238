package live

import (
	"context"
	"time"

	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/room"
)

// collect adds a sample to the ring. It adds a row when a minute is over and when the room has just
// ended, and reports the latter. If the room had ended before it was loaded, it reports true
// without adding a row.
func (l *Live) collect(t *track, v *room.Metrics) (ended bool) {
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
		l.addIfChanged(t, rowOf(t, v))
		t.peak = 0
	}
	if n := t.ring.len(); n > 0 && s.at > t.ring.at(n-1).at {
		t.peak = max(t.peak, int64(perSecond(t.ring.at(n-1), s, arrivals)+0.5))
	}
	t.minute = max(minute, t.minute)
	t.ring.add(s)
	if t.ended {
		l.add(t, rowOf(t, v))
	}
	return t.ended
}

// rowOf returns the row of the current minute. The track must be locked.
func rowOf(t *track, v *room.Metrics) pglive.Minute {
	n := &v.Snapshot.Counts
	return pglive.Minute{
		Room: t.room.ID, At: time.Unix(t.minute*60, 0).UTC(),
		Arrivals: signed(n.Arrivals), Drawn: signed(n.Drawn), Called: signed(v.Snapshot.Passed),
		Admitted: signed(n.Admitted), NoShows: signed(n.NoShows), Gone: signed(n.Left + n.Revoked),
		Waiting: signed(v.Snapshot.Counts.InLine),
		Active:  signed(v.Active), Peak: t.peak, PerMinute: int64(v.Snapshot.Outflow.PerMinute),
		MaxActive: int64(v.Snapshot.Outflow.MaxActive), Paused: v.Snapshot.Paused,
	}
}

// addIfChanged adds a row unless only its time differs from the previous row. The track must be locked.
func (l *Live) addIfChanged(t *track, row pglive.Minute) {
	same := t.row
	if same.At = row.At; same != row {
		l.add(t, row)
	}
}

// add adds a row. While the database is down, the oldest rows are dropped first. The track must be locked.
func (l *Live) add(t *track, row pglive.Minute) {
	t.row = row
	l.waiting = latest(append(l.waiting, row))
}

// latest returns the last rows, at most maxWaitingRows.
func latest(rows []pglive.Minute) []pglive.Minute { return rows[max(0, len(rows)-maxWaitingRows):] }

func signed(n uint64) int64 { return int64(n) } //nolint:gosec // people

// send stores the waiting rows in the background. Rows that could not be stored are sent again.
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
		asked, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		l.stored <- l.Store.AddMinutes(asked, rows)
	})
}

// settle handles the result of storing rows.
func (l *Live) settle(ctx context.Context, err error) {
	if err != nil {
		l.waiting = latest(append(l.sending, l.waiting...))
	}
	if err != nil && !l.failing && ctx.Err() == nil {
		l.Log.Warn("cannot store history", "err", err)
	}
	l.sending, l.failing = nil, err != nil
}

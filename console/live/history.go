package live

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Minute is a room in one step of its history. Sums are since the room was made,
// as of the end of the step; what goes up and down is the highest of its minutes.
type Minute struct {
	At        time.Time `json:"at"` // the step's begin
	Arrivals  int64     `json:"arrivals"`
	Drawn     int64     `json:"drawn"`
	Called    int64     `json:"called"`
	Admitted  int64     `json:"admitted"`
	NoShows   int64     `json:"no_shows"`
	Gone      int64     `json:"gone"` // left or revoked
	Waiting   int64     `json:"waiting"`
	Active    int64     `json:"active"`
	Peak      int64     `json:"peak_arrivals"` // most arrivals in a second
	PerMinute int64     `json:"per_minute"`
	MaxActive int64     `json:"max_active"` // 0: no limit
	Paused    bool      `json:"paused"`
}

// Bounds of a history.
const (
	stepMost  = 24 * time.Hour
	chartMost = 1_000 // steps, when the step is ours to choose
)

// History returns a room between two moments, the second excluded, in steps of
// whole minutes, oldest first. A step in which nothing changed, or no node ran
// the room, is left out. Zero times are the last 30 days; a zero step is chosen so
// that there are at most 1,000. The room need not be in memory. Errors:
// [ErrSpan], [room.ErrNotFound], and those of the database.
func (l *Live) History(ctx context.Context, slug string, from, to time.Time, step time.Duration) ([]Minute, error) {
	record, err := l.record(ctx, slug)
	if err != nil {
		return nil, err
	}
	from, to, step, err = spanOf(record.Created, time.Now(), from, to, step)
	if err != nil {
		return nil, err
	}
	rows, err := l.Store.Minutes(ctx, record.ID, from, to, step)
	if err != nil {
		return nil, err
	}
	list := make([]Minute, 0, len(rows))
	for _, m := range rows {
		list = append(list, Minute{
			At: m.At, Arrivals: m.Arrivals, Drawn: m.Drawn, Called: m.Called, Admitted: m.Admitted, NoShows: m.NoShows, Gone: m.Gone,
			Waiting: m.Waiting, Active: m.Active, Peak: m.Peak, PerMinute: m.PerMinute, MaxActive: m.MaxActive, Paused: m.Paused,
		})
	}
	return list, nil
}

// record returns what the database has of a room beside its transcript.
func (l *Live) record(ctx context.Context, slug string) (pgroom.Room, error) {
	record, err := l.Rooms.Options.Rooms.Get(ctx, slug)
	if errors.Is(err, pgroom.ErrNotFound) {
		return record, room.ErrNotFound
	}
	return record, err
}

// spanOf checks what a history is asked for, and says what was left open.
func spanOf(created, now, from, to time.Time, step time.Duration) (time.Time, time.Time, time.Duration, error) {
	if to.IsZero() {
		to = now.Truncate(time.Minute).Add(2 * time.Minute) // the database's clock may be ahead
	}
	if from.IsZero() {
		from = to.Add(-Kept)
		if created = created.Truncate(time.Minute); from.Before(created) && created.Before(to) {
			from = created
		}
	}
	switch {
	case !from.Before(to):
		return from, to, step, invalidSpan("it must begin before it ends")
	case step < 0 || step%time.Minute != 0 || step > stepMost:
		return from, to, step, invalidSpan("a step must be whole minutes, a day at most")
	case to.Sub(from) > 2*366*24*time.Hour:
		return from, to, step, invalidSpan("it must not be longer than two years")
	}
	if step == 0 {
		step = min(max(ceil(to.Sub(from), chartMost), time.Minute), stepMost)
	}
	return from, to, step, nil
}

// ceil returns the whole minutes that so many of them make up at least d.
func ceil(d time.Duration, steps int) time.Duration {
	return (d/time.Duration(steps) + time.Minute - 1).Truncate(time.Minute)
}

package live

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Minute is one step of a room's history. Sums count from the creation of the room to the end of
// the step; other values are the maximum within the step.
type Minute struct {
	At        time.Time `json:"at"` // start of the step
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

// Limits of a history.
const (
	maxStep       = 24 * time.Hour
	maxChartSteps = 1_000 // maximum number of steps if the step's length is not given
)

// History returns a room's history in the interval [from, to), in steps of whole minutes, oldest
// first. It omits steps in which nothing changed or no node ran the room. Zero times mean the last
// 30 days; a zero step means the smallest that yields at most 1,000 steps. The room need not be
// loaded. It returns [ErrSpan], [room.ErrNotFound] or an error of the database.
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
			At: m.At, Arrivals: m.Arrivals, Drawn: m.Drawn, Called: m.Called, Admitted: m.Admitted, NoShows: m.NoShows,
			Gone:    m.Gone,
			Waiting: m.Waiting, Active: m.Active, Peak: m.Peak, PerMinute: m.PerMinute, MaxActive: m.MaxActive,
			Paused: m.Paused,
		})
	}
	return list, nil
}

// record returns a room's row in the database.
func (l *Live) record(ctx context.Context, slug string) (pgroom.Room, error) {
	record, err := l.Records.Get(ctx, slug)
	if errors.Is(err, pgroom.ErrNotFound) {
		return record, room.ErrNotFound
	}
	return record, err
}

// spanOf validates the interval and step of a history and fills in defaults.
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
		return from, to, step, invalidSpan("the start must be before the end")
	case step < 0 || step%time.Minute != 0 || step > maxStep:
		return from, to, step, invalidSpan("the step must be a number of whole minutes, at most a day")
	case to.Sub(from) > 2*366*24*time.Hour:
		return from, to, step, invalidSpan("the interval must be at most two years")
	}
	if step == 0 {
		step = min(max(ceil(to.Sub(from), maxChartSteps), time.Minute), maxStep)
	}
	return from, to, step, nil
}

// ceil returns d/steps, rounded up to whole minutes.
func ceil(d time.Duration, steps int) time.Duration {
	return (d/time.Duration(steps) + time.Minute - 1).Truncate(time.Minute)
}

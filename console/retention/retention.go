// Package retention deletes personal data that a server keeps no longer. [Rules] is all personal data of the database,
// and [Impersonal] everything else: a column belongs to one of them. It never changes transcripts, which verify as
// before.
package retention

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/personal"
	"github.com/proofline/proofline/room/pgroom"
)

// Rules are the personal data of the database, in the order in which they are applied.
var Rules = slices.Concat(pgroom.Personal, pgactivity.Personal, pgaccount.Personal, pgcontrol.Personal,
	pgsite.Personal, pgwebhook.Personal)

// Keep is how long personal data is kept.
type Keep time.Duration

const (
	// Forever keeps personal data that does not expire by itself.
	Forever Keep = 0
	// Default is what a server keeps unless it is told otherwise.
	Default = 90 * day

	day      = Keep(24 * time.Hour)
	mostDays = 36_500
)

// ErrKeep is returned for a text that is not a time to keep.
var ErrKeep = errors.New("want a number of days of at least 1, such as 90d, or forever")

// ParseKeep parses a number of days, such as 90d, or forever.
func ParseKeep(text string) (Keep, error) {
	if text == "forever" {
		return Forever, nil
	}
	number, isDays := strings.CutSuffix(text, "d")
	days, err := strconv.Atoi(number)
	if !isDays || err != nil || days < 1 || days > mostDays || number != strconv.Itoa(days) {
		return 0, ErrKeep
	}
	return Keep(days) * day, nil
}

// String returns the text that ParseKeep parses.
func (k Keep) String() string {
	if k == Forever {
		return "forever"
	}
	return strconv.Itoa(int(k/day)) + "d"
}

// Set implements the value of a flag, which Type describes.
func (k *Keep) Set(text string) (err error) {
	*k, err = ParseKeep(text)
	return err
}

// Type implements the value of a flag.
func (*Keep) Type() string { return "DAYS" }

// Since returns the time back to which data is kept; zero: all of it is.
func (k Keep) Since(now time.Time) time.Time {
	if k == Forever {
		return time.Time{}
	}
	return now.Add(-time.Duration(k))
}

const (
	interval = 10 * time.Minute
	batch    = 1_000 // rows that a transaction deletes
)

// Files is personal data outside of the database.
type Files interface {
	// Name describes them.
	Name() string
	// Forget deletes what is due, or counts it if check is set, and returns the number of records.
	Forget(ctx context.Context, t personal.Times, check bool) (int64, error)
}

// Options configures [New].
type Options struct {
	Store *personal.Store
	Files []Files
	Keep  Keep
	Log   *slog.Logger
	Now   func() time.Time // nil: time.Now
	// Rooms returns how far the rooms' time is ahead of this machine's clock, and the jump of the database's clock that
	// they do not follow; 0: none. nil: rooms do not run here.
	Rooms func() (ahead, step time.Duration)
	// Settled is how long this machine's clock must go without a jump before Run deletes; 0: [personal.Settled],
	// negative: it does at once.
	Settled time.Duration
}

// Job deletes personal data. Of the servers of a database, one at a time does.
type Job struct {
	o Options

	mu      sync.Mutex
	deleted map[string]uint64
	failing time.Time // since when; zero: the latest run worked
}

// New returns the job of a server.
func New(o Options) *Job {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rooms == nil {
		o.Rooms = func() (ahead, step time.Duration) { return 0, 0 }
	}
	if o.Settled == 0 {
		o.Settled = personal.Settled
	}
	return &Job{o: o, deleted: map[string]uint64{}}
}

// Run deletes what is due every ten minutes, until ctx ends. It leaves a round out if a clock may be wrong.
func (j *Job) Run(ctx context.Context) {
	steady := personal.NewSteady()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	j.o.Log.Info("expired personal data is deleted every ten minutes, once the clock has been steady", "for", j.o.Settled)
	for {
		j.round(ctx, steady)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// round deletes what is due, unless a clock may be wrong.
func (j *Job) round(ctx context.Context, steady *personal.Steady) {
	if _, step := j.o.Rooms(); steady.For() < j.o.Settled || step != 0 {
		return
	}
	if err := j.Delete(ctx); err != nil && ctx.Err() == nil {
		j.o.Log.Error("cannot delete expired personal data: the next attempt is in ten minutes", "err", err)
	}
}

// Due is personal data that is due.
type Due struct {
	Name  string // of the table or the files
	Holds string
	Count int64
	Kept  bool // with names blanked
}

// Preview counts what Delete would delete now.
func (j *Job) Preview(ctx context.Context) (list []Due, err error) {
	times, err := j.Times(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range Rules {
		if r.Due == "" {
			continue
		}
		n, err := j.o.Store.Count(ctx, &r, times)
		if err != nil {
			return nil, err
		}
		list = append(list, Due{r.Table, r.Holds, n, r.Blank != ""})
	}
	for _, f := range j.o.Files {
		n, err := f.Forget(ctx, times, true)
		if err != nil {
			return nil, err
		}
		list = append(list, Due{f.Name(), "", n, false})
	}
	return list, nil
}

// Delete deletes what is due, in small batches. What a run does not get to is left to the next one.
func (j *Job) Delete(ctx context.Context) error {
	times, err := j.Times(ctx)
	if err == nil {
		err = j.delete(ctx, times)
	}
	if errors.Is(err, personal.ErrBusy) {
		err = nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.failing = time.Time{}
	case j.failing.IsZero():
		j.failing = j.o.Now()
	}
	return err
}

func (j *Job) delete(ctx context.Context, times personal.Times) error {
	var errs []error
	for _, r := range Rules {
		if r.Due == "" {
			continue
		}
		n, err := j.apply(ctx, &r, times)
		j.count(r.Table, n)
		if errors.Is(err, personal.ErrBusy) || ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
	}
	for _, f := range j.o.Files {
		n, err := f.Forget(ctx, times, false)
		j.count(f.Name(), n)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (j *Job) apply(ctx context.Context, r *personal.Rule, times personal.Times) (total int64, err error) {
	for {
		n, err := j.o.Store.Forget(ctx, r, times, batch)
		if total += n; err != nil || n < batch {
			return total, err
		}
	}
}

// count adds to what was deleted, and logs it.
func (j *Job) count(name string, n int64) {
	if n == 0 {
		return
	}
	j.mu.Lock()
	j.deleted[name] += uint64(n) //nolint:gosec // a number of rows
	j.mu.Unlock()
	j.o.Log.Info("deleted expired personal data", "table", name, "rows", n)
}

// Times returns the times that rules compare with now. They are of the earliest of three clocks: this machine's, the
// database's and the rooms'. A single one that is ahead deletes nothing before its time.
func (j *Job) Times(ctx context.Context) (personal.Times, error) {
	now, err := j.o.Store.Now(ctx)
	if err != nil {
		return personal.Times{}, err
	}
	own := j.o.Now()
	ahead, _ := j.o.Rooms()
	for _, other := range []time.Time{own, own.Add(ahead)} {
		if other.Before(now) {
			now = other
		}
	}
	return personal.Times{Since: j.o.Keep.Since(now), Now: now}, nil
}

// Deleted returns how many rows were deleted since the start, by table.
func (j *Job) Deleted() map[string]uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := map[string]uint64{}
	for _, r := range Rules {
		if r.Due != "" {
			all[r.Table] = j.deleted[r.Table]
		}
	}
	for _, f := range j.o.Files {
		all[f.Name()] = j.deleted[f.Name()]
	}
	return all
}

// Failing returns how long the job has not worked; 0: it works.
func (j *Job) Failing() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failing.IsZero() {
		return 0
	}
	return j.o.Now().Sub(j.failing)
}

// Package bucket stores marks in object storage by the S3 protocol, where they survive the loss of the database and of
// all data directories together.
//
//	PREFIX/SLUG/KEY        the mark of a log, as one line of package mark; the log of rooms has the slug _rooms
//	PREFIX/SLUG/KEY.NODE   the same as seen by one node, where the store ignores If-Match
//	PREFIX/probe           an object for trials
//
// A mark never replaces a higher one: each write names the ETag of the object that it replaces, and a node reads a
// log's object before its first write. Where the store ignores that condition, each node has objects of its own, and
// the highest counts.
//
// Writes happen once a second, in the background, and only for logs that have grown. The first sight of a mark that
// another process wrote, and one every ten seconds after that, is compared with the database. A mark that the database
// does not continue is never overwritten.
package bucket

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/mark"
)

const (
	turnInterval    = time.Second
	probeInterval   = 30 * time.Second // after the latest answer, so that an outage is noticed in quiet times too
	compareInterval = 10 * time.Second // between comparisons of one log's marks from other processes
	firstTimeout    = 5 * time.Second  // of everything that a start reads
	logTimeout      = 3 * time.Second  // of an exchange about one log
	closeTimeout    = 2 * time.Second
	maxRequests     = 8 // at once
	maxTries        = 4 // of a write that others overtake
)

// ErrAway is returned while the store does not answer.
var ErrAway = errors.New("the object storage of marks does not answer")

// Check compares a mark from the store with the database. If the database does not continue it, Check holds the room
// and reports false. An error means that they could not be compared.
type Check = func(ctx context.Context, log mark.Log, m pglog.Mark) (continues bool, err error)

// Bucket stores marks. It is safe for concurrent use.
type Bucket struct {
	store *store
	log   *slog.Logger

	mu       sync.Mutex // guards the fields below
	logs     map[mark.Log]*entry
	found    map[string]bool // rooms with a mark at the start; nil: not listed yet
	away     time.Time       // since when the store has not answered; zero: it answers
	answered time.Time       // when the store last answered
}

// entry is what is known of one log's object.
type entry struct {
	exchange sync.Mutex // held during exchanges about the log
	state               // guarded by the bucket's mutex
}

type state struct {
	want      pglog.Mark // to be stored; zero: nothing
	has       object     // the stored one, as far as is known
	isRead    bool       // has is known
	isRefused bool       // the database does not continue the stored mark: it must not be overwritten
	compared  time.Time  // when a stored mark was last compared with the database
	since     time.Time  // since when the store lacks want, or has not been read; zero: neither
	isBroken  bool       // the object holds no mark, and that has been logged
}

// Open returns the bucket of a URL such as s3://bucket/prefix, for a node. If the store does not answer, the bucket
// keeps trying in [Bucket.Run].
func Open(ctx context.Context, url, node string, log *slog.Logger) (*Bucket, error) {
	s, err := openStore(url, node)
	if err != nil {
		return nil, err
	}
	b := &Bucket{store: s, log: log, logs: map[mark.Log]*entry{}}
	ctx, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	b.note(ctx, b.begin(ctx))
	return b, nil
}

// begin tries what the store can do, and lists the rooms that have marks.
func (b *Bucket) begin(ctx context.Context) error {
	b.mu.Lock()
	isListed := b.found != nil
	b.mu.Unlock()
	if isListed {
		return b.store.probe(ctx)
	}
	if err := b.store.probe(ctx); err != nil {
		return err
	}
	slugs, err := b.store.slugs(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = slugs
	return nil
}

// note notes the result of an exchange, and logs when the store stops or begins to answer.
func (b *Bucket) note(ctx context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		if !b.away.IsZero() {
			b.log.Info("object storage of marks answers again", "away", time.Since(b.away).Round(time.Millisecond))
		}
		b.away, b.answered = time.Time{}, time.Now()
	case errors.Is(context.Cause(ctx), context.Canceled):
		return // this process stops
	case b.away.IsZero():
		b.away = time.Now()
		b.log.Error("object storage of marks does not answer: after the loss of the database and all data directories, "+
			"servers may not notice that entries are missing", "err", err)
	}
}

// Away returns how long the store has not answered; 0: it answers.
func (b *Bucket) Away() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away.IsZero() {
		return 0
	}
	return time.Since(b.away)
}

// Lag returns how long the store has lacked the oldest mark that waits for it, or has not been read about a log.
func (b *Bucket) Lag() (most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.logs {
		if !e.since.IsZero() {
			most = max(most, time.Since(e.since))
		}
	}
	return most
}

// Slugs returns the rooms of which the store had marks at the start.
func (b *Bucket) Slugs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.found))
}

// Put has the mark of a log stored within about a second. It does not wait.
func (b *Bucket) Put(log mark.Log, m pglog.Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(log)
	if e.isRefused || m.Size <= max(e.want.Size, e.has.Size) {
		return
	}
	e.want = m
	if e.since.IsZero() {
		e.since = time.Now()
	}
}

// entry returns the entry of a log. The caller holds the mutex.
func (b *Bucket) entry(log mark.Log) *entry {
	e := b.logs[log]
	if e == nil {
		e = &entry{}
		b.logs[log] = e
	}
	return e
}

// Get returns the stored mark of a log, for the caller to compare; zero: there is none. If the store does not answer,
// the mark is compared as soon as it does.
func (b *Bucket) Get(ctx context.Context, log mark.Log) (pglog.Mark, error) {
	b.mu.Lock()
	e, isAway := b.entry(log), !b.away.IsZero()
	b.mu.Unlock()
	if isAway {
		b.await(e)
		return pglog.Mark{}, ErrAway
	}
	e.exchange.Lock()
	defer e.exchange.Unlock()
	if b.Away() > 0 { // as the exchange before has found out
		b.await(e)
		return pglog.Mark{}, ErrAway
	}
	limited, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	o, err := b.store.read(limited, log)
	if !errors.Is(err, errBroken) {
		b.note(ctx, err)
	}
	if err != nil {
		b.await(e)
		return pglog.Mark{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// What waits to be stored may be of a history that the caller is about to refuse. If not, the caller puts it again.
	e.state = state{has: o, isRead: true, compared: time.Now()}
	return o.Mark, nil
}

// await has a log read and compared when the store answers.
func (b *Bucket) await(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.isRead, e.compared = false, time.Time{}
	if e.since.IsZero() {
		e.since = time.Now()
	}
}

// Run stores marks until ctx is done.
func (b *Bucket) Run(ctx context.Context, check Check) {
	ticker := time.NewTicker(turnInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.turn(ctx, check)
		case <-ctx.Done():
			return
		}
	}
}

// Close stores the marks that wait, after Run has returned. Those of logs that were never read are left out.
func (b *Bucket) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if b.Away() > 0 { // which has been logged
		return nil
	}
	b.turn(ctx, func(context.Context, mark.Log, pglog.Mark) (bool, error) { return false, context.Canceled })
	return nil
}

// turn stores all marks that wait.
func (b *Bucket) turn(ctx context.Context, check Check) {
	b.mu.Lock()
	waiting := map[mark.Log]*entry{}
	for log, e := range b.logs {
		if !e.since.IsZero() {
			waiting[log] = e
		}
	}
	hasBegun, isQuiet := b.found != nil && b.away.IsZero(), time.Since(b.answered) > probeInterval
	b.mu.Unlock()
	if !hasBegun || isQuiet && len(waiting) == 0 {
		limited, cancel := context.WithTimeout(ctx, firstTimeout)
		err := b.begin(limited)
		b.note(limited, err)
		cancel()
		if err != nil {
			return
		}
	}
	var storing errgroup.Group
	storing.SetLimit(maxRequests)
	for log, e := range waiting {
		storing.Go(func() error {
			if b.Away() == 0 { // otherwise it waits for the next turn
				b.exchange(ctx, log, e, check)
			}
			return nil
		})
	}
	_ = storing.Wait()
}

// exchange reads and stores the mark of one log.
func (b *Bucket) exchange(ctx context.Context, log mark.Log, e *entry, check Check) {
	e.exchange.Lock()
	defer e.exchange.Unlock()
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	for range maxTries { // others may write between a read and a write
		b.mu.Lock()
		now := e.state
		b.mu.Unlock()
		if !now.isRead {
			if !b.catchUp(ctx, log, e, check) {
				return
			}
			continue
		}
		if now.isRefused || now.want.Size <= now.has.Size {
			break
		}
		etag, err := b.store.write(ctx, log, now.want, now.has.etag)
		isOvertaken := errors.Is(err, errOvertaken)
		if !isOvertaken {
			b.note(ctx, err)
		}
		if err != nil && !isOvertaken {
			return
		}
		b.mu.Lock()
		if e.isRead = !isOvertaken; e.isRead {
			e.has, e.since = object{now.want, etag}, time.Now() // of what was put meanwhile
		}
		b.mu.Unlock()
		if !isOvertaken {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.isRead && (e.isRefused || e.want.Size <= e.has.Size) {
		e.since = time.Time{}
	}
}

// catchUp reads the stored mark of a log, and compares it with the database. It reports whether that worked.
func (b *Bucket) catchUp(ctx context.Context, log mark.Log, e *entry, check Check) bool {
	o, err := b.store.read(ctx, log)
	isBroken := errors.Is(err, errBroken)
	if !isBroken {
		b.note(ctx, err)
	}
	b.mu.Lock()
	isNews := isBroken && !e.isBroken
	e.isBroken = isBroken
	isDue := !o.IsZero() && time.Since(e.compared) > compareInterval
	b.mu.Unlock()
	if isNews {
		b.log.Error("cannot read a mark in object storage: remove the object to have it written again", "err", err)
	}
	if err != nil {
		return false
	}
	continues := true
	if isDue {
		if continues, err = check(ctx, log, o.Mark); err != nil {
			b.log.Debug("cannot compare a mark in object storage yet", "room", log.Slug, "err", err)
			return false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e.has, e.isRead, e.isRefused = o, true, !continues
	if isDue {
		e.compared = time.Now()
	}
	return true
}

// Package sequence appends to the transcript of a room, and keeps the room's projection up to date.
//
// Each loaded room has one [Sequencer]. Only its goroutine appends and changes the projection. The next batch
// collects while one commits, so batches grow with the load, and a join at low load does not wait. Several nodes
// may run the same room: the database's row lock decides which node appends, and a node reads the entries of other
// nodes before it builds its own.
//
// Readers see the projection, through a [View], as of the latest durable entry. When an append fails, the
// entries applied in memory may not be stored: the node takes them back or reloads the room from its log, looks
// up the joins that were in progress, and repeats those that are missing. A visitor notices only the delay.
//
// Only database outages are retried. When the rules refuse an entry, only the request or duty behind it fails; a
// failed duty is logged, and everything else continues. A log that does not match its own root is reported as an
// error, and checked again at most once a second.
package sequence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/regression"
)

var (
	// ErrClosed is returned when a room accepts no more joins: its last window has closed, or it has ended.
	ErrClosed = errors.New("the room takes no more visitors")
	// ErrFull is returned when the line has reached its limit.
	ErrFull = errors.New("the line is full for now")
	// ErrBusy is returned when the queue of joins is full.
	ErrBusy = errors.New("too many visitors at the moment")
	// ErrStopping is returned while the server shuts down.
	ErrStopping = errors.New("the server is stopping")

	// ErrRefused is returned when the rules refuse an arrival that they had just offered: a bug, not the
	// visitor's fault.
	ErrRefused = errors.New("the rules refuse an entry that they proposed")
)

// EarlyError is returned when a room is joined before it opens.
type EarlyError struct{ Wait time.Duration }

// Error implements error.
func (e *EarlyError) Error() string {
	wait := max(e.Wait, 1) + time.Second - 1 // a part of a second counts as one
	return fmt.Sprintf("the room opens in %s", wait.Truncate(time.Second))
}

// Evidence provides what draws need, and learns when the rules refuse it.
type Evidence interface {
	projection.Evidence
	// Refuse notes that the rules refuse a draw because of its cosignatures.
	Refuse(p fairness.Pending)
}

// Options configures [New].
type Options struct {
	ID       uuid.UUID
	Slug     string
	Origin   string
	Keys     *keys.Keys
	Store    *pglog.Store
	Log      *slog.Logger
	Guard    *regression.Guard
	Controls *projection.Controls
	Evidence Evidence
	Meter    *meter.Meter
	Tracer   *traces.Tracer // nil: appends are not traced
	// IsFull reports whether the organizer's limit stops visitors from joining.
	IsFull func(fairness.Counts) bool
	// Consult holds the room if a witness has seen more or different entries than its log, which is new to this node.
	Consult func(ctx context.Context, p *projection.Projection)
	// Restore restores what the database has lost besides entries.
	Restore func(context.Context) error
	// Changed is called by the goroutine that appends when readers see new entries.
	Changed func(context.Context)
}

// Sequencer appends to one room's transcript. It is safe for concurrent use.
type Sequencer struct {
	o         Options
	view      View
	queue     queue
	done      chan struct{} // closed when Run has ended
	isSuspect atomic.Bool   // the database's log differs, or another node holds the room: Run must check
	took      atomic.Int64  // duration of the latest append, in nanoseconds
	backlog   backlog
	retry     chan struct{} // capacity 1: an append that failed may be tried again at once

	// Run alone uses these.
	entries  *pglog.Log
	root     func() audit.Hash // root of entries; kept to save an allocation per entry
	chunk    int               // assignments per append
	isLost   bool              // the projection differs from the stored log
	isUndone bool              // a duty failed, and the failure has been logged

	unpublished time.Time // when the published checkpoint fell behind; zero: it is current; only Follow uses it
}

// New returns the sequencer of a room that is not loaded yet.
func New(o Options) *Sequencer {
	return &Sequencer{
		o: o, queue: newQueue(), done: make(chan struct{}), retry: make(chan struct{}, 1), chunk: minChunk,
	}
}

// View returns the room as readers see it.
func (s *Sequencer) View() *View { return &s.view }

// Arrived is the answer to a join.
type Arrived struct {
	fairness.Standing
	Again bool            // the ticket had joined before
	Batch *pglog.Appended // holds the entry; nil when it was already in the log
}

// Join appends an arrival in a lane of the policy, for a number of seats that it allows, with credentials that
// [door.Check] has returned, and returns once it is durable. Errors: [*EarlyError], [ErrClosed], [ErrFull], those of
// package door, [ErrBusy], [ErrStopping], and that of ctx.
func (s *Sequencer) Join(ctx context.Context, t fairness.Ticket, lane fairness.Lane, seats uint32,
	shown []projection.Verified) (Arrived, error) {
	j := &join{ctx: s.wait(ctx), ticket: t, lane: lane, seats: seats, shown: shown, done: make(chan struct{})}
	if err := s.queue.join(j); err != nil {
		return Arrived{}, err
	}
	select {
	case <-j.done:
		return j.result, j.err
	case <-ctx.Done():
		return Arrived{}, fmt.Errorf("join: %w", ctx.Err())
	}
}

// Do waits until the entries of a change are durable or refused.
func (s *Sequencer) Do(ctx context.Context, change Change) error {
	c := &command{ctx: s.wait(ctx), change: change, done: make(chan error, 1)}
	if err := s.queue.command(c); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadLatest waits until this node has read everything that other nodes have appended by now.
func (s *Sequencer) ReadLatest(ctx context.Context) error {
	return s.Do(ctx, func(*projection.Projection, fairness.Time) ([]fairness.Entry, error) { return nil, nil })
}

// Wake makes the sequencer read what other nodes appended, and take a new snapshot.
func (s *Sequencer) Wake() { s.queue.signal() }

// WakeDue makes the sequencer append the entries that are due.
func (s *Sequencer) WakeDue() { s.queue.duties() }

// Suspect makes the sequencer compare its projection with the database's log.
func (s *Sequencer) Suspect() {
	s.isSuspect.Store(true)
	s.queue.signal()
}

// Stop refuses further work. Run ends when the queue is empty, and all refused joins are stated.
func (s *Sequencer) Stop() {
	if !s.o.Controls.Refusals.IsNone() {
		rest := func(p *projection.Projection, now fairness.Time) (list []fairness.Entry, _ error) {
			for _, e := range p.NextRefused(now, true) {
				list = append(list, &e)
			}
			return list, nil
		}
		c := &command{ctx: context.Background(), change: rest, done: make(chan error, 1)}
		_ = s.queue.command(c) // fails if it is stopped already
	}
	s.queue.stop()
}

// Done is closed when Run has ended.
func (s *Sequencer) Done() <-chan struct{} { return s.done }

// Queued returns the number of requests that wait for an append.
func (s *Sequencer) Queued() int { return s.queue.length() }

// Took returns how long the latest append of this node took; 0 before the first.
func (s *Sequencer) Took() time.Duration { return time.Duration(s.took.Load()) }

// Stored returns how long ago this node stored something, or found nothing due, if ever.
func (s *Sequencer) Stored() (ago time.Duration, ever bool) {
	_, ago, ever = s.backlog.look()
	return ago, ever
}

// Stuck returns how long this node has failed to store what the room has to store; 0 if it has not, or not
// for long.
func (s *Sequencer) Stuck() time.Duration {
	if stuck, _, _ := s.backlog.look(); stuck >= stuckAfter {
		return stuck
	}
	return 0
}

// publishDelay is how long the published checkpoint may lack entries.
const publishDelay = 500 * time.Millisecond

// Follow wakes the sequencer if there is something to read or to do, and reports whether the room's state is
// known, and whether its newest checkpoint should be published. durable is the size of the view before the head
// was queried, and asked when that was, by this machine's clock.
func (s *Sequencer) Follow(h pglog.Head, durable uint64, asked time.Time,
	now fairness.Time) (isKnown, lags bool) {
	if h.Size < durable || h.Held || s.o.Guard.Regression() != nil {
		s.Suspect()
		return false, false
	}
	isBehind, isDue := s.view.compare(h.Size, now)
	if !isBehind {
		s.view.note(asked)
	}
	if isDue {
		s.backlog.begin()
		s.queue.duties()
	}
	if isBehind && !s.backlog.isBusy() { // an append reads them anyway
		s.queue.signal()
	}
	switch {
	case h.Published == h.Size:
		s.unpublished = time.Time{}
	case s.unpublished.IsZero():
		s.unpublished = time.Now()
	case time.Since(s.unpublished) >= publishDelay:
		s.unpublished = time.Time{}
		return true, true
	}
	return true, false
}

// How long a reader waits until this node has read the entries to show, and how often it checks. A node is at most
// one tick behind the others.
const (
	coverTimeout  = 3 * time.Second
	coverInterval = 10 * time.Millisecond
)

// Cover waits until this node has marked the log up to size, which it is about to show. Errors:
// [*regression.Regression], [ErrBusy], and that of ctx.
func (s *Sequencer) Cover(ctx context.Context, size uint64) error {
	for end := time.Now().Add(coverTimeout); ; {
		if err := s.o.Guard.Err(); err != nil {
			return err
		}
		if s.view.Size() >= size {
			return nil
		}
		if time.Now().After(end) {
			return ErrBusy
		}
		s.queue.signal()
		if !timing.Sleep(ctx, coverInterval) {
			return ctx.Err()
		}
	}
}

// CoverSigned does what Cover does, for the size in a signed checkpoint.
func (s *Sequencer) CoverSigned(ctx context.Context, signed []byte) error {
	size, err := sizeOf(signed)
	if err != nil {
		return err
	}
	return s.Cover(ctx, size)
}

// PublishedSize returns the size of the published checkpoint; 0: none.
func (s *Sequencer) PublishedSize(ctx context.Context) (uint64, error) {
	signed, err := s.o.Store.Checkpoint(ctx, s.o.ID)
	if errors.Is(err, pglog.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return sizeOf(signed)
}

// sizeOf returns the size in a signed checkpoint of our own.
func sizeOf(signed []byte) (uint64, error) {
	text, _, _ := strings.Cut(string(signed), "\n\n")
	c, err := audit.ParseCheckpoint(text + "\n")
	return c.Size, err
}

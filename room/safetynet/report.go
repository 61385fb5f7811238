package safetynet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/sequence"
	"github.com/proofline/proofline/room/session"
)

// Limits of connectors' reports.
const (
	MaxSessions       = 2_000   // unqueued sessions of a kind in one report
	MaxFailOpen       = 100     // fail-open intervals in one report
	maxBatchSessions  = 20_000  // sessions stored in one batch, approximately
	maxQueuedReports  = 5_000   // reports in the queue
	maxQueuedSessions = 400_000 // sessions in the queued reports, approximately
	storeTimeout      = 5 * time.Second
	// the pause between batches, as a multiple of the time the last one took
	pauseFactor = 3
	maxPause    = 250 * time.Millisecond // longest such pause
)

// Report is what one node of a site reports to a room. A connector may resend a report that got no response,
// even with additions.
type Report struct {
	Node   uuid.UUID // random, chosen by the connector's process
	Shares bool      // the site uses the room as a safety net, so the node gets a share of unqueued sessions
	// Unqueued sessions that began, had activity, or were ended by the site.
	Started, Active, Ended []uuid.UUID
	TurnedAway             uint64 // visitors sent to the line because the node's share was used up
	FailOpen               []pgroom.FailOpen
}

// Reported is what a node follows until its next report.
type Reported struct {
	Gate     projection.Gate // open or shut
	Share    uint64
	Outflow  fairness.Outflow
	Nodes    uint64        // number of nodes that share the remaining outflow
	Session  time.Duration // how long an unqueued session lasts after each activity
	Recorded []uuid.UUID   // fail-open intervals that are in the transcript
	// sessions that a site ended in the last 30 s, latest first, at most [MaxSessions]; read-only
	Ended []uuid.UUID
}

// Report stores a report and returns how many unqueued sessions may begin on the node until its next one.
// Errors: [*invalid.Error] for a report over the limits, those of the sequencer, such as
// [sequence.ErrBusy], and those of the database.
func (n *Net) Report(ctx context.Context, in Report) (Reported, error) {
	if err := in.check(); err != nil {
		return Reported{}, err
	}
	out := Reported{Session: n.o.Session}
	var err error
	if len(in.FailOpen) > 0 {
		if out.Recorded, err = n.takeFailOpen(ctx, in.FailOpen); err != nil {
			return Reported{}, err
		}
	}
	var stored result
	if in.Shares || in.size() > 0 {
		if stored, err = n.reports.add(ctx, &in); err != nil {
			return Reported{}, err
		}
	}
	if out.Ended, err = n.ended.list(ctx); err != nil {
		return Reported{}, err
	}
	s := n.o.Status()
	out.Outflow, out.Nodes, out.Gate = s.Outflow, max(stored.nodes, 1), projection.GateShut
	if s.Gate == projection.GateOpen {
		out.Gate = projection.GateOpen
		if in.Shares {
			out.Share = (stored.left + out.Nodes - 1) / out.Nodes
		}
	}
	return out, nil
}

// size returns the number of sessions in the report.
func (in *Report) size() int { return len(in.Started) + len(in.Active) + len(in.Ended) }

func (in *Report) check() error {
	if n := max(len(in.Started), len(in.Active), len(in.Ended)); n > MaxSessions {
		return invalid.Field("", fmt.Sprintf("names %d sessions: send at most %d of a kind", n,
			MaxSessions))
	}
	if n := len(in.FailOpen); n > MaxFailOpen {
		return invalid.Field("fail_open", fmt.Sprintf("has %d intervals: send at most %d", n, MaxFailOpen))
	}
	return nil
}

// result is the result of storing a report.
type result struct {
	left, nodes uint64
	err         error
}

// reportBatcher collects the reports of a room while the database stores a batch: the more reports there are,
// the less each costs. It is safe for concurrent use.
type reportBatcher struct {
	store func(context.Context, []pendingReport) result // stores a batch

	mu        sync.Mutex // guards the fields below
	waiting   []pendingReport
	sessions  int // number of sessions in the waiting reports
	isRunning bool
}

// pendingReport is a report in the queue.
type pendingReport struct {
	*Report
	done chan result // buffered
}

// add stores a report and returns what is left of the outflow. Errors: [sequence.ErrBusy], those of the database, and
// that of ctx; the report is stored even if ctx ends first.
func (b *reportBatcher) add(ctx context.Context, in *Report) (result, error) {
	r := pendingReport{in, make(chan result, 1)}
	b.mu.Lock()
	if len(b.waiting) >= maxQueuedReports || b.sessions >= maxQueuedSessions {
		b.mu.Unlock()
		return result{}, sequence.ErrBusy
	}
	b.waiting, b.sessions = append(b.waiting, r), b.sessions+in.size()
	if !b.isRunning {
		b.isRunning = true
		go b.run(context.WithoutCancel(ctx))
	}
	b.mu.Unlock()
	select {
	case stored := <-r.done:
		return stored, stored.err
	case <-ctx.Done():
		return result{}, fmt.Errorf("take report: %w", ctx.Err())
	}
}

// run stores batches until no report waits.
func (b *reportBatcher) run(ctx context.Context) {
	for {
		batch := b.next()
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		stored := b.store(ctx, batch)
		for _, r := range batch {
			r.done <- stored
		}
		time.Sleep(min(pauseFactor*time.Since(began), maxPause)) // a count takes longer the more sessions there are
	}
}

// next removes a batch from the queue. An empty batch ends the run.
func (b *reportBatcher) next() []pendingReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, sessions := 0, 0
	for n < len(b.waiting) && (n == 0 || sessions < maxBatchSessions) {
		sessions += b.waiting[n].size() + 1
		b.sessions -= b.waiting[n].size()
		n++
	}
	batch := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.isRunning = n > 0
	return batch
}

// storeBatch stores a batch in one statement.
func (n *Net) storeBatch(ctx context.Context, batch []pendingReport) result {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	reports, isTurnedAway := merge(batch, n.o.Unqueued.Counts())
	reports.Length = n.o.Session.Milliseconds()
	reports.MaxLength = session.MaxLengths * reports.Length
	n.o.Unqueued.Expect()
	counts, err := n.o.Store.AddReports(ctx, n.o.Room, reports)
	if err != nil {
		return result{err: err}
	}
	left := n.Take(projection.Count{UnqueuedCounts: projection.UnqueuedCounts(counts), At: millis.Of(n.o.Clock.Now()),
		IsTurnedAway: isTurnedAway, Reads: projection.AnyReads})
	return result{left: left, nodes: counts.Nodes}
}

// merge merges a batch, and reports whether visitors were sent to the line. It drops new sessions of a room that
// has too many: its gate is shut, or about to be.
func merge(batch []pendingReport, known projection.UnqueuedCounts) (all pgroom.Reports, isTurnedAway bool) {
	for _, r := range batch {
		if r.Shares {
			all.Nodes = append(all.Nodes, r.Node)
		}
		if !known.IsOverfull() {
			all.Started = append(all.Started, r.Started...)
		}
		all.Active, all.Ended = append(all.Active, r.Active...), append(all.Ended, r.Ended...)
		isTurnedAway = isTurnedAway || r.TurnedAway > 0
	}
	return all, isTurnedAway
}

package room

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/pgroom"
)

// Limits of connectors' reports.
const (
	MaxTold     = 2_000   // unqueued sessions of a kind in one report
	MaxFailOpen = 100     // fail-open intervals in one report
	toldMost    = 20_000  // sessions stored in one batch, approximately
	heardMost   = 5_000   // reports in the queue
	waitMost    = 400_000 // sessions in the queued reports, approximately
	tellTimeout = 5 * time.Second
	tellPause   = 3                      // the pause between batches, as a multiple of the time that the database took
	tellRest    = 250 * time.Millisecond // maximum pause
)

// Report is what one node of a site reports to a room. A report without a response may be sent again, also
// with additions.
type Report struct {
	Node   uuid.UUID // random, chosen by the connector's process
	Shares bool      // the room is in mode safety-net at this site: the node takes its share of the sessions that may begin
	// Unqueued sessions that began, had activity, or were ended by the site.
	Started, Active, Ended []uuid.UUID
	Turned                 uint64 // visitors sent to the line because the node's share was used up
	FailOpen               []pgroom.FailOpen
}

// Reported is what a node follows until its next report.
type Reported struct {
	Gate     Gate // open or shut
	Share    uint64
	Outflow  fairness.Outflow
	Nodes    uint64        // number of nodes that share the rest of the outflow
	Session  time.Duration // how long an unqueued session lasts after each activity
	Recorded []uuid.UUID   // fail-open intervals that are in the transcript
	Over     []uuid.UUID   // sessions that a site ended in the last 30 s, latest first, at most MaxTold; read-only
}

// Report stores a report and returns how many unqueued sessions may begin on the node until its next one.
// Errors: [*invalid.Error] for a report over the limits, [ErrBusy], [ErrStopping], and those of the database.
func (r *Room) Report(ctx context.Context, in Report) (Reported, error) {
	r.touch()
	if err := in.check(); err != nil {
		return Reported{}, err
	}
	out := Reported{Session: r.session()}
	var err error
	if len(in.FailOpen) > 0 {
		if out.Recorded, err = r.takeFailOpen(ctx, in.FailOpen); err != nil {
			return Reported{}, err
		}
	}
	var told heard
	if in.Shares || in.size() > 0 {
		if told, err = r.ear.tell(ctx, r, &in); err != nil {
			return Reported{}, err
		}
	}
	if out.Over, err = r.over(ctx); err != nil {
		return Reported{}, err
	}
	s := r.Snapshot()
	out.Outflow, out.Nodes, out.Gate = s.Outflow, max(told.nodes, 1), GateShut
	if s.Gate == GateOpen {
		out.Gate = GateOpen
		if in.Shares {
			out.Share = (told.left + out.Nodes - 1) / out.Nodes
		}
	}
	return out, nil
}

// size returns the number of sessions in the report.
func (in *Report) size() int { return len(in.Started) + len(in.Active) + len(in.Ended) }

func (in *Report) check() error {
	if most := max(len(in.Started), len(in.Active), len(in.Ended)); most > MaxTold {
		return invalid.Field("", fmt.Sprintf("names %d sessions, and at most %d of a kind are taken at once", most, MaxTold))
	}
	if n := len(in.FailOpen); n > MaxFailOpen {
		return invalid.Field("fail_open", fmt.Sprintf("has %d times, and at most %d are taken at once", n, MaxFailOpen))
	}
	return nil
}

// heard is the result of storing a report.
type heard struct {
	left, nodes uint64
	err         error
}

// ear collects the reports of a room while the database stores a batch: the more reports there are, the less
// each costs. The zero value is ready to use.
type ear struct {
	mu       sync.Mutex // guards all below
	waiting  []telling
	told     int // sessions in the waiting reports
	isAtWork bool
}

// telling is a report in the queue.
type telling struct {
	*Report
	done chan heard // buffered
}

// tell stores a report and returns what is left of the outflow. Errors: [ErrBusy], those of the database, and
// that of ctx; the report is stored even if ctx ends first.
func (e *ear) tell(ctx context.Context, r *Room, in *Report) (heard, error) {
	t := telling{in, make(chan heard, 1)}
	e.mu.Lock()
	if len(e.waiting) >= heardMost || e.told >= waitMost {
		e.mu.Unlock()
		return heard{}, ErrBusy
	}
	e.waiting, e.told = append(e.waiting, t), e.told+in.size()
	if !e.isAtWork {
		e.isAtWork = true
		go e.work(context.WithoutCancel(ctx), r)
	}
	e.mu.Unlock()
	select {
	case h := <-t.done:
		return h, h.err
	case <-ctx.Done():
		return heard{}, fmt.Errorf("take report: %w", ctx.Err())
	}
}

// work stores batches until no report waits.
func (e *ear) work(ctx context.Context, r *Room) {
	for {
		batch := e.next()
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		h := r.hear(ctx, batch)
		for _, t := range batch {
			t.done <- h
		}
		time.Sleep(min(tellPause*time.Since(began), tellRest)) // a count takes longer the more sessions there are
	}
}

// next removes a batch from the queue. An empty batch ends the work.
func (e *ear) next() []telling {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, told := 0, 0
	for n < len(e.waiting) && (n == 0 || told < toldMost) {
		told += e.waiting[n].size() + 1
		e.told -= e.waiting[n].size()
		n++
	}
	batch := e.waiting[:n:n]
	if e.waiting = e.waiting[n:]; len(e.waiting) == 0 {
		e.waiting = nil
	}
	e.isAtWork = n > 0
	return batch
}

// hear stores a batch in one statement.
func (r *Room) hear(ctx context.Context, batch []telling) heard {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	known, _, _, _ := r.flow.guests.look()
	news, turned := newsOf(batch, known)
	news.Length, news.Most = r.session().Milliseconds(), SessionsMost*r.session().Milliseconds()
	r.flow.guests.use()
	counts, err := r.flow.store.AddNews(ctx, r.ID, news)
	if err != nil {
		return heard{err: err}
	}
	left := r.takeFree(counts, turned, func(int) bool { return true })
	return heard{left: left, nodes: counts.Nodes}
}

// newsOf merges a batch, and reports whether visitors were sent to the line. It drops new sessions of a room
// that has reached maxFree: its gate is shut, or about to be.
func newsOf(batch []telling, known pgroom.Free) (news pgroom.News, turned bool) {
	for _, t := range batch {
		if t.Shares {
			news.Nodes = append(news.Nodes, t.Node)
		}
		if !isOverfull(known) {
			news.Started = append(news.Started, t.Started...)
		}
		news.Active, news.Ended = append(news.Active, t.Active...), append(news.Ended, t.Ended...)
		turned = turned || t.Turned > 0
	}
	return news, turned
}

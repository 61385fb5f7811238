package room

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Bounds of what connectors tell.
const (
	MaxTold      = 2_000   // free sessions of a kind in a report
	MaxUnguarded = 100     // unguarded times in a report
	toldMost     = 20_000  // sessions that are stored at once, about
	heardMost    = 5_000   // reports that wait
	waitMost     = 400_000 // sessions in them, about
	tellTimeout  = 5 * time.Second
	tellPause    = 3                      // times as long as the database took, before it is told more
	tellRest     = 250 * time.Millisecond // at most
)

// Report is what one node of a site tells of a room. A report that had no answer
// may come again, whole or with more.
type Report struct {
	Node   uuid.UUID // random, made by the process
	Shares bool      // the room is in mode safety-net there: the node takes part of what may begin
	// Started, Active and Ended are free sessions that began, in which somebody was
	// active, and that the site ended.
	Started, Active, Ended []uuid.UUID
	Turned                 uint64 // visitors led to the line because the node's share was used up
	Unguarded              []pgroom.Unguarded
}

// Reported is what a node goes by until its next report.
type Reported struct {
	Gate     Gate // open or shut
	Share    uint64
	Outflow  fairness.Outflow
	Nodes    uint64        // among which what is left is shared
	Session  time.Duration // how long a free session lasts from each activity on
	Recorded []uuid.UUID   // unguarded times that the transcript has
	Over     []uuid.UUID   // sessions that a site ended in the last 30 s, the latest first, at most MaxTold; not to be changed
}

// Report takes a report and says how many free sessions may begin on the node
// until the next one. Errors: [*InvalidError] for too much at once, [ErrBusy],
// [ErrStopping], and those of the database.
func (r *Room) Report(ctx context.Context, in Report) (Reported, error) {
	r.touch()
	if err := in.check(); err != nil {
		return Reported{}, err
	}
	out := Reported{Session: r.session()}
	var err error
	if len(in.Unguarded) > 0 {
		if out.Recorded, err = r.takeUnguarded(ctx, in.Unguarded); err != nil {
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

// size is how many sessions are told of.
func (in *Report) size() int { return len(in.Started) + len(in.Active) + len(in.Ended) }

func (in *Report) check() error {
	if most := max(len(in.Started), len(in.Active), len(in.Ended)); most > MaxTold {
		return &InvalidError{[]fairness.Problem{{Detail: fmt.Sprintf("names %d sessions, and at most %d of a kind are taken at once", most, MaxTold)}}}
	}
	if n := len(in.Unguarded); n > MaxUnguarded {
		return &InvalidError{[]fairness.Problem{{Field: "unguarded", Detail: fmt.Sprintf("has %d times, and at most %d are taken at once", n, MaxUnguarded)}}}
	}
	return nil
}

// heard is what is known once a report is stored.
type heard struct {
	left, nodes uint64
	err         error
}

// ear gathers the reports of a room that come while the database stores those
// before: the more there are, the less each costs. The zero value is ready.
type ear struct {
	mu       sync.Mutex // guards all below
	waiting  []telling
	told     int // sessions in them
	isAtWork bool
}

// telling is a report that is being stored.
type telling struct {
	*Report
	done chan heard // buffered
}

// tell has a report stored and counts what is left. Errors: those of the
// database, and of ctx; a report is stored even if nobody waits for it any more.
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

// work stores reports until none waits.
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
		time.Sleep(min(tellPause*time.Since(began), tellRest)) // to count takes longer the more sessions there are
	}
}

// next takes reports of a bounded number of sessions; none: the work is done.
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

// hear stores what was told, as one.
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

// newsOf returns what was told, and whether visitors were turned away. Of a room
// that has more sessions than can be counted none begin: its gate is shut, or is
// about to be.
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

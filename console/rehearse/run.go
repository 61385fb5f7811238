package rehearse

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Limits on the requests of synthetic visitors.
const (
	joinRate     = 200 // joins per second
	pollInterval = 500 * time.Millisecond
	retry        = time.Second // pause after a join or claim that the server was too busy to handle
)

// run is one rehearsal.
type run struct {
	owner  pgroom.Owner
	ctx    context.Context // done when the run is to end
	cancel context.CancelFunc
	done   chan struct{} // closed when the run is over
	joins  *rate.Limiter

	mu   sync.Mutex // guards the fields below
	room *room.Room // nil until it has been created
	now  Rehearsal
}

func newRun(ctx context.Context, owner pgroom.Owner) *run {
	r := &run{owner: owner, done: make(chan struct{}), joins: rate.NewLimiter(joinRate, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// begin sets the created room.
func (r *run) begin(made *room.Room, c room.Config, p Plan, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room = made
	r.now = Rehearsal{
		Slug: made.Slug, Title: c.Title, URL: made.URL, Org: r.owner.Org, Of: r.owner.RehearsalOf,
		Started: now, Opens: *c.Opens, Starts: *c.Starts, Ends: *c.Closes, Visitors: p.Visitors,
	}
}

func (r *run) state() Rehearsal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *run) isMade() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.room != nil
}

func (r *run) isOver() bool { return r.state().Over }

func (r *run) finish(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Over, r.now.Ends = true, now
	r.cancel()
	close(r.done)
}

// note updates the progress.
func (r *run) note(count func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.now.Progress)
}

// play runs all visitors, waits for the end, and ends the room.
func (r *run) play(rs *Rehearsals, guests []simulate.Guest) {
	var crowd sync.WaitGroup
	for _, g := range guests {
		crowd.Go(func() { r.visit(g) })
	}
	r.watch(rs.lingers)
	r.cancel()
	crowd.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := r.room.End(ctx); err != nil {
		rs.log.Error("cannot end rehearsal", "room", r.room.Slug, "err", err)
	}
}

// watch returns when the run is stopped, the room has ended, the time is up, or all visitors are
// done and the line has been empty for lingers.
func (r *run) watch(lingers time.Duration) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	quiet := time.Now() // start of the time with an empty line
	for {
		select {
		case <-ticker.C:
		case <-r.ctx.Done():
			return
		}
		now, snapshot := r.state(), r.room.Snapshot()
		n := snapshot.Counts
		busy := now.through() < now.Visitors || n.Admitted+n.NoShows+n.Left+n.Revoked < n.Arrivals
		if busy {
			quiet = time.Now()
		}
		if snapshot.Ended || time.Now().After(now.Ends) || !busy && time.Since(quiet) >= lingers {
			return
		}
	}
}

// sleep waits, and reports whether the run goes on.
func (r *run) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// visit plays one visitor, from before the arrival to the end of the session.
func (r *run) visit(g simulate.Guest) {
	opens := r.state().Opens
	if !r.sleep(opens.Add(time.Duration(g.Arrives)).Sub(r.room.Now())) {
		return
	}
	var secret [fairness.SecretSize]byte
	_, _ = rand.Read(secret[:]) // never fails
	ticket := fairness.NewTicket(r.room.Origin, secret)
	if !r.join(ticket) {
		return
	}
	if !r.wait(ticket, secret, time.Duration(g.Patience)) {
		return
	}
	comes := g.Claims != simulate.Forever && r.sleep(time.Duration(g.Claims))
	if comes && r.claim(ticket, secret, time.Duration(g.Stay)) {
		return
	}
	r.miss(ticket)
}

// join retries until it has joined or the room is closed.
func (r *run) join(t fairness.Ticket) bool {
	for r.joins.Wait(r.ctx) == nil {
		_, err := r.room.Join(r.ctx, t)
		early, isEarly := errors.AsType[*room.EarlyError](err)
		wait := retry
		switch {
		case err == nil:
			r.note(func(p *Progress) { p.Joined++ })
			return true
		case isEarly:
			wait = early.Wait
		case errors.Is(err, room.ErrClosed), errors.Is(err, room.ErrStopping):
			r.note(func(p *Progress) { p.Failed++ })
			return false
		}
		if !r.sleep(wait) {
			return false
		}
	}
	return false
}

// wait polls until the ticket is called, and leaves the line when the patience is over.
func (r *run) wait(t fairness.Ticket, secret [fairness.SecretSize]byte, patience time.Duration) (called bool) {
	leaves := time.Now().Add(patience)
	for r.sleep(pollInterval) {
		st, _ := r.room.Standing(t)
		switch st.Status {
		case fairness.StatusCalled:
			r.note(func(p *Progress) { p.Called++ })
			return true
		case fairness.StatusSkipped: // revoked by the organizer
			r.note(func(p *Progress) { p.Left++ })
			return false
		}
		if time.Now().After(leaves) && r.room.Leave(r.ctx, t, secret) == nil {
			r.note(func(p *Progress) { p.Left++ })
			return false
		}
	}
	return false
}

// claim retries until it has a pass, then stays at the site; false if the claim came too late.
func (r *run) claim(t fairness.Ticket, secret [fairness.SecretSize]byte, stay time.Duration) bool {
	for {
		pass, err := r.room.Claim(r.ctx, t, secret)
		switch {
		case err == nil:
			r.note(func(p *Progress) { p.Admitted++ })
			if r.sleep(stay) {
				_, _ = r.room.Release(r.ctx, pass.Token) // otherwise the session expires
			}
			return true
		case errors.Is(err, room.ErrExpired) || !r.sleep(retry):
			return false
		}
	}
}

// miss polls until a ticket is skipped.
func (r *run) miss(t fairness.Ticket) {
	for r.sleep(pollInterval) {
		if st, _ := r.room.Standing(t); st.Status == fairness.StatusSkipped {
			r.note(func(p *Progress) { p.Missed++ })
			return
		}
	}
}

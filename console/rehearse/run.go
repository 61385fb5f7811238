package rehearse

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/visitor"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
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
	desk   *desk

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
	for n, g := range guests {
		crowd.Go(func() { r.visit(&g, n) })
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

// guest is one visitor of a run.
type guest struct {
	*run
	wish
	ticket fairness.Ticket
	secret [fairness.SecretSize]byte
	shown  []credential.Credential // as soon as it has all of them
	pass   string                  // pass; empty until admitted
	called bool
}

// wish is what a visitor joins with.
type wish struct {
	lane    fairness.Lane
	seats   uint32
	account int      // number of its account and its code with each issuer
	shows   []string // methods
}

// wish draws what the visitor with an account joins with: lanes have visitors by their weights, parties have all sizes,
// and half of the visitors have what gives one more lot.
func (r *run) wish(account int) wish {
	p := r.room.Policy()
	w := wish{seats: 1 + mathrand.Uint32N(max(p.Party, 1)), account: account} //nolint:gosec // no secret
	var lane fairness.LaneRule
	weights := uint32(0)
	for _, one := range p.Lanes {
		if weights += one.Weight; mathrand.Uint32N(weights) < one.Weight { //nolint:gosec // no secret
			lane = one
		}
	}
	w.lane = lane.Name
	for _, m := range p.Methods {
		isNeeded := slices.Contains(lane.Needs, m.Name)
		if isNeeded || slices.Contains(p.Lots, m.Name) && mathrand.IntN(2) == 0 { //nolint:gosec // no secret
			w.shows = append(w.shows, m.Name)
		}
	}
	return w
}

// visit plays the n-th visitor, from before the arrival to the end of the session or of the run.
func (r *run) visit(g *simulate.Guest, n int) {
	v := &guest{run: r, wish: r.wish(n)}
	_, _ = rand.Read(v.secret[:]) // never fails
	v.ticket = fairness.NewTicket(r.room.Origin, v.secret)
	arrives := r.state().Opens.Add(time.Duration(g.Arrives)).Sub(r.room.Now())
	_ = visitor.Run(r.ctx, g, arrives, v.send) // it only fails at the end of the run
}

// send passes a request to the room, and counts what the visitor has done.
func (v *guest) send(ctx context.Context, request visitor.Request) (a visitor.Answer, err error) {
	switch request {
	case visitor.Join:
		if err = v.joins.Wait(ctx); err == nil {
			a = v.join(ctx)
		}
	case visitor.Look:
		a = v.look()
	case visitor.Leave:
		a = v.leave(ctx)
	case visitor.Claim:
		a = v.claim(ctx)
	case visitor.Release:
		_, _ = v.room.Sessions.Release(ctx, v.pass) // if it fails, the session expires
	default:
	}
	return a, err
}

func (v *guest) join(ctx context.Context) visitor.Answer {
	err := v.prepare()
	if err == nil {
		_, err = v.room.JoinLane(ctx, v.ticket, v.lane, v.seats, v.shown...)
	}
	if err == nil {
		v.note(func(p *Progress) { p.Joined++ })
		return visitor.Answer{Pause: pollInterval}
	}
	if isFinal(err) {
		v.note(func(p *Progress) { p.Failed++ })
		return visitor.Answer{Outcome: visitor.Over}
	}
	if early, ok := errors.AsType[*room.EarlyError](err); ok {
		return visitor.Answer{Outcome: visitor.Again, Pause: early.Wait}
	}
	if early, ok := errors.AsType[*door.WorkError](err); ok {
		return visitor.Answer{Outcome: visitor.Again, Pause: max(early.Wait, pollInterval)}
	}
	return visitor.Answer{Outcome: visitor.Again, Pause: retry}
}

// isFinal reports whether the room will never take a join that it has refused.
func isFinal(err error) bool {
	return errors.Is(err, room.ErrClosed) || errors.Is(err, room.ErrStopping) || errors.Is(err, errNothing) ||
		errors.Is(err, errUsed) || door.Methods(err) != nil
}

// prepare gets the credentials that the visitor shows, once. It returns a [*door.WorkError] until work can begin, and
// errors of [desk.vouch].
func (v *guest) prepare() error {
	d := v.room.Snapshot().Door
	if v.shown != nil || len(v.shows) == 0 || d == nil {
		return nil
	}
	s := credential.Subject{Room: d.Entry, Lane: string(v.lane), Ticket: v.ticket}
	if d.Work != nil {
		s.Round = d.Work.Signature
	}
	var list []credential.Credential
	for _, m := range d.Methods {
		switch {
		case !slices.Contains(v.shows, m.Name):
			continue
		case m.Kind == credential.Work && s.Round == nil:
			return &door.WorkError{Round: d.Work.Round, Wait: d.Work.Due.Sub(v.room.Now())}
		}
		c, err := v.desk.vouch(&m.Method, s, v.account)
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	v.shown = list
	return nil
}

func (v *guest) look() visitor.Answer {
	switch st, _ := v.room.Standing(v.ticket); {
	case st.Status == fairness.StatusSkipped: // a no-show, or revoked by the organizer
		return v.skipped()
	case st.Status != fairness.StatusCalled:
		return visitor.Answer{Outcome: visitor.Again, Pause: pollInterval}
	case !v.called:
		v.called = true
		v.note(func(p *Progress) { p.Called++ })
	}
	return visitor.Answer{Outcome: visitor.Called, Pause: pollInterval}
}

func (v *guest) leave(ctx context.Context) visitor.Answer {
	if v.room.Leave(ctx, v.ticket, v.secret) != nil { // the visitor was called meanwhile, or the database is away
		return visitor.Answer{Outcome: visitor.Again, Pause: pollInterval}
	}
	v.note(func(p *Progress) { p.Left++ })
	return visitor.Answer{}
}

// skipped counts a visitor who has lost their place.
func (v *guest) skipped() visitor.Answer {
	v.note(func(p *Progress) {
		if v.called {
			p.Missed++
		} else {
			p.Left++
		}
	})
	return visitor.Answer{Outcome: visitor.Over}
}

func (v *guest) claim(ctx context.Context) visitor.Answer {
	pass, err := v.room.Claim(ctx, v.ticket, v.secret)
	switch {
	case errors.Is(err, room.ErrExpired):
		return v.skipped()
	case err != nil:
		return visitor.Answer{Outcome: visitor.Again, Pause: retry}
	}
	v.pass = pass.Token
	v.note(func(p *Progress) { p.Admitted++ })
	return visitor.Answer{}
}

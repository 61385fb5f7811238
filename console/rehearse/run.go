package rehearse

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"net/netip"
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
func (r *run) note(change func(*Rehearsal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.now)
}

// foresee notes what the simulator predicts for the script.
func (r *run) foresee(rs *Rehearsals, p *Plan, c room.Config) {
	script := r.state().Script
	if script.Tickets == 0 {
		return
	}
	share, err := p.predict(r.ctx, c, &script)
	if err != nil {
		rs.log.Error("cannot predict a rehearsal", "room", r.room.Slug, "err", err)
	}
	r.note(func(now *Rehearsal) { now.Script.Predicted = share })
}

// play runs all visitors, waits for the end, and ends the room.
func (r *run) play(rs *Rehearsals, guests []simulate.Guest) {
	var crowd sync.WaitGroup
	script, host, policy := r.state().Script, anyHost(), r.room.Policy()
	person, ticket := script.accounts(), 0
	for _, g := range guests {
		var w wish
		if g.Bot && script.Tickets > 0 {
			w = script.wish(ticket, &policy, host)
			ticket++
		} else {
			w = newWish(person, &policy)
			person++
		}
		crowd.Go(func() { r.visit(rs, &g, w) })
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
		busy := now.through() < now.Visitors || now.Script.through() < now.Script.Tickets ||
			n.Admitted+n.NoShows+n.Left+n.Revoked < n.Arrivals
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
	networks Networks // nil: no limits
	ticket   fairness.Ticket
	secret   [fairness.SecretSize]byte
	shown    []credential.Credential // as soon as it has all of them
	pass     string                  // pass; empty until admitted
	called   bool
	placed   bool
}

// wish is what a visitor joins with.
type wish struct {
	lane    fairness.Lane
	seats   uint32
	account int        // number of its account and its code with each issuer
	shows   []string   // methods
	from    netip.Addr // address of the script; zero: of somebody else
}

// newWish draws what the visitor with an account joins with: lanes have visitors by their weights, parties have all
// sizes, and half of the visitors have what gives one more lot.
func newWish(account int, p *fairness.Policy) wish {
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

// visit plays one visitor, from before the arrival to the end of the session or of the run.
func (r *run) visit(rs *Rehearsals, g *simulate.Guest, w wish) {
	v := &guest{run: r, wish: w, networks: rs.networks}
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

// isScript reports whether the script joins with this ticket.
func (v *guest) isScript() bool { return v.from.IsValid() }

// count updates the progress of the people, or that of the script.
func (v *guest) count(change func(*Progress)) {
	v.note(func(r *Rehearsal) {
		if v.isScript() {
			change(&r.Script.Progress)
		} else {
			change(&r.Progress)
		}
	})
}

func (v *guest) join(ctx context.Context) visitor.Answer {
	err := v.prepare()
	if err == nil {
		err = v.ask(ctx)
	}
	if err == nil {
		v.count(func(p *Progress) { p.Joined++ })
		return visitor.Answer{Pause: pollInterval}
	}
	if isFinal(err) {
		v.count(func(p *Progress) { p.Failed++ })
		if v.isScript() {
			v.note(func(r *Rehearsal) { r.Script.refuse(err) })
		}
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

// ask sends the join. Those of the script are charged to their network, as in package web.
func (v *guest) ask(ctx context.Context) error {
	if v.isScript() && v.networks != nil {
		if v.networks.Join(v.from, v.room.Slug) != nil {
			v.room.Refused.ByNetwork()
			return errNetwork
		}
	}
	_, err := v.room.JoinLane(ctx, v.ticket, v.lane, v.seats, v.shown...)
	if err != nil && v.isScript() && v.networks != nil {
		v.networks.NoTicket(v.from, v.room.Slug)
	}
	return err
}

// isFinal reports whether the room will never take a join that it has refused.
func isFinal(err error) bool {
	return errors.Is(err, room.ErrClosed) || errors.Is(err, room.ErrStopping) || errors.Is(err, errNothing) ||
		errors.Is(err, errUsed) || errors.Is(err, errNetwork) || door.Methods(err) != nil
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
	methods := slices.DeleteFunc(slices.Clone(d.Methods), func(m room.Method) bool {
		return !slices.Contains(v.shows, m.Name)
	})
	isWork := func(m room.Method) bool { return m.Kind == credential.Work }
	if s.Round == nil && slices.ContainsFunc(methods, isWork) {
		return &door.WorkError{Round: d.Work.Round, Wait: d.Work.Due.Sub(v.room.Now())}
	}
	var list []credential.Credential
	for _, m := range methods {
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
	st, _ := v.room.Standing(v.ticket)
	v.place(st.Position)
	switch {
	case st.Status == fairness.StatusSkipped: // a no-show, or revoked by the organizer
		return v.skipped()
	case st.Status != fairness.StatusCalled:
		return visitor.Answer{Outcome: visitor.Again, Pause: pollInterval}
	case !v.called:
		v.called = true
		v.count(func(p *Progress) { p.Called++ })
	}
	return visitor.Answer{Outcome: visitor.Called, Pause: pollInterval}
}

// place counts the visitor among those with one of the first places in the script's lane, once.
func (v *guest) place(p fairness.Position) {
	if v.placed || p == 0 {
		return
	}
	v.placed = true
	v.note(func(r *Rehearsal) {
		if v.lane != r.Script.Lane || p > fairness.Position(r.Script.First) {
			return
		}
		r.Script.Drawn++
		if v.isScript() {
			r.Script.Ahead++
		}
	})
}

func (v *guest) leave(ctx context.Context) visitor.Answer {
	if v.room.Leave(ctx, v.ticket, v.secret) != nil { // the visitor was called meanwhile, or the database is away
		return visitor.Answer{Outcome: visitor.Again, Pause: pollInterval}
	}
	v.count(func(p *Progress) { p.Left++ })
	return visitor.Answer{}
}

// skipped counts a visitor who has lost their place.
func (v *guest) skipped() visitor.Answer {
	v.count(func(p *Progress) {
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
	v.count(func(p *Progress) { p.Admitted++ })
	return visitor.Answer{}
}

package simulate

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/proofline/proofline/fairness"
)

// callEvery is how many milliseconds a server lets pass between two calls.
const callEvery fairness.Time = 250

// skips is how many no-shows it passes over at once.
const skips = 1_000

// patience is how long after the last arrival a simulation gives up: who would
// wait so long, waits for another sale.
const patience = Duration(14 * 24 * time.Hour)

// checkEvery is how many moments go by between two looks at the context.
const checkEvery = 1024

// Progress is told how many visitors have joined, and how many of them are
// through: admitted, or passed over.
type Progress func(joined, settled, visitors int)

// Run simulates a plan. It ends when the tickets are sold or everybody was
// admitted or passed over. progress may be nil. Errors: [*InvalidError], and
// that of ctx.
func Run(ctx context.Context, p Plan, progress Progress) (*Result, error) {
	if problems := p.Problems(); len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	return run(ctx, &p, newCrowd(&p), progress, nil)
}

// run simulates a plan with a crowd, which it changes. observe is shown every
// entry.
func run(ctx context.Context, p *Plan, crowd []visitor, progress Progress, observe func(fairness.Entry)) (*Result, error) {
	s := &sale{plan: p, crowd: crowd, outside: outside{seed: p.Seed}, observe: observe, served: -callEvery}
	s.line = make([]uint32, 0, len(crowd))
	last := crowd[len(crowd)-1].arrives + patience.after()
	s.put(&fairness.Room{Policy: p.Room.policy()})
	for n := 0; s.err == nil; n++ {
		if n%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("simulate: %w", err)
			}
			if progress != nil {
				c := s.state.Counts()
				progress(s.next, int(c.Admitted+c.NoShows+c.Left), len(crowd))
			}
		}
		now := s.nextMoment()
		if s.isOver() || now > last {
			break
		}
		s.now = now
		s.step()
	}
	s.put(&fairness.End{Time: s.now})
	if s.err != nil {
		return nil, fmt.Errorf("simulate: %w", s.err)
	}
	return s.result(), nil
}

// sale is a simulation under way. After the first error nothing more happens.
type sale struct {
	plan    *Plan
	state   fairness.State
	outside outside
	observe func(fairness.Entry)
	now     fairness.Time
	err     error

	crowd  []visitor
	next   int      // crowd[:next] have come
	joined []uint32 // visitors by number, in the order of arrival
	line   []uint32 // visitors by position - 1

	draws   []fairness.Time // when the frozen windows will be drawn
	events  events
	served  fairness.Time     // the latest moment of calls and no-shows
	passed  fairness.Position // no-shows before it are passed over
	late    []fairness.Ticket
	active  int // people at the site
	sold    int
	soldOut bool
	away    int // who came when the room was closed
	waiting int // in line, and not called
	peak    int // most that waited

	arrive fairness.Arrive // kept, for an entry costs no allocation then
	assign fairness.Assign
}

// put writes an entry. The rules refuse none: what they do not allow is not
// tried.
func (s *sale) put(e fairness.Entry) {
	if s.err != nil {
		return
	}
	if s.err = s.state.Apply(e, &s.outside); s.err == nil && s.observe != nil {
		s.observe(e)
	}
}

// isOver tells whether the tickets are sold, or everybody has come and is
// through: patience that runs out later, and sessions, do not count.
func (s *sale) isOver() bool {
	c := s.state.Counts()
	return s.soldOut || s.next == len(s.crowd) && c.Admitted+c.NoShows+c.Left == c.Arrivals
}

// nextMoment returns when something happens next, never for no more.
func (s *sale) nextMoment() fairness.Time {
	next := fairness.Never
	if s.next < len(s.crowd) {
		next = s.crowd[s.next].arrives
	}
	if len(s.events) > 0 {
		next = min(next, s.events[0].at)
	}
	if due, ok := s.state.FreezeDue(); ok {
		next = min(next, due)
	}
	if len(s.draws) > 0 {
		next = min(next, s.draws[0])
	}
	if s.isServing() {
		next = min(next, s.nextService())
	}
	return max(next, s.now)
}

// isServing tells whether the clock has people to call or to pass over.
func (s *sale) isServing() bool {
	c := s.state.Counts()
	return c.Waiting > 0 || c.Called < c.Drawn
}

func (s *sale) nextService() fairness.Time {
	return max(s.served+callEvery, s.plan.Room.Starts.after())
}

// step does what is due now, in the order of a server: windows that are over
// freeze before anybody joins the next, and no-shows make room for calls.
func (s *sale) step() {
	s.drawWindows()
	for s.next < len(s.crowd) && s.crowd[s.next].arrives <= s.now {
		s.join(uint32(s.next))
		s.next++
	}
	for len(s.events) > 0 && s.events[0].at <= s.now {
		s.act(heap.Pop(&s.events).(event)) //nolint:errcheck // the heap holds nothing else
	}
	if s.isServing() && s.now >= s.nextService() {
		s.served = s.now
		s.skipNoShows()
		s.call()
	}
}

// drawWindows freezes the windows that are over, and draws those whose time
// has come.
func (s *sale) drawWindows() {
	for {
		e, alpha, due := s.state.NextFreeze(s.now, s.outside.Root())
		if !due || s.err != nil {
			break
		}
		e.Proof = s.outside.prove(alpha)
		s.put(e)
		s.draws = append(s.draws, s.now+s.plan.Room.Draw.after())
	}
	for len(s.draws) > 0 && s.draws[0] <= s.now && s.err == nil {
		s.draws = s.draws[1:]
		draw, _ := s.state.NextDraw(s.now, nil)
		s.put(draw)
	}
	for s.err == nil {
		var due bool
		if s.assign, due = s.state.NextAssign(); !due {
			return
		}
		s.put(&s.assign)
		n := number(s.assign.Ticket)
		s.line = append(s.line, n)
		s.crowd[n].position = s.assign.Position
	}
}

func (s *sale) join(n uint32) {
	var open bool
	if s.arrive, open = s.state.NextArrive(s.now, ticket(n)); !open {
		s.crowd[n].status = refused
		s.away++
		return
	}
	s.put(&s.arrive)
	v := &s.crowd[n]
	v.status = inLine
	s.waiting++
	s.peak = max(s.peak, s.waiting)
	s.joined = append(s.joined, n)
	if v.patience < forever {
		s.after(v.patience, giveUp, n)
	}
}

// act lets a visitor do what it planned.
func (s *sale) act(e event) {
	v := &s.crowd[e.visitor]
	switch {
	case e.what == giveUp && v.status == inLine:
		v.status, v.gone = left, s.now
		s.waiting--
		s.put(&fairness.Skip{Time: s.now, Ticket: ticket(e.visitor), Reason: fairness.Left})
	case e.what == claim && v.status == summoned:
		s.admit(e.visitor)
	case e.what == release:
		s.active--
	}
}

func (s *sale) admit(n uint32) {
	t, v := ticket(n), &s.crowd[n]
	s.put(&fairness.Admit{Time: s.now, Ticket: t, Pass: fairness.NewPassID(s.state.Policy().Origin, t)})
	v.status, v.gone = admitted, s.now
	s.active++
	s.after(v.stay, release, n)
	if v.buys && !s.soldOut {
		v.bought = true
		s.sold++
		s.soldOut = s.sold == s.plan.Tickets
	}
}

func (s *sale) skipNoShows() {
	s.late, s.passed = s.state.NoShows(s.late[:0], s.passed, s.now, skips)
	for _, t := range s.late {
		s.put(&fairness.Skip{Time: s.now, Ticket: t, Reason: fairness.NoShow})
		s.crowd[number(t)].status = noShow
	}
}

// call calls as many as outflow and capacity allow.
func (s *sale) call() {
	upTo, ok := s.state.CallLimit(s.now, s.capacity())
	if !ok {
		return
	}
	from := s.state.Counts().Called
	s.put(&fairness.Call{Time: s.now, Lane: fairness.General, UpTo: upTo})
	for _, n := range s.line[from:upTo] {
		v := &s.crowd[n]
		if v.status != inLine {
			continue
		}
		v.status, v.called = summoned, s.now
		s.waiting--
		if v.claims < s.plan.Room.Claim.millis() {
			s.after(v.claims, claim, n)
		}
	}
}

// capacity returns how many more may come before max_active is reached.
func (s *sale) capacity() uint64 {
	most := uint64(s.plan.Room.Outflow.MaxActive)
	if most == 0 {
		return fairness.MaxArrivals
	}
	return most - min(most, uint64(s.active)+s.state.Counts().Waiting)
}

func (s *sale) after(d fairness.Millis, what action, n uint32) {
	heap.Push(&s.events, event{s.now + fairness.Time(d), what, n})
}

// action is what a visitor does on its own.
type action uint8

const (
	giveUp action = iota
	claim
	release
)

// event is something that a visitor will do.
type event struct {
	at      fairness.Time
	what    action
	visitor uint32
}

// events is a heap, the next one first. What happens at the same moment has an
// order too, so that a plan has one result.
type events []event

func (l events) Len() int      { return len(l) }
func (l events) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l events) Less(i, j int) bool {
	a, b := l[i], l[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.what != b.what:
		return a.what < b.what
	}
	return a.visitor < b.visitor
}

// Push adds an event, for package heap.
func (l *events) Push(e any) { *l = append(*l, e.(event)) } //nolint:errcheck // nothing else is pushed

// Pop takes the last event, for package heap.
func (l *events) Pop() any {
	e := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return e
}

// outside answers what the rules ask beside the transcript. A proof is a hash
// of its input and the plan's seed, for of VRF and beacon only that their draws
// are uniform matters here: nobody in a simulation tries to know them before.
type outside struct{ seed uint64 }

// Root implements [fairness.Oracle].
func (o *outside) Root() (root [fairness.HashSize]byte) {
	binary.BigEndian.PutUint64(root[:], o.seed)
	return root
}

func (o *outside) prove(alpha []byte) (proof [fairness.ProofSize]byte) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(alpha, o.seed))
	copy(proof[:], sum[:])
	return proof
}

// VerifyProof implements [fairness.Oracle].
func (o *outside) VerifyProof(_ [fairness.PublicKeySize]byte, alpha []byte, proof [fairness.ProofSize]byte) (beta [fairness.BetaSize]byte, err error) {
	if proof != o.prove(alpha) {
		return beta, errors.New("not the proof of this window")
	}
	return [fairness.BetaSize]byte(proof[:]), nil
}

// VerifyCosignature implements [fairness.Oracle]. A simulated room has no
// witnesses.
func (o *outside) VerifyCosignature(string, uint64, [fairness.HashSize]byte, fairness.Cosignature) (fairness.Time, error) {
	return 0, errors.New("a simulated room has no witnesses")
}

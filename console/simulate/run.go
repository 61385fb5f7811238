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

// callInterval is the interval between a server's calls, in milliseconds.
const callInterval fairness.Time = 250

// skips is the maximum number of no-shows that a server skips at once.
const skips = 1_000

// patience is how long after the last arrival a simulation gives up.
const patience = Duration(14 * 24 * time.Hour)

// checkInterval is the number of steps between checks of the context.
const checkInterval = 1024

// Progress receives the numbers of visitors that have joined and that are settled: admitted, skipped or gone.
type Progress func(joined, settled, visitors int)

// Run simulates a plan until the tickets are sold out or all visitors are settled. Progress may be
// nil. Errors: [*invalid.Error], and that of ctx.
func Run(ctx context.Context, p Plan, progress Progress) (*Result, error) {
	if err := p.Problems().Err(); err != nil {
		return nil, err
	}
	return run(ctx, &p, newCrowd(&p), progress, nil)
}

// run simulates a plan with a crowd, which it modifies. It passes every entry to observe.
func run(ctx context.Context, p *Plan, crowd []visitor, progress Progress,
	observe func(fairness.Entry)) (*Result, error) {
	p.equip(crowd)
	s := &sale{plan: p, crowd: crowd, oracle: oracle{seed: p.Seed}, observe: observe, served: -callInterval}
	s.line = make([]uint32, 0, len(crowd))
	policy := p.policy()
	s.beat, _ = policy.WorkRound()
	last := crowd[len(crowd)-1].arrives + patience.after()
	s.put(&fairness.Room{Policy: policy})
	for n := 0; s.err == nil; n++ {
		if n%checkInterval == 0 {
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

// sale is a running simulation. After the first error it does nothing more.
type sale struct {
	plan    *Plan
	state   fairness.State
	oracle  oracle
	observe func(fairness.Entry)
	now     fairness.Time
	err     error

	crowd  []visitor
	next   int                 // crowd[:next] have arrived
	joined []uint32            // visitor numbers in the order of arrival
	line   []uint32            // visitor numbers in the order of their places
	places []fairness.Position // their places, with gaps where a place is nobody's
	called int                 // line[:called] are called, or gave up before

	beat    uint64          // beacon round that work is done for, before the first arrival; 0: none
	draws   []fairness.Time // due times of the draws of frozen windows
	events  events
	served  fairness.Time // time of the latest calls and skips
	passed  fairness.Scan // no-shows before have been skipped
	late    []fairness.Ticket
	active  int // number of people at the site
	sold    int
	soldOut bool
	away    int // number of visitors that arrived when the room was closed
	waiting int // number of visitors in line and not called
	peak    int // maximum of waiting

	arrive fairness.Arrive // reused to avoid an allocation per entry
	assign fairness.Assign
}

// put applies an entry. The rules refuse none, because the simulation only attempts what they
// allow.
func (s *sale) put(e fairness.Entry) {
	if s.err != nil {
		return
	}
	if s.err = s.state.Apply(e, &s.oracle); s.err == nil && s.observe != nil {
		s.observe(e)
	}
}

// admits applies an arrival, unless the rules refuse its credentials. The first one follows the beacon's round, if a
// method waits for it.
func (s *sale) admits(e *fairness.Arrive) bool {
	if s.beat > 0 {
		s.put(&fairness.Beat{Time: s.now, Signature: s.oracle.sign(s.beat)})
		s.beat = 0
	}
	if s.err != nil {
		return false
	}
	err := s.state.Apply(e, &s.oracle)
	if v, ok := errors.AsType[*fairness.Violation](err); ok &&
		(v.Rule == fairness.RuleCredential || v.Rule == fairness.RuleNullifier) {
		return false
	}
	if s.err = err; err == nil && s.observe != nil {
		s.observe(e)
	}
	return err == nil
}

// isOver reports whether the tickets are sold out, or all visitors have arrived and are settled.
// Remaining sessions do not matter.
func (s *sale) isOver() bool {
	c := s.state.Counts()
	return s.soldOut || s.next == len(s.crowd) && c.Admitted+c.NoShows+c.Left == c.Arrivals
}

// nextMoment returns the time of the next event, or [fairness.Never].
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

// isServing reports whether there are visitors to call or to skip.
func (s *sale) isServing() bool {
	c := s.state.Counts()
	return c.Waiting > 0 || c.Ready > 0
}

func (s *sale) nextService() fairness.Time {
	return max(s.served+callInterval, s.plan.Room.Starts.after())
}

// step performs what is due now in the order of a server: windows that have ended are frozen before
// visitors join the next, and no-shows are skipped before calls.
func (s *sale) step() {
	s.drawWindows()
	for s.next < len(s.crowd) && s.crowd[s.next].arrives <= s.now {
		s.join(uint32(s.next))
		s.next++
	}
	for len(s.events) > 0 && s.events[0].at <= s.now {
		s.act(heap.Pop(&s.events).(event)) //nolint:errcheck // the heap contains only events
	}
	if s.isServing() && s.now >= s.nextService() {
		s.served = s.now
		s.skipNoShows()
		s.call()
	}
}

// drawWindows freezes the windows that have ended, and draws those that are due.
func (s *sale) drawWindows() {
	for {
		e, alpha, due := s.state.NextFreeze(s.now, s.oracle.Root())
		if !due || s.err != nil {
			break
		}
		e.Proof = s.oracle.prove(alpha)
		if s.put(e); s.err != nil {
			return
		}
		pending := s.state.Pending()
		s.draws = append(s.draws, max(s.now+s.plan.Room.Draw.after(), pending[len(pending)-1].Due))
	}
	for len(s.draws) > 0 && s.draws[0] <= s.now && s.err == nil {
		s.draws = s.draws[1:]
		draw, _ := s.state.NextDraw(s.now, s.oracle.sign(s.state.Pending()[0].Round))
		s.put(draw)
	}
	for s.err == nil {
		var due bool
		if s.assign, due = s.state.NextAssign(); !due {
			return
		}
		s.put(&s.assign)
		n := number(s.assign.Ticket)
		s.line, s.places = append(s.line, n), append(s.places, s.assign.Position)
		s.crowd[n].position = fairness.Position(len(s.line))
	}
}

func (s *sale) join(n uint32) {
	var open bool
	if s.arrive, open = s.state.NextArrive(s.now, ticket(n), fairness.General); !open {
		s.crowd[n].status = refused
		s.away++
		return
	}
	v := &s.crowd[n]
	s.arrive.Credentials = s.plan.Door.show(v, s.arrive.Ticket)
	if !s.admits(&s.arrive) {
		v.status = barred
		return
	}
	v.status = inLine
	s.waiting++
	s.peak = max(s.peak, s.waiting)
	s.joined = append(s.joined, n)
	if v.patience < forever {
		s.after(v.patience, giveUp, n)
	}
}

// act performs an event of a visitor.
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
	s.late, s.passed = s.state.NoShows(s.passed, s.now, skips)
	for _, t := range s.late {
		s.put(&fairness.Skip{Time: s.now, Ticket: t, Reason: fairness.NoShow})
		s.crowd[number(t)].status = noShow
	}
}

// call calls as many visitors as outflow and capacity allow.
func (s *sale) call() {
	call, _ := s.state.NextCall(s.now, s.capacity())
	if call == nil {
		return
	}
	s.put(call)
	for ; s.called < len(s.line) && s.places[s.called] <= call.UpTo[0]; s.called++ {
		n := s.line[s.called]
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

// capacity returns how many more visitors max_active allows.
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

// action is the kind of an event.
type action uint8

const (
	giveUp action = iota
	claim
	release
)

// event is a future action of a visitor.
type event struct {
	at      fairness.Time
	what    action
	visitor uint32
}

// events is a heap ordered by time. Simultaneous events have a defined order, too, so that a plan has
// one result.
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

// Push implements [heap.Interface].
func (l *events) Push(e any) { *l = append(*l, e.(event)) } //nolint:errcheck // only events are pushed

// Pop implements [heap.Interface].
func (l *events) Pop() any {
	e := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return e
}

// oracle is the oracle for the rules. Its proofs are hashes of the input and the plan's seed: the
// draws only have to be uniform here, because no simulated visitor tries to predict them.
type oracle struct{ seed uint64 }

// Root implements [fairness.Oracle].
func (o *oracle) Root() (root [fairness.HashSize]byte) {
	binary.BigEndian.PutUint64(root[:], o.seed)
	return root
}

func (o *oracle) prove(alpha []byte) (proof [fairness.ProofSize]byte) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(alpha, o.seed))
	copy(proof[:], sum[:])
	return proof
}

// VerifyProof implements [fairness.Oracle].
func (o *oracle) VerifyProof(_ [fairness.PublicKeySize]byte, alpha []byte,
	proof [fairness.ProofSize]byte) (beta [fairness.BetaSize]byte, err error) {
	if proof != o.prove(alpha) {
		return beta, errors.New("proof does not match this window")
	}
	return [fairness.BetaSize]byte(proof[:]), nil
}

// VerifyCosignature implements [fairness.Oracle].
func (o *oracle) VerifyCosignature(string, uint64, [fairness.HashSize]byte,
	fairness.Cosignature) (fairness.Time, error) {
	return 0, errors.New("a simulated room has no witnesses")
}

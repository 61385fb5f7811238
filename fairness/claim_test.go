package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/proofline/proofline/vrf"
)

// called returns a room of 12 drawn tickets, the first six of which are called at a time; claims take 30 seconds, and
// may be extended by 10.
func called(t *testing.T) (r *script, at Time) {
	t.Helper()
	r = drawn(t, 12, func(p *Policy) { p.Extend = 10_000 })
	at = base + minute + second
	r.call(at, 6)
	return r, at
}

func TestRuleExtend(t *testing.T) {
	r, at := called(t)
	over := at + Time(r.policy.Claim)
	left := func(now Time, p Position) Millis {
		st, _ := r.Standing(r.ticketAt(p), r.Size(), now)
		return st.Left
	}
	r.refuse(RuleExtend, &Extend{at, numbered(99)})
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(7)}) // not called
	r.must(r.admission(at, r.ticketAt(2)))
	r.must(&Skip{at, r.ticketAt(3), Left})
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(2)})
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(3)})
	before := r.Size()
	r.must(&Extend{at + second, r.ticketAt(1)})
	if got := left(at+second, 1); got != 39_000 {
		t.Errorf("%d ms are left, want 39,000", got)
	}
	if st, _ := r.Standing(r.ticketAt(1), before, at+second); st.Left != 29_000 {
		t.Errorf("%d ms were left before, want 29,000", st.Left)
	}
	r.refuse(RuleExtend, &Extend{at + second, r.ticketAt(1)}) // once
	r.must(hold(at + second))
	r.refuse(RuleExtend, &Extend{at + second, r.ticketAt(4)}) // may not be claimed
	r.must(resume(at + second))
	r.refuse(RuleSkip, &Skip{over - 1, r.ticketAt(5), NoShow})
	r.must(&Extend{over - 1, r.ticketAt(5)}) // at the last moment
	r.refuse(RuleExtend, &Extend{over, r.ticketAt(6)})
	r.must(&Skip{over, r.ticketAt(6), NoShow})
	r.refuse(RuleSkip, &Skip{over + 9_999, r.ticketAt(1), NoShow})
	r.must(r.admission(over+9_999, r.ticketAt(1)))
	r.refuse(RuleExtend, &Extend{over + 9_999, r.ticketAt(5)})
	r.refuse(RuleAdmission, r.admission(over+10_000, r.ticketAt(5)))
	r.must(&Skip{over + 10_000, r.ticketAt(5), NoShow})
}

// TestExtendOutage: the time that an extension gives does not run in an outage, either.
func TestExtendOutage(t *testing.T) {
	r := drawn(t, 3, func(p *Policy) { p.Extend, p.Grace = 10_000, 5000 })
	at := base + minute + second
	r.call(at, 2)
	r.must(&Extend{at, r.ticketAt(1)})
	r.refuse(RuleSkip, &Skip{at + minute, r.ticketAt(1), NoShow})
	r.must(&Beat{Time: at + minute})
	if st, _ := r.Standing(r.ticketAt(1), r.Size(), at+minute); st.Left != 35_000 {
		t.Errorf("%d ms are left, want 35,000", st.Left)
	}
}

func TestNoExtensions(t *testing.T) {
	r := drawn(t, 3, func(*Policy) {})
	r.call(base+minute+second, 1)
	r.refuse(RuleExtend, &Extend{base + minute + second, r.ticketAt(1)})
}

// TestUndoExtend: an undone extension can be made again, and the one before it stays.
func TestUndoExtend(t *testing.T) {
	r, at := called(t)
	r.must(&Extend{at, r.ticketAt(1)})
	mark, before := r.Mark(), *r.State
	apply := func(p Position) {
		t.Helper()
		if err := r.Apply(&Extend{at, r.ticketAt(p)}, &r.oracle); err != nil {
			t.Fatal(err)
		}
	}
	apply(2)
	apply(3)
	r.Undo(mark)
	if diff := diffState(&before, r.State); diff != "" {
		t.Errorf("undone (-before +after):\n%s", diff)
	}
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(1)})
	r.must(&Extend{at, r.ticketAt(2)})
}

// revoke and restore play the two entries about the ticket at a position of the first lane.
func (r *script) revoke(at Time, p Position) {
	r.Helper()
	r.must(&Skip{at, r.ticketAt(p), RevokedBot})
}

func (r *script) restore(at Time, p Position) { r.Helper(); r.must(&Restore{at, r.ticketAt(p)}) }

func (r *script) standing(at Time, t Ticket) Standing {
	st, _ := r.Standing(t, r.Size(), at)
	return st
}

func TestRuleRestore(t *testing.T) {
	r, at := called(t)
	for reason, p := range map[Reason]Position{Left: 7, Revoked: 8, RevokedBot: 9, RevokedRequest: 10} {
		r.must(&Skip{at, r.ticketAt(p), reason})
	}
	r.must(r.admission(at, r.ticketAt(1)))
	r.must(&Skip{at + 30_000, r.ticketAt(2), NoShow})
	now := at + 30_000
	for _, ticket := range []Ticket{numbered(99), r.ticketAt(1), r.ticketAt(2), r.ticketAt(3), r.ticketAt(7), r.ticketAt(11)} {
		r.refuse(RuleRestore, &Restore{now, ticket})
	}
	for _, p := range []Position{8, 9, 10} {
		r.restore(now, p)
		if st, _ := r.Standing(r.ticketAt(p), r.Size()-1, now); st.Status != StatusSkipped || st.Restored {
			t.Errorf("place %d before: %+v", p, st)
		}
		if st := r.standing(now, r.ticketAt(p)); st.Status != StatusDrawn || st.Reason != "" || !st.Restored {
			t.Errorf("place %d: %+v", p, st)
		}
		r.refuse(RuleRestore, &Restore{now, r.ticketAt(p)})
	}
	r.must(&Skip{now, r.ticketAt(8), Revoked})
	r.refuse(RuleRestore, &Restore{now, r.ticketAt(8)}) // once
	if st := r.standing(now, r.ticketAt(8)); st.Status != StatusSkipped || !st.Restored {
		t.Errorf("revoked again: %+v", st)
	}
	r.call(now+second, 9)
	if st := r.standing(now+second, r.ticketAt(9)); st.Status != StatusCalled || st.Left != 30_000 {
		t.Errorf("called: %+v", st)
	}
	r.must(r.admission(now+second, r.ticketAt(9)))
}

// TestRestoreBeforeDraw: a ticket that was revoked before its draw waits for it again, but not between freeze and draw.
func TestRestoreBeforeDraw(t *testing.T) {
	r := newScript(t, testPolicy())
	tickets := r.join(base, 4)
	for _, ticket := range tickets[:3] {
		r.must(&Skip{base, ticket, Revoked})
	}
	if n := r.Counts().InLine; n != 1 {
		t.Errorf("%d in line", n)
	}
	r.must(&Restore{base + second, tickets[0]})
	if st := r.standing(base+second, tickets[0]); st.Status != StatusWaiting {
		t.Errorf("%+v", st)
	}
	r.over(base + minute)
	r.refuse(RuleRestore, &Restore{base + minute, tickets[1]})
	r.settleWindows(base + minute)
	r.must(&Restore{base + minute, tickets[1]})
	n := r.Counts()
	if n.Ready != 3 || n.Revoked != 1 || n.InLine != 3 {
		t.Errorf("%+v", n)
	}
	r.must(&Restore{base + minute, tickets[2]})
	for range 4 {
		upTo, _ := r.callLimit(base+minute+10*second, 99)
		if upTo != 4 {
			t.Errorf("up to %d", upTo)
		}
	}
}

// TestRestoreKeepsClaim: a ticket that was called before it was revoked has the time that it had left, even none.
func TestRestoreKeepsClaim(t *testing.T) {
	r, at := called(t)
	r.must(&Extend{at, r.ticketAt(3)})
	r.revoke(at+12*second, 1)
	r.revoke(at+12*second, 3)
	r.revoke(at+31*second, 2) // its time was over, but nothing had said so
	size := r.Size()
	now := at + 50*second
	for _, p := range []Position{1, 2, 3} {
		r.restore(now, p)
	}
	r.refuse(RuleExtend, &Extend{now, r.ticketAt(2)})
	r.refuse(RuleAdmission, r.admission(now, r.ticketAt(2)))
	r.refuse(RuleExtend, &Extend{now, r.ticketAt(3)})
	for p, left := range map[Position]Millis{1: 18_000, 2: 0, 3: 28_000} {
		if st := r.standing(now, r.ticketAt(p)); st.Status != StatusCalled || st.Left != left {
			t.Errorf("place %d: %+v", p, st)
		}
		if st, _ := r.Standing(r.ticketAt(p), size, now); st.Status != StatusSkipped || st.Reason != RevokedBot {
			t.Errorf("place %d before: %+v", p, st)
		}
	}
	late, next := r.NoShows(Scan{}, now, 99)
	if len(late) != 4 || late[3] != r.ticketAt(2) { // 4 to 6, and 2
		t.Errorf("no-shows %v", late)
	}
	for _, ticket := range late {
		r.must(&Skip{now, ticket, NoShow})
	}
	r.must(&Extend{now + 17*second, r.ticketAt(1)})
	late, next = r.NoShows(next, now+27_999, 99)
	if len(late) > 0 {
		t.Errorf("no-shows %v", late)
	}
	if late, _ = r.NoShows(next, now+28*second, 99); len(late) != 2 {
		t.Errorf("no-shows %v", late)
	}
	r.must(r.admission(now+27_999, r.ticketAt(1)))
	r.must(&Skip{now + 28*second, r.ticketAt(3), NoShow})
}

// TestRestorePassed: a ticket whose place is passed is called at once: it obeys pause, pace and seats.
func TestRestorePassed(t *testing.T) {
	r := drawn(t, 12, func(p *Policy) { p.Outflow.PerMinute, p.Seats = 60, 5 })
	at := base + 2*minute
	r.revoke(at, 2)
	r.revoke(at, 4)
	r.call(at, 5) // three people
	r.must(pause(at))
	r.refuse(RuleRestore, &Restore{at, r.ticketAt(2)})
	r.must(resume(at))
	r.call(at+minute, 7) // the last of five seats
	r.refuse(RuleSeats, &Restore{at + minute, r.ticketAt(2)})
	r.must(&Skip{at + minute, r.ticketAt(1), Left})
	now := at + minute
	for e, n := r.NextCall(now, 1); n > 0; e, n = r.NextCall(now, 1) { // as far as the seats allow
		r.must(e)
	}
	r.refuse(RuleSeats, &Restore{now, r.ticketAt(2)})
	r.must(&Amend{Time: now, Change: ChangeSeats, Seats: 50})
	r.must(&Amend{Time: now, Change: ChangeOutflow, Outflow: Outflow{PerMinute: 1}}) // cuts the credit to one call
	e, _ := r.NextCall(now, 99)
	r.must(e)
	before := r.Counts()
	r.refuse(RuleOutflow, &Restore{now, r.ticketAt(2)})
	r.refuse(RuleOutflow, &Restore{now + minute - 1, r.ticketAt(2)})
	later := now + minute
	credit := r.pace.at(later).credit
	r.restore(later, 2)
	if got := r.pace.credit; got != credit-creditPerCall {
		t.Errorf("the credit is %d after %d", got, credit)
	}
	n := r.Counts()
	if n.Waiting != before.Waiting+1 || n.Held != before.Held+1 || n.Revoked != before.Revoked-1 || n.InLine != before.InLine {
		t.Errorf("%+v after %+v", n, before)
	}
	if st := r.standing(later, r.ticketAt(2)); st.Status != StatusCalled || st.Left != 30_000 {
		t.Errorf("%+v", st)
	}
	r.must(r.admission(later+29_999, r.ticketAt(2)))
}

// TestRestoreTakesATurn: a lane pays once for each of its tickets, whether it is called in turn or restored.
func TestRestoreTakesATurn(t *testing.T) {
	r := newScript(t, func() Policy {
		p := testPolicy()
		p.Lanes, p.Outflow.PerMinute = lanesOf(2), 6000
		return p
	}())
	for i, lane := range []Lane{General, General, General, "lane-1", "lane-1", "lane-1"} {
		e, _ := r.NextArrive(base, numbered(uint64(i)), lane)
		r.must(&e)
	}
	r.settleWindows(base + minute)
	at := base + 2*minute
	general, other := &r.lanes.all[0], &r.lanes.all[1]
	first, second := r.at(general, 1).ticket, r.at(general, 2).ticket
	r.must(&Skip{at, first, Revoked})
	e, _ := r.NextCall(at, 99)
	r.must(e)
	served, virtual := general.served, r.lanes.virtual
	if served != 2*quantum || other.served != 3*quantum/2 {
		t.Fatalf("served %d and %d", served, other.served)
	}
	r.must(&Restore{at, first})
	general = &r.lanes.all[0]
	if general.served != max(served, virtual)+quantum || r.lanes.virtual != virtual {
		t.Errorf("served %d, virtual %d after %d and %d", general.served, r.lanes.virtual, served, virtual)
	}
	served = general.served
	r.must(&Skip{at, second, Revoked}) // called, so it has paid
	r.must(&Restore{at, second})
	if general = &r.lanes.all[0]; general.served != served {
		t.Errorf("served %d after %d", general.served, served)
	}
}

// TestRestoreWakesLane: an idle lane that gets a ticket back has saved nothing up.
func TestRestoreWakesLane(t *testing.T) {
	p := testPolicy()
	p.Lanes, p.Outflow.PerMinute = lanesOf(2), 6000
	r := newScript(t, p)
	for i, lane := range []Lane{General, General, General, General, "lane-1"} {
		e, _ := r.NextArrive(base, numbered(uint64(i)), lane)
		r.must(&e)
	}
	r.settleWindows(base + minute)
	at := base + 2*minute
	alone := r.at(&r.lanes.all[1], 1).ticket
	r.must(&Skip{at, alone, Revoked})
	e, _ := r.NextCall(at, 3)
	r.must(e)
	r.must(&Restore{at, alone})
	if l := &r.lanes.all[1]; l.served != r.lanes.virtual || l.served != 2*quantum || l.ready != 1 {
		t.Errorf("served %d, virtual %d, %d ready", l.served, r.lanes.virtual, l.ready)
	}
}

// TestUndoRestore: skips and restores of one ticket are undone in any number.
func TestUndoRestore(t *testing.T) {
	r, at := called(t)
	entries := []Entry{
		&Skip{at, r.ticketAt(1), Revoked}, &Skip{at, r.ticketAt(7), Revoked}, &Restore{at + minute, r.ticketAt(1)},
		&Restore{at + minute, r.ticketAt(7)}, &Skip{at + minute, r.ticketAt(1), Revoked}, &Skip{at + minute, r.ticketAt(7), Left},
	}
	for from := range entries {
		for to := from + 1; to <= len(entries); to++ {
			var s, want State
			for i, e := range append(r.parsed(), entries[:to]...) {
				if i == len(r.texts)+from {
					mark := s.Mark()
					for _, later := range entries[from:to] {
						r.apply(&s, later)
					}
					s.Undo(mark)
					break
				}
				r.apply(&s, e)
			}
			for _, e := range append(r.parsed(), entries[:from]...) {
				r.apply(&want, e)
			}
			if diff := diffState(&want, &s); diff != "" {
				t.Errorf("entries %d to %d undone (-want +got):\n%s", from, to, diff)
			}
		}
	}
}

// parsed returns the entries so far.
func (r *script) parsed() (list []Entry) {
	for _, text := range r.texts {
		e, err := ParseEntry([]byte(text))
		if err != nil {
			r.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// apply applies an entry to another state, whose log has the roots that a script gives.
func (r *script) apply(s *State, e Entry) {
	r.Helper()
	var oracle fakeOracle
	for _, text := range r.texts[:min(s.size, uint64(len(r.texts)))] {
		oracle.root = sha256.Sum256(append(oracle.root[:], text...))
	}
	if err := s.Apply(e, &oracle); err != nil {
		r.Fatalf("apply %q: %v", AppendEntry(nil, e), err)
	}
}

func makeTurnsRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	p := vectorPolicy(t, key)
	p.Outflow.PerMinute, p.Extend, p.Grace = 600, 5000, 60_000
	broken := p
	broken.Extend = 999
	s.refuse(RulePolicy, &Room{broken})
	s.must(&Room{p})
	s.join(p.Opens, 1, 2, 3, 4, 5, 6, 7, 8)
	s.settle(p.Starts)
	s.turns(p.Starts + 1000)
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}

// turns plays what happens to tickets that are called at a time.
func (s *story) turns(at Time) {
	place := func(n Position) Ticket { return s.at(&s.lanes.all[0], n).ticket }
	admit := func(at Time, n Position) *Admit {
		return &Admit{at, place(n), NewPassID(s.policy.Origin, place(n))}
	}
	s.must(&Call{at, []Position{4}})
	s.refuse(RuleExtend, &Extend{at, place(5)})
	s.must(&Extend{at + 1000, place(1)})
	s.refuse(RuleExtend, &Extend{at + 1000, place(1)})
	s.must(&Extend{at + 9999, place(2)})
	s.refuse(RuleExtend, &Extend{at + 10_000, place(3)})
	s.refuse(RuleSkip, &Skip{at + 14_999, place(1), NoShow})
	s.must(admit(at+14_999, 1))
	s.refuse(RuleExtend, &Extend{at + 14_999, place(1)})
	s.must(&Skip{at + 15_000, place(2), NoShow})
	s.restores(at + 20_000)
}

// restores plays what happens to revoked tickets, of which places 3 and 4 are called and 5 to 8 are not.
func (s *story) restores(at Time) {
	place := func(n Position) Ticket { return s.at(&s.lanes.all[0], n).ticket }
	revoke := func(at Time, places ...Position) {
		for _, n := range places {
			s.must(&Skip{at, place(n), Revoked})
		}
	}
	s.must(&Skip{at, place(4), NoShow})
	revoke(at, 5, 6, 7)
	s.refuse(RuleRestore, &Restore{at, place(4)})
	s.refuse(RuleRestore, &Restore{at, place(8)})
	s.refuse(RuleRestore, &Restore{at, NewTicket(s.policy.Origin, vectorSecret(99))})
	s.must(&Restore{at, place(5)}) // waits
	s.must(&Call{at + 1000, []Position{8}})
	s.must(pause(at + 2000))
	s.refuse(RuleRestore, &Restore{at + 2000, place(6)})
	s.must(resume(at + 2000))
	s.must(&Restore{at + 2000, place(6)}) // is called
	s.refuse(RuleRestore, &Restore{at + 2000, place(6)})
	revoke(at+5000, 8, 5)
	s.refuse(RuleRestore, &Restore{at + 5000, place(5)})
	s.must(&Amend{Time: at + 5000, Change: ChangeOutflow, Outflow: Outflow{PerMinute: 1}}) // cuts the credit to one call
	s.must(&Restore{at + 9000, place(8)})                                                  // six seconds are left
	s.refuse(RuleOutflow, &Restore{at + 9000, place(7)})
	s.refuse(RuleSkip, &Skip{at + 11_999, place(6), NoShow})
	s.must(&Skip{at + 12_000, place(6), NoShow})
	s.refuse(RuleSkip, &Skip{at + 14_999, place(8), NoShow})
	s.refuse(RuleAdmission, &Admit{at + 15_000, place(8), NewPassID(s.policy.Origin, place(8))})
	s.must(&Skip{at + 15_000, place(8), NoShow})
}

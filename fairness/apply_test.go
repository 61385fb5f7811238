package fairness

import (
	"fmt"
	"testing"
)

// The tests in this file break every rule, in the order of violation.go, in every way that entries allow.
// [script.refuse] checks the name of the rule, and that the refused entry leaves no trace.

// inMinute returns a room in its first minute, with two arrivals in window 0.
func inMinute(t testing.TB) *script {
	r := newScript(t, testPolicy())
	r.join(base+second, 2)
	return r
}

// inSale returns a room after its start: the four arrivals of window 0 are drawn and assigned, and one
// visitor has joined in window 1. The tickets are in order of place.
func inSale(t testing.TB) (r *script, line []Ticket) {
	r = newScript(t, testPolicy())
	r.join(base+second, 4)
	r.settleWindows(base + minute)
	r.join(base+minute, 1)
	for p := range Position(4) {
		line = append(line, r.ticketAt(p+1))
	}
	return r, line
}

// everyKind returns one entry of every kind, all with the same time.
func everyKind(at Time) []Entry {
	p := testPolicy()
	p.Created = at
	return []Entry{
		&Room{p}, &Arrive{Time: at, Ticket: ticket1, Lane: General}, &Merit{Time: at}, &Freeze{Time: at},
		&Draw{Time: at}, &Assign{}, &Call{at, []Position{1}}, &Admit{Time: at}, &Skip{at, ticket1, Left},
		&Amend{Time: at, Change: ChangePause}, &Amend{Time: at, Change: ChangeMessage}, &Beat{Time: at}, &End{at},
	}
}

func TestRulePolicy(t *testing.T) {
	empty := &script{TB: t, State: &State{}}
	for _, e := range everyKind(base)[1:] {
		empty.refuse(RulePolicy, e)
	}
	p := testPolicy()
	p.Claim = 0
	empty.refuse(RulePolicy, &Room{p})
	p = testPolicy()
	p.Windows = nil
	empty.refuse(RulePolicy, &Room{p})
	empty.must(&Room{testPolicy()})
	empty.refuse(RulePolicy, &Room{testPolicy()})
	inMinute(t).refuse(RulePolicy, &Room{testPolicy()})
}

// TestApplyKeepsNothing changes entries after they were applied.
func TestApplyKeepsNothing(t *testing.T) {
	var s, twin State
	for _, s := range []*State{&s, &twin} {
		p := testPolicy()
		e := &Room{p}
		if err := s.Apply(e, nil); err != nil {
			t.Fatal(err)
		}
		amend := &Amend{Time: base, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{base + minute, 500}}}
		if err := s.Apply(amend, nil); err != nil {
			t.Fatal(err)
		}
		if s == &twin {
			e.Lanes[0], e.Windows[0], amend.Windows[0] = LaneRule{"x", 7, nil}, WindowRule{}, WindowRule{}
		}
	}
	if diff := diffState(&s, &twin); diff != "" {
		t.Errorf("changing an applied entry changed the state:\n%s", diff)
	}
}

func TestRuleTime(t *testing.T) {
	r, _ := inSale(t)
	for _, at := range []Time{r.now - 1, base, 0, -1, -1 << 63, Never, Never + 1, 1<<63 - 1} {
		for _, e := range everyKind(at)[1:] {
			if KindOf(e) != KindAssign { // has no time
				r.refuse(RuleTime, e)
			}
		}
	}
	empty := &script{TB: t, State: &State{}}
	p := testPolicy()
	p.Created = -1
	empty.refuse(RuleTime, &Room{p})
	r.must(&Amend{Time: r.now, Change: ChangePause}) // the same time is allowed
	if got := r.Now(); got != base+minute {
		t.Errorf("now is %d, want %d", got, base+minute)
	}
}

func TestRuleEnd(t *testing.T) {
	r, _ := inSale(t)
	r.must(&End{r.now})
	if !r.Ended() {
		t.Error("the room has not ended")
	}
	for _, at := range []Time{0, r.now, r.now + 1} {
		for _, e := range everyKind(at) {
			r.refuse(RuleEnd, e)
		}
	}
}

func TestRuleArrival(t *testing.T) {
	r := inMinute(t)
	now := base + 2*second
	r.refuse(RuleArrival, &Arrive{now, 0, 1, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 0, 0, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 0, 3, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 0, 1<<32 - 1, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 1, 0, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 1, 2, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 1<<63 - 1, 2, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{now, 1<<64 - 1, 2, ticket1, General, 0, nil})
	r.refuse(RuleArrival, &Arrive{base + minute - 1, 1, 0, ticket1, General, 0, nil}) // the window's last millisecond
	r.must(&Arrive{base + minute - 1, 0, 2, ticket1, General, 0, nil})
	r.over(base + minute)
	r.refuse(RuleArrival, &Arrive{base + minute, 0, 3, ticket2, General, 0, nil}) // the next window's first
	r.refuse(RuleArrival, &Arrive{base + minute, 1, 3, ticket2, General, 0, nil}) // seq starts again
	r.refuse(RuleArrival, &Arrive{base + minute, 2, 0, ticket2, General, 0, nil})
	r.must(&Arrive{base + minute, 1, 0, ticket2, General, 0, nil})
	r.over(base + 190*second)
	r.refuse(RuleArrival, &Arrive{base + 200*second, 14, 0, numbered(9), General, 0, nil}) // closed
	r.refuse(RuleArrival, &Arrive{base + 200*second, 15, 0, numbered(9), General, 0, nil})
	r.refuse(RuleArrival, &Arrive{Never - 1, 15, 0, numbered(9), General, 0, nil})
	r.must(&Arrive{base + 200*second - 1, 14, 0, numbered(9), General, 0, nil}) // windows 2 to 13 stay empty

	early := newScript(t, testPolicy())
	early.refuse(RuleArrival, &Arrive{base - 1, 0, 0, ticket1, General, 0, nil})
	early.must(&Arrive{base, 0, 0, ticket1, General, 0, nil})

	full := inMinute(t)
	full.lanes.all[0].seats, full.twin.lanes.all[0].seats = MaxArrivals, MaxArrivals
	full.refuse(RuleArrival, &Arrive{now, 0, 2, ticket1, General, 0, nil})
	if e, ok := full.NextArrive(now, ticket1, General); ok {
		t.Errorf("a full room proposes %+v", e)
	}
}

func TestRuleTicket(t *testing.T) {
	r, line := inSale(t)
	now := base + minute + second
	last := r.State.arrivals.At(4).ticket
	r.refuse(RuleTicket, &Arrive{now, 1, 1, last, General, 0, nil})    // in the same window
	r.refuse(RuleTicket, &Arrive{now, 1, 1, line[0], General, 0, nil}) // in a later window
	r.call(now, 1)
	r.refuse(RuleTicket, &Arrive{now, 1, 1, line[0], General, 0, nil}) // called
	r.must(r.admission(now, line[0]))
	r.refuse(RuleTicket, &Arrive{now, 1, 1, line[0], General, 0, nil}) // admitted
	r.must(&Skip{now, line[1], Left})
	r.refuse(RuleTicket, &Arrive{now, 1, 1, line[1], General, 0, nil}) // skipped
	for _, bad := range []func(*Ticket){
		func(t *Ticket) { *t = Ticket{} }, func(t *Ticket) { t[6] = 0x40 }, func(t *Ticket) { t[8] &= 0x7f }, func(t *Ticket) { t[8] |= 0xc0 },
	} {
		ticket := ticket1
		bad(&ticket)
		r.refuse(RuleTicket, &Arrive{now, 1, 1, ticket, General, 0, nil})
	}
	r.must(&Arrive{now, 1, 1, ticket1, General, 0, nil})
}

func TestRuleLane(t *testing.T) {
	r := newScript(t, testPolicy())
	for _, lane := range []Lane{"", "vip", "genera", "generals", "General"} {
		r.refuse(RuleLane, &Arrive{base, 0, 0, ticket1, lane, 0, nil})
	}
	r.join(base, 1)
	r.must(r.freeze(base + minute))
	d, _ := r.NextDraw(r.now, nil)
	r.must(d)
	e, _ := r.NextAssign()
	for _, lane := range []Lane{"", "vip"} {
		bad := e
		bad.Lane = lane
		r.refuse(RuleLane, &bad)
	}
	r.must(&e)
	r.call(r.now, 1)
}

func TestRuleFreeze(t *testing.T) {
	r := newScript(t, testPolicy())
	r.refuse(RuleFreeze, &Freeze{Time: base + minute})
	r.join(base+second, 2)
	r.join(base+minute, 1)
	r.join(base+100*second, 1) // window 5, after empty ones
	frozen := r.now

	now := base + 110*second
	good := r.freeze(now)
	for name, change := range map[string]func(*Freeze){
		"a frozen window":      func(e *Freeze) { e.Window = 1 },
		"an empty window":      func(e *Freeze) { e.Window = 2 },
		"a window never":       func(e *Freeze) { e.Window = 1<<63 - 1 },
		"an arrival left out":  func(e *Freeze) { e.Lots = []uint32{e.Lots[0] - 1} },
		"an arrival made up":   func(e *Freeze) { e.Lots = []uint32{e.Lots[0] + 1} },
		"no arrival":           func(e *Freeze) { e.Lots = []uint32{0} },
		"lots of another lane": func(e *Freeze) { e.Lots = []uint32{e.Lots[0], 0} },
		"lots of no lane":      func(e *Freeze) { e.Lots = nil },
		"an entry left out":    func(e *Freeze) { e.Size-- },
		"an entry too many":    func(e *Freeze) { e.Size++ },
		"another root":         func(e *Freeze) { e.Root[31] ^= 1 },
		"a root of nothing":    func(e *Freeze) { e.Root = [HashSize]byte{} },
		"a beacon round":       func(e *Freeze) { e.Round = 1 },
	} {
		t.Run(name, func(*testing.T) {
			bad := *good
			change(&bad)
			r.refuse(RuleFreeze, &bad)
		})
	}
	// Nothing but a freeze or the end comes at or after the end of a window.
	for _, at := range []Time{now, now + 1, Never - 1} {
		for _, e := range everyKind(at)[1:] {
			if k := KindOf(e); k != KindFreeze && k != KindEnd && k != KindAssign {
				r.refuse(RuleFreeze, e)
			}
		}
	}
	r.must(&Amend{Time: now - 1, Change: ChangeMessage})
	r.must(r.freeze(now))
	r.refuse(RuleFreeze, r.freezeUnchecked(now)) // twice
	if frozen != base+100*second {
		t.Errorf("frozen at base+%d", frozen-base)
	}
	ends := inMinute(t)
	ends.must(&End{base + minute})

	soon := inMinute(t)
	early := soon.freezeUnchecked(base + minute - 1)
	soon.refuse(RuleFreeze, early)
	soon.must(soon.freezeUnchecked(base + minute))
}

// freezeUnchecked returns the freeze of the next window at a time at which it may not be due.
func (r *script) freezeUnchecked(at Time) *Freeze {
	w := &r.windows.all[min(r.windows.frozen, len(r.windows.all)-1)]
	e := &Freeze{Time: at, Window: w.Index, Lots: w.freezes(), Size: r.size, Root: r.oracle.root}
	e.Proof = fakeProof(r.policy.VRFKey, Alpha(r.roomHash, e))
	return e
}

func TestRuleProof(t *testing.T) {
	r := inMinute(t)
	now := base + minute
	good := r.freeze(now)
	for i := range ProofSize {
		bad := *good
		bad.Proof[i] ^= 1
		r.refuse(RuleProof, &bad)
	}
	bad := *good
	bad.Proof = fakeProof([PublicKeySize]byte{3}, Alpha(r.roomHash, good))
	r.refuse(RuleProof, &bad) // of another key
	bad.Proof = fakeProof(r.policy.VRFKey, Alpha([HashSize]byte{}, good))
	r.refuse(RuleProof, &bad) // of another room
	r.must(good)
	r.join(now, 1)
	next := r.freeze(now + 10*second)
	next.Proof = good.Proof
	r.refuse(RuleProof, next) // of another window
	r.must(r.freeze(now + 10*second))
}

func TestRuleDraw(t *testing.T) {
	r := inMinute(t)
	r.refuse(RuleDraw, &Draw{Time: base + minute - 1})
	r.join(base+minute, 1)
	now := base + 70*second
	r.must(r.freeze(now))
	good, _ := r.NextDraw(now, nil)
	bad := *good
	for _, bad.Window = range []WindowIndex{1, 2, 1<<63 - 1} {
		r.refuse(RuleDraw, &bad)
	}
	bad = *good
	bad.Signature = []byte{1}
	bad.Seed = NewSeed(r.windows.all[0].alpha, r.windows.all[0].beta, 0, bad.Signature)
	r.refuse(RuleBeacon, &bad)
	bad = *good
	bad.Cosignatures = []Cosignature{{}}
	r.refuse(RuleWitness, &bad)
	r.must(good)
	r.refuse(RuleDraw, good) // twice
	second, _ := r.NextDraw(now, nil)
	r.must(second)
	r.refuse(RuleDraw, second)
}

func TestRuleSeed(t *testing.T) {
	r := inMinute(t)
	r.join(base+minute, 1)
	now := base + 70*second
	r.must(r.freeze(now))
	good, _ := r.NextDraw(now, nil)
	for i := range HashSize {
		bad := *good
		bad.Seed[i] ^= 0x80
		r.refuse(RuleSeed, &bad)
	}
	r.must(good)
	next, _ := r.NextDraw(now, nil)
	bad := *next
	bad.Seed = good.Seed
	r.refuse(RuleSeed, &bad) // of the previous window
	r.must(next)
}

func TestRuleAssign(t *testing.T) {
	r := newScript(t, testPolicy())
	tickets := r.join(base, 3)
	r.refuse(RuleAssign, &Assign{0, General, 1, tickets[0]})
	tickets = append(tickets, r.join(base+minute, 2)...)
	r.refuse(RuleAssign, &Assign{0, General, 1, tickets[0]}) // not drawn
	now := base + 70*second
	r.must(r.freeze(now))
	for range 2 {
		d, _ := r.NextDraw(now, nil)
		r.must(d)
	}
	for p := Position(1); p <= 5; p++ {
		good, ok := r.NextAssign()
		if !ok || good.Position != p {
			t.Fatalf("next is %+v, %v; want place %d", good, ok, p)
		}
		for _, ticket := range append(tickets, ticket1) {
			if ticket != good.Ticket {
				bad := good
				bad.Ticket = ticket
				r.refuse(RuleAssign, &bad)
			}
		}
		for _, place := range []Position{0, p - 1, p + 1, 6, 1<<64 - 1} {
			r.refuse(RuleAssign, &Assign{good.Window, General, place, good.Ticket})
		}
		r.refuse(RuleAssign, &Assign{1 - good.Window, General, p, good.Ticket})
		r.must(&good)
		r.refuse(RuleAssign, &good) // twice
	}
	r.refuse(RuleAssign, &Assign{1, General, 6, tickets[0]})
}

func TestRuleCall(t *testing.T) {
	r := newScript(t, testPolicy())
	r.join(base, 2)
	r.refuse(RuleCall, &Call{base + minute - 1, []Position{1}}) // nothing is drawn
	r.must(r.freeze(base + minute))
	r.refuse(RuleCall, &Call{base + minute, []Position{1}})
	d, _ := r.NextDraw(base+minute, nil)
	r.must(d)
	now := base + minute + second
	r.refuse(RuleCall, &Call{now, []Position{0}})
	r.refuse(RuleCall, &Call{now, []Position{3}})
	r.refuse(RuleCall, &Call{now, []Position{1<<64 - 1}})
	r.must(&Amend{Time: now, Change: ChangePause})
	r.refuse(RuleCall, &Call{now, []Position{1}})
	r.must(&Amend{Time: now, Change: ChangeResume})
	r.call(now, 1) // no place is assigned yet, but the draw is enough
	r.refuse(RuleCall, &Call{now, []Position{0}})
	r.refuse(RuleCall, &Call{now, []Position{1}})
	r.call(now, 2)
	r.refuse(RuleCall, &Call{now, []Position{2}})
	r.refuse(RuleCall, &Call{now, []Position{1}})

	p := testPolicy()
	p.Starts = base + 2*minute
	late := newScript(t, p)
	late.join(base, 1)
	late.settleWindows(base + minute)
	late.refuse(RuleCall, &Call{base + 2*minute - 1, []Position{1}})
	late.call(base+2*minute, 1)
}

func TestRuleOutflow(t *testing.T) {
	r := newScript(t, testPolicy()) // 600 per minute: one in 100 ms
	r.join(base, 400)
	r.settleWindows(base + minute)
	now := base + minute
	r.refuse(RuleOutflow, &Call{now, []Position{2}})
	r.call(now, 1)
	r.refuse(RuleOutflow, &Call{now + 99, []Position{2}})
	r.call(now+100, 2)
	r.refuse(RuleOutflow, &Call{now + 399, []Position{5}})
	r.call(now+400, 5)
	r.refuse(RuleOutflow, &Call{now + 401, []Position{400}})
	// A minute without calls saves up ten seconds' worth of credit.
	r.refuse(RuleOutflow, &Call{now + minute, []Position{106}})
	r.call(now+minute, 105)
	r.refuse(RuleOutflow, &Call{now + minute, []Position{106}})
	// A skipped place costs nothing, before and after its call.
	r.must(&Skip{now + minute, r.ticketAt(106), Left})
	r.refuse(RuleCall, &Call{now + minute, []Position{106}}) // calls nobody
	r.must(&Skip{now + minute, r.ticketAt(107), Revoked})
	r.must(&Skip{now + minute, r.ticketAt(109), Left})
	r.refuse(RuleOutflow, &Call{now + minute + 100, []Position{110}})
	r.refuse(RuleCall, &Call{now + minute + 100, []Position{109}}) // rests on a place that was given up
	r.call(now+minute+100, 108)
}

func TestRuleAdmission(t *testing.T) {
	r, line := inSale(t)
	waiting := r.State.arrivals.At(4).ticket
	now := base + minute
	r.refuse(RuleAdmission, r.admission(now, ticket1)) // never joined
	r.refuse(RuleAdmission, r.admission(now, waiting)) // not drawn
	r.refuse(RuleAdmission, r.admission(now, line[0])) // not called
	r.call(now+500, 3)
	called := now + 500
	r.refuse(RuleAdmission, r.admission(called, line[3]))
	for _, pass := range []PassID{{}, PassID(line[0]), NewPassID(r.policy.Origin, line[1]), NewPassID("other.example.com", line[0])} {
		r.refuse(RuleAdmission, &Admit{called, line[0], pass})
	}
	r.must(r.admission(called, line[0]))
	r.refuse(RuleAdmission, r.admission(called, line[0])) // twice
	r.must(&Skip{called, line[1], Left})
	r.refuse(RuleAdmission, r.admission(called, line[1])) // given up
	expiry := called + Time(r.policy.Claim)
	r.over(expiry - 1)
	r.refuse(RuleAdmission, r.admission(expiry, line[2]))
	r.refuse(RuleAdmission, r.admission(Never-1, line[2]))
	r.must(r.admission(expiry-1, line[2]))

	late, line := inSale(t)
	late.call(now, 1)
	late.over(now + Time(late.policy.Claim))
	late.must(&Skip{now + Time(late.policy.Claim), line[0], NoShow})
	late.refuse(RuleAdmission, late.admission(late.now, line[0]))
}

func TestRuleSkip(t *testing.T) {
	r, line := inSale(t)
	waiting := r.State.arrivals.At(4).ticket
	now := base + minute + second
	for _, reason := range []Reason{NoShow, Left, Revoked} {
		r.refuse(RuleSkip, &Skip{now, ticket1, reason}) // never joined
	}
	r.refuse(RuleSkip, &Skip{now, waiting, NoShow}) // not drawn
	r.refuse(RuleSkip, &Skip{now, line[0], NoShow}) // not called
	r.call(now, 3)
	r.refuse(RuleSkip, &Skip{now, line[0], NoShow})
	for _, reason := range []Reason{"", "tired", "no-shows", "revoked-", "revoked-bots"} {
		r.refuse(RuleSkip, &Skip{now, line[0], reason})
	}
	r.must(&Skip{now, waiting, Left})
	r.must(&Skip{now, line[3], RevokedFraud})
	r.must(&Skip{now, line[1], Left})
	r.must(r.admission(now, line[2]))
	expiry := now + Time(r.policy.Claim)
	r.over(expiry - 1)
	r.refuse(RuleSkip, &Skip{expiry - 1, line[0], NoShow})
	r.must(&Skip{expiry, line[0], NoShow})
	for _, ticket := range append(line, waiting) {
		for _, reason := range []Reason{NoShow, Left, Revoked} {
			r.refuse(RuleSkip, &Skip{expiry, ticket, reason}) // settled before
		}
	}
	want := Counts{Arrivals: 5, Drawn: 4, Assigned: 4, Called: 3, Admitted: 1, NoShows: 1, Left: 2, Revoked: 1, Windows: 2, Seats: 5, Sold: 1}
	if got := r.Counts(); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

// TestRevokedBetween: a ticket of a frozen window cannot be revoked before the draw, but it may leave.
func TestRevokedBetween(t *testing.T) {
	r := newScript(t, testPolicy())
	tickets := r.join(base, 3)
	r.must(&Skip{base + second, tickets[0], RevokedBot})
	later := r.join(base+minute, 1)[0] // which freezes the first window
	for _, reason := range reasons[revoked:] {
		r.refuse(RuleSkip, &Skip{base + minute, tickets[1], reason})
	}
	if !r.AwaitsDraw(tickets[1]) || r.AwaitsDraw(later) || r.AwaitsDraw(ticket1) {
		t.Error("wrong tickets await a draw")
	}
	r.must(&Skip{base + minute, tickets[1], Left})
	r.must(&Skip{base + minute, later, RevokedBot})
	r.settleWindows(base + minute)
	if r.AwaitsDraw(tickets[2]) {
		t.Error("a drawn ticket awaits its draw")
	}
	r.must(&Skip{base + minute, tickets[2], RevokedBot})
}

func TestRuleAmend(t *testing.T) {
	r := inMinute(t)
	now := base + 30*second
	r.refuse(RuleAmend, &Amend{Time: now})
	r.refuse(RuleAmend, &Amend{Time: now, Change: "keys"})
	r.refuse(RuleAmend, &Amend{Time: now, Change: ChangeResume})
	r.must(&Amend{Time: now, Change: ChangePause})
	r.refuse(RuleAmend, &Amend{Time: now, Change: ChangePause})
	r.must(&Amend{Time: now, Change: ChangeResume})
	r.refuse(RuleAmend, &Amend{Time: now, Change: ChangeResume})
	r.refuse(RuleAmend, &Amend{Time: now, Change: ChangeOutflow})
	r.refuse(RuleAmend, &Amend{Time: now, Change: ChangeOutflow, Outflow: Outflow{PerMinute: MaxRate + 1}})
	r.must(&Amend{Time: now, Change: ChangeOutflow, Outflow: Outflow{PerMinute: MaxRate}})
	r.must(&Amend{Time: now, Change: ChangeMessage, Message: hash1})
	if r.InForce().Outflow != (Outflow{PerMinute: MaxRate}) || r.InForce().Message != hash1 || r.InForce().Paused {
		t.Errorf("outflow %+v, message %x, paused %t", r.InForce().Outflow, r.InForce().Message, r.InForce().Paused)
	}
	if r.Policy().Outflow != testPolicy().Outflow {
		t.Error("an amendment changed the published policy")
	}
}

// TestRulePauseOfClaims plays every transition between running, paused and claims paused. Transitions to the
// current state are refused, the clock stops from the first pause to the resume, and only a pause of claims
// refuses admissions.
func TestRulePauseOfClaims(t *testing.T) {
	const running, paused, held = 0, 1, 2
	turns := []func(Time) *Amend{resume, pause, hold}
	for way := range 81 {
		r := newScript(t, testPolicy())
		r.join(base, 5)
		r.settleWindows(base + minute)
		now := base + minute + 10*second
		r.call(now, 5)
		is, next, stood := running, 1, Time(0)
		for _, to := range []int{way % 3, way / 3 % 3, way / 9 % 3, way / 27} {
			now += second
			if is != running {
				stood += second
			}
			if to == is {
				r.refuse(RuleAmend, turns[to](now))
			} else {
				r.must(turns[to](now))
			}
			is = to
			if r.InForce().Paused != (is != running) || r.InForce().ClaimsPaused != (is == held) {
				t.Fatalf("way %d: paused %t and held %t after turn %d", way, r.InForce().Paused, r.InForce().ClaimsPaused, to)
			}
			ticket := r.at(&r.lanes.all[0], Position(next)).ticket
			if admit := (&Admit{now, ticket, NewPassID(r.Policy().Origin, ticket)}); is == held {
				r.refuse(RuleAdmission, admit)
			} else {
				r.must(admit)
				next++
			}
		}
		last := r.at(&r.lanes.all[0], 5).ticket
		now = base + minute + 10*second + Time(r.Policy().Claim) + stood
		if is != running {
			now += minute
			r.refuse(RuleSkip, &Skip{now, last, NoShow})
			r.must(resume(now))
			now += Time(r.Policy().Claim) - (4*second - stood)
		}
		r.refuse(RuleSkip, &Skip{now - 1, last, NoShow})
		r.must(&Skip{now, last, NoShow})
	}
	r := newScript(t, testPolicy())
	r.must(&Amend{Time: base, Change: ChangePause})
	r.must(&Amend{Time: base, Change: ChangeResume, Claims: true}) // a resume has no such field
	r.refuse(RuleAmend, &Amend{Time: base, Change: ChangeResume, Claims: true})
	if r.InForce().ClaimsPaused {
		t.Error("a resume holds")
	}
}

func TestRuleAmendOpen(t *testing.T) {
	open, shut, at := &Amend{Change: ChangeOpen}, &Amend{Change: ChangeShut}, base+30*second
	gate := func(e *Amend, now Time) *Amend { return &Amend{Time: now, Change: e.Change} }
	r := newScript(t, testPolicy())
	r.refuse(RuleAmend, gate(shut, at-second))
	r.must(gate(open, at-second)) // no arrivals yet
	r.refuse(RuleAmend, gate(open, at-second))
	if !r.InForce().Open {
		t.Error("not open")
	}
	r.join(at, 3) // joins while the room is open do not require it to shut
	r.must(gate(shut, at))
	if r.InForce().Open {
		t.Error("still open")
	}
	r.refuse(RuleAmend, gate(shut, at))
	inLine := func(want uint64) {
		t.Helper()
		if got := r.Counts().InLine; got != want {
			t.Errorf("%d in line, want %d", got, want)
		}
		if want > 0 {
			r.refuse(RuleAmend, gate(open, r.Now()))
		}
	}
	inLine(3)
	r.settleWindows(base + minute)
	inLine(3)
	now := base + 2*minute
	r.call(now, 2)
	inLine(1)
	r.must(&Skip{now, r.at(&r.lanes.all[0], 3).ticket, Left})
	inLine(0) // two are called but not admitted: they do not have to wait in line
	r.must(&Amend{Time: now, Change: ChangePause})
	r.refuse(RuleAmend, gate(open, now))
	r.must(&Amend{Time: now, Change: ChangeResume})
	r.must(&Skip{now, r.at(&r.lanes.all[0], 1).ticket, Left})
	inLine(0)
	r.must(gate(open, now))
	r.must(&Amend{Time: now, Change: ChangePause}) // a pause stops calls, and does not shut the gate
	r.must(gate(shut, now))
	if n := r.Counts().Amends; n != 7 {
		t.Errorf("%d amendments, want 7", n)
	}
}

// TestTellChangesNothing: a statement is accepted even if it contradicts the record, and changes only size and time.
func TestTellChangesNothing(t *testing.T) {
	r := inMinute(t)
	now := base + 30*second
	before := *r.State
	for _, e := range []*Tell{
		{Subject: TellUnguarded, From: 0, Until: now, Count: 9}, {Subject: TellUnguarded, From: now, Until: now - 1},
		{Subject: TellRefused, Name: "rate", From: now, Until: now + 1, Count: 9}, {Subject: TellStock, Name: "stalls", Count: 5},
		{Subject: TellStock, Name: "stalls", Count: 6}, {Subject: TellPrice, Name: "stalls", Min: 2, Max: 1, Currency: "EUR"},
		{Subject: TellAuto, Name: "slow-site"}, {Subject: TellAuto, Name: "slow-site"},
	} {
		e.Time = now
		r.must(e)
	}
	after := *r.State
	after.size, after.now, after.clock = before.size, before.now, before.clock
	if diff := diffState(&before, &after); diff != "" {
		t.Errorf("statements changed the state (-before +after):\n%s", diff)
	}
	r.refuse(RuleTime, &Tell{Time: now - 1, Subject: TellAuto, Name: "slow-site"})
	r.refuse(RuleFreeze, &Tell{Time: base + minute, Subject: TellAuto, Name: "slow-site"})
	r.must(&End{now})
	r.refuse(RuleEnd, &Tell{Time: now, Subject: TellAuto, Name: "slow-site"})
}

func TestRuleAmendWindows(t *testing.T) {
	// at is the last moment at which windows that stay may begin.
	amend := func(at, closes Time, rules ...WindowRule) *Amend {
		return &Amend{Time: at - Time(MinNotice) + 1, Change: ChangeWindows, Closes: closes, Windows: rules}
	}
	var many []WindowRule
	for i := range Time(MaxRules + 1) {
		many = append(many, WindowRule{base + minute + i*second, 1000})
	}
	for name, tc := range map[string]struct {
		amend *Amend
		ok    bool
	}{
		"nothing changes":                      {amend(base, base+200*second), true},
		"before opening, the whole schedule":   {amend(base-1, base+9, WindowRule{base, 500}), true},
		"before opening, from later on":        {amend(base-1, Never, WindowRule{base + 1, 500}), true},
		"before opening, an earlier opening":   {amend(base-1, Never, WindowRule{base - 1, 500}), false},
		"before opening, no time is left":      {amend(base-1, base), false},
		"at opening, the open window":          {amend(base, Never, WindowRule{base, 500}), false},
		"in the open window":                   {amend(base+second, Never, WindowRule{base + minute - 1, 500}), false},
		"from the open window's end":           {amend(base+second, Never, WindowRule{base + minute, 500}), true},
		"at the open window's last moment":     {amend(base+minute-1, Never, WindowRule{base + minute, 500}), true},
		"a moment later":                       {amend(base+minute, Never, WindowRule{base + minute, 500}), false},
		"in the past":                          {amend(base+100*second, Never, WindowRule{base + 80*second, 500}), false},
		"closes with the open window":          {amend(base+second, base+minute), true},
		"closes in the open window":            {amend(base+second, base+minute-1), false},
		"closes in the past":                   {amend(base+second, base), false},
		"closes at no time":                    {amend(base+second, 0), false},
		"closes before 1970":                   {amend(base+second, -1), false},
		"closes after all time":                {amend(base+second, Never+1), false},
		"stays open":                           {amend(base+second, Never), true},
		"a rule at the close":                  {amend(base+second, base+minute, WindowRule{base + minute, 500}), false},
		"too short":                            {amend(base, Never, WindowRule{base + minute, MinWindow - 1}), false},
		"too long":                             {amend(base, Never, WindowRule{base + minute, MaxWindow + 1}), false},
		"not in order":                         {amend(base, Never, WindowRule{base + 2*minute, 500}, WindowRule{base + minute, 500}), false},
		"twice the same moment":                {amend(base, Never, WindowRule{base + minute, 500}, WindowRule{base + minute, 500}), false},
		"as many as may be":                    {amend(base, Never, many[:MaxRules]...), true},
		"too many":                             {amend(base, Never, many...), false},
		"after the close":                      {amend(base+200*second, Never, WindowRule{base + 201*second, 500}), false},
		"the last moment before the close":     {amend(base+200*second-1, Never, WindowRule{base + 200*second, 500}), true},
		"the open window would be continued":   {amend(base+198*second, Never), true},
		"far later, so that old rules go on":   {amend(base+second, Never, WindowRule{Never - 1, 500}), true},
		"between two old windows, cutting one": {amend(base+second, Never, WindowRule{base + 65*second, 500}), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newScript(t, testPolicy())
			if !tc.ok {
				r.refuse(RuleAmend, tc.amend)
				return
			}
			past := max(base-1, tc.amend.Time+Time(MinNotice)-1)
			was, wasOpen := r.Schedule().At(past)
			r.must(tc.amend)
			if is, open := r.Schedule().At(past); is != was || open != wasOpen {
				t.Errorf("the open window was %+v and is %+v", was, is)
			}
			if got := r.Schedule().Closes(); got != tc.amend.Closes {
				t.Errorf("closes %d, want %d", got, tc.amend.Closes)
			}
		})
	}
}

// TestAmendWindowsCutLast extends a room whose last window is cut short by the close: once that window begins
// within the notice, it must not grow.
func TestAmendWindowsCutLast(t *testing.T) {
	p := testPolicy()
	p.Closes = base + 65*second // cuts window 1, which would last until base+70s
	for _, tc := range []struct {
		at    Time
		rules []WindowRule
		ok    bool
	}{
		{base + 59*second, nil, true},
		{base + 60*second, nil, false},
		{base + 60*second, []WindowRule{{base + 66*second, 500}}, false},
		{base + 60*second, []WindowRule{{base + 65*second, 500}}, true},
	} {
		r := newScript(t, p)
		e := &Amend{Time: tc.at - Time(MinNotice) + 1, Change: ChangeWindows, Closes: base + 100*second, Windows: tc.rules}
		if tc.ok {
			r.must(e)
		} else {
			r.refuse(RuleAmend, e)
		}
	}
}

// TestAmendWindowsTooOften checks that a schedule cannot grow without limit.
func TestAmendWindowsTooOften(t *testing.T) {
	p := testPolicy()
	p.Closes = Never
	r := newScript(t, p)
	at := base + minute
	for len(r.Schedule().Rules()) < 2*MaxRules {
		at += 100 * second
		r.must(&Amend{Time: at, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{
			{at + 10*second, 10_000}, {at + 20*second, 10_000}, {at + 30*second, 10_000}, {at + 40*second, 10_000}, {at + 50*second, 10_000},
			{at + 60*second, 10_000}, {at + 70*second, 10_000}, {at + 80*second, 10_000}, {at + 90*second, 10_000},
		}[:min(9, 2*MaxRules-len(r.Schedule().Rules()))]})
	}
	at += 100 * second
	r.refuse(RuleAmend, &Amend{Time: at, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{at + 10*second, 10_000}}})
	r.must(&Amend{Time: at, Change: ChangeWindows, Closes: at + 10*second})
}

// TestAmendedWindows joins before, within and after an amended period.
func TestAmendedWindows(t *testing.T) {
	r := inMinute(t)
	r.must(&Amend{Time: base + 2*second, Change: ChangeWindows, Closes: base + 300*second, Windows: []WindowRule{
		{base + 75*second, 20_000},
	}})
	for _, tc := range []struct {
		at   Time
		want Window
	}{
		{base + 3*second, Window{0, base, base + minute}},
		{base + 61*second, Window{1, base + 60*second, base + 70*second}},
		{base + 71*second, Window{2, base + 70*second, base + 75*second}},
		{base + 75*second, Window{3, base + 75*second, base + 95*second}},
		{base + 295*second, Window{14, base + 295*second, base + 300*second}},
	} {
		ticket := r.join(tc.at, 1)[0]
		st, ok := r.Standing(ticket, r.size, tc.at)
		if !ok || st.Window != tc.want {
			t.Errorf("at base+%d: window %+v, want %+v", tc.at-base, st.Window, tc.want)
		}
	}
	r.settleWindows(base + 300*second)
	if got := r.Counts(); got.Windows != 5 || got.Assigned != 7 {
		t.Errorf("counts %+v", got)
	}
}

func TestViolationText(t *testing.T) {
	err := fmt.Errorf("entry 3: %w", violation(RuleSeed, "seed %d", 1))
	if got, want := err.Error(), "entry 3: rule seed: seed 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

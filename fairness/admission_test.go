package fairness

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// slowPace is the pace as RULES.md defines it, millisecond by millisecond.
type slowPace struct {
	rate, credit int64
	now, starts  Time
	paused       bool
}

func (p *slowPace) maxCredit() int64 { return max(p.rate*10_000, 60_000) }

func (p *slowPace) advance(to Time) {
	for ; p.now < to; p.now++ {
		if p.paused {
			continue
		}
		if p.now >= p.starts && p.credit < p.maxCredit() {
			p.credit = min(p.credit+p.rate, p.maxCredit())
		}
	}
}

func (p *slowPace) refund() { p.credit = min(p.credit, p.maxCredit()) + 60_000 }

func (p *slowPace) amend(rate int64) {
	p.rate = rate
	p.credit = min(p.credit, p.maxCredit())
}

// TestPaceAgreesWithMilliseconds applies the same operations to the pace and to the slow one, before and
// after the start.
func TestPaceAgreesWithMilliseconds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rates := []uint32{1, 2, 7, 59, 60, 61, 600, 12_345, MaxRate}
	for range 300 {
		rate := rates[r.IntN(len(rates))]
		starts := Time(r.IntN(30_000))
		fast := newPace(&Policy{Outflow: Outflow{PerMinute: rate}, Starts: starts})
		slow := &slowPace{rate: int64(rate), credit: 60_000, starts: starts}
		now, history := Time(0), ""
		for range 60 {
			switch r.IntN(3) {
			case 0:
				now += Time(r.IntN(100))
			case 1:
				now += Time(r.IntN(20_000))
			}
			slow.advance(now)
			switch r.IntN(8) {
			case 0:
				history += fmt.Sprintf(" %d:turn", now)
				fast = fast.toggle(now)
				slow.paused = !slow.paused
			case 1:
				history += fmt.Sprintf(" %d:refund", now)
				fast = fast.refund(now, 1)
				slow.refund()
			case 2:
				rate = rates[r.IntN(len(rates))]
				history += fmt.Sprintf(" %d:amend %d", now, rate)
				fast = fast.amend(now, Outflow{PerMinute: rate})
				slow.amend(int64(rate))
			case 3:
				history += fmt.Sprintf(" %d:call", now)
				fast = fast.at(now)
				cost := fast.credit / creditPerCall * creditPerCall
				fast.credit -= cost
				slow.credit -= slow.credit / 60_000 * 60_000
			}
			if got := fast.at(now); got.credit != slow.credit || got.paused != slow.paused {
				t.Fatalf("at %d: credit %d, want %d; starts %d,%s", now, got.credit, slow.credit, starts, history)
			}
		}
	}
}

// TestPaceNeverOverflows runs the fastest outflow through all of time.
func TestPaceNeverOverflows(t *testing.T) {
	most := int64(MaxRate) * 10_000
	p := newPace(&Policy{Outflow: Outflow{PerMinute: MaxRate}, Starts: 0})
	for _, now := range []Time{0, 1, 1, minute, Never / 2, Never - 1, Never - 1} {
		before := p.credit
		p = p.at(now)
		if p.credit < before || p.credit > most {
			t.Fatalf("at %d: credit %d after %d", now, p.credit, before)
		}
	}
	if p.credit != most {
		t.Errorf("credit %d after all of time, want %d", p.credit, most)
	}
	for range 1000 {
		p = p.refund(Never-1, 1)
	}
	if want := most + creditPerCall; p.credit != want {
		t.Errorf("credit %d after a thousand refunds, want %d", p.credit, want)
	}
	p = newPace(&Policy{Outflow: Outflow{PerMinute: 1}, Starts: 0}).toggle(0).toggle(Never - 1)
	if p = p.at(Never - 1); p.credit != creditPerCall {
		t.Errorf("credit %d after a pause of all time, want %d", p.credit, creditPerCall)
	}
}

func pause(at Time) *Amend  { return &Amend{Time: at, Change: ChangePause} }
func hold(at Time) *Amend   { return &Amend{Time: at, Change: ChangePause, Claims: true} }
func resume(at Time) *Amend { return &Amend{Time: at, Change: ChangeResume} }

func outflow(at Time, perMinute uint32) *Amend {
	return &Amend{Time: at, Change: ChangeOutflow, Outflow: Outflow{PerMinute: perMinute}}
}

// limit checks how many visitors may be called at a time, with [State.NextCall] and by trying calls.
func (r *script) limit(at Time, want int) {
	r.Helper()
	called := r.lanes.all[0].called()
	upTo, ok := r.callLimit(at, math.MaxUint64)
	if got := int(upTo) - int(called); ok != (want > 0) || ok && got != want {
		r.Fatalf("at base+%d: %d may be called (%v), want %d", at-base, got, ok, want)
	}
	if err := r.callWouldBe(at, called+Position(want)+1); err == nil {
		r.Fatalf("at base+%d: %d could be called, want only %d", at-base, want+1, want)
	}
	if want > 0 {
		if err := r.callWouldBe(at, upTo); err != nil {
			r.Fatalf("at base+%d: call up to %d: %v", at-base, upTo, err)
		}
	}
}

// callWouldBe returns the result of a call, applied to a copy of the state.
func (r *script) callWouldBe(at Time, upTo Position) error {
	s := *r.State
	s.lanes.all = slices.Clone(s.lanes.all)
	return s.Apply(&Call{at, []Position{upTo}}, nil)
}

// drawn returns a room that starts at base+1min with n drawn places.
func drawn(t testing.TB, n int, change func(*Policy)) *script {
	p := testPolicy()
	change(&p)
	r := newScript(t, p)
	r.join(base, n)
	r.settleWindows(base + minute)
	return r
}

func TestPaceFromTheStart(t *testing.T) {
	r := drawn(t, 300, func(p *Policy) { p.Starts = base + 2*minute })
	start := base + 2*minute
	if upTo, ok := r.callLimit(start-1, 1000); ok {
		t.Errorf("%d may be called before the start", upTo)
	}
	r.limit(start, 1) // no credit is saved up before the start
	r.limit(start+99, 1)
	r.limit(start+100, 2)
	r.limit(start+9_900, 100)
	r.limit(start+hourOf, 100)
	r.call(start+hourOf, 100)
	r.limit(start+hourOf, 0)
	r.limit(start+hourOf+99, 0)
	r.limit(start+hourOf+100, 1)
}

const hourOf = 60 * minute

func TestPaceSlowest(t *testing.T) {
	r := drawn(t, 9, func(p *Policy) { p.Outflow.PerMinute = 1 })
	r.call(base+minute, 1)
	r.limit(base+2*minute-1, 0)
	r.limit(base+2*minute, 1)
	r.limit(base+90*minute, 1) // one call is saved up, not ten seconds' worth
	r.call(base+90*minute, 2)
	r.limit(base+91*minute-1, 0)
	r.call(base+91*minute, 3)
}

func TestPaceInAPause(t *testing.T) {
	r := drawn(t, 300, func(*Policy) {})
	start := base + minute
	r.call(start, 1)
	r.must(pause(start + 150)) // half a call is saved up
	r.must(resume(start + hourOf))
	r.limit(start+hourOf, 1)
	r.call(start+hourOf, 2)
	r.limit(start+hourOf+49, 0)
	r.limit(start+hourOf+50, 1)
	// Several pauses at the same time change nothing.
	for range 3 {
		r.must(pause(start + hourOf + 20))
		r.must(resume(start + hourOf + 20))
	}
	r.limit(start+hourOf+49, 0)
	r.limit(start+hourOf+50, 1)
}

// TestGrace: in an outage the claim time of called visitors runs on for the grace, and then stands still.
func TestGrace(t *testing.T) {
	r := drawn(t, 3, func(p *Policy) { p.Grace = 10_000 })
	now := base + minute
	left := func(at Time, want Millis) {
		t.Helper()
		if st, _ := r.Standing(r.ticketAt(1), r.Size(), at); st.Left != want {
			t.Errorf("at base+%d: %d ms left, want %d", at-base, st.Left, want)
		}
	}
	r.call(now, 1)
	left(now+10*second, 20_000)
	left(now+hourOf, 20_000) // nothing was written for an hour
	r.refuse(RuleSkip, &Skip{now + hourOf, r.ticketAt(1), NoShow})
	r.must(&Beat{Time: now + hourOf})
	left(now+hourOf+5*second, 15_000)
	r.must(&Beat{Time: now + hourOf + 5*second})
	r.must(&Beat{Time: now + hourOf + 5*second}) // at the same time
	left(now+hourOf+15*second, 5000)
	r.must(&Amend{Time: now + hourOf + 6*second, Change: ChangeMessage}) // any entry shows that the room runs
	r.must(pause(now + hourOf + 7*second))
	r.must(&Beat{Time: now + hourOf + 9*second}) // the clock stands still
	r.must(resume(now + 2*hourOf))
	left(now+2*hourOf, 13_000)
	left(now+2*hourOf+second, 12_000)
	r.must(&Beat{Time: now + 2*hourOf + 8*second})
	r.must(&Beat{Time: now + 2*hourOf + 12_999})
	left(now+2*hourOf+12_999, 1)
	r.refuse(RuleSkip, &Skip{now + 2*hourOf + 12_999, r.ticketAt(1), NoShow})
	r.refuse(RuleAdmission, r.admission(now+2*hourOf+13*second, r.ticketAt(1)))
	r.must(&Skip{now + 2*hourOf + 13*second, r.ticketAt(1), NoShow})
}

func TestPauseBeforeTheStart(t *testing.T) {
	p := testPolicy()
	for _, tc := range []struct{ pause, resume, from Time }{
		{base - 2*second, base - second, base + minute},           // over long before
		{base - second, base + minute, base + minute},             // over at the start
		{base - second, base + 2*minute, base + 2*minute},         // over after it
		{base - second, base + minute - 1, base + minute},         // over a moment before
		{base + minute, base + minute, base + minute},             // at the start
		{base + minute, base + 3*minute, base + 3*minute},         // from the start on
		{base - minute, base + minute + 100, base + minute + 100}, // from the creation on
	} {
		r := newScript(t, p)
		type step struct {
			at Time
			do func(Time)
		}
		steps := []step{
			{tc.pause, func(at Time) { r.must(pause(at)) }},
			{tc.resume, func(at Time) { r.must(resume(at)) }},
			{base, func(at Time) { r.join(at, 300) }},
			{base + minute, r.settleWindows},
		}
		slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
		for _, step := range steps {
			r.over(step.at)
			step.do(step.at)
		}
		r.limit(tc.from, 1)
		r.limit(tc.from+99, 1)
		r.limit(tc.from+100, 2)
		r.call(tc.from, 1)
		st, _ := r.Standing(r.ticketAt(1), r.size, tc.from)
		if st.Left != p.Claim {
			t.Errorf("paused %d to %d: %d ms to claim, want %d", tc.pause-base, tc.resume-base, st.Left, p.Claim)
		}
	}
}

func TestPaceAmended(t *testing.T) {
	r := drawn(t, 5000, func(*Policy) {})
	start := base + minute
	r.call(start, 1)
	// 250 ms at 600 a minute, then 50 ms at 6000: 2.5 and 5 calls.
	r.must(outflow(start+250, 6000))
	r.limit(start+250, 2)
	r.limit(start+299, 7)
	// A faster room accumulates more credit, and slowing it down cuts that credit.
	r.limit(start+hourOf, 1000)
	r.must(outflow(start+hourOf, 60))
	r.limit(start+hourOf, 10)
	r.call(start+hourOf, 11)
	r.limit(start+hourOf+999, 0)
	r.limit(start+hourOf+1000, 1)
	// In a pause the saved credit is cut at once, and grows at the new rate afterwards.
	r.must(pause(start + 2*hourOf))
	r.must(outflow(start+2*hourOf, 1))
	r.must(outflow(start+2*hourOf, 6000))
	r.must(resume(start + 3*hourOf))
	r.limit(start+3*hourOf, 1)
	r.limit(start+3*hourOf+10, 2)
	if r.InForce().Outflow.PerMinute != 6000 {
		t.Errorf("outflow %+v", r.InForce().Outflow)
	}
}

func TestPaceAmendedBeforeTheStart(t *testing.T) {
	r := drawn(t, 100, func(p *Policy) { p.Starts = base + 3*minute })
	r.must(outflow(base+2*minute, 6000))
	r.limit(base+3*minute, 1)
	r.limit(base+3*minute+100, 11)
}

// TestClaimClockStandsStill pauses a room between a call and its claim.
func TestClaimClockStandsStill(t *testing.T) {
	r := drawn(t, 10, func(*Policy) {})
	line := []Ticket{r.ticketAt(1), r.ticketAt(2), r.ticketAt(3)}
	start := base + minute
	r.call(start+second, 3)
	r.must(pause(start + 11*second))
	left := func(at Time, want Millis) {
		t.Helper()
		if st, _ := r.Standing(line[0], r.size, at); st.Left != want || st.Status != StatusCalled {
			t.Errorf("at start+%d: %s, %d ms left, want called and %d", at-start, st.Status, st.Left, want)
		}
	}
	left(start+11*second, 20_000)
	left(start+hourOf, 20_000)
	r.refuse(RuleSkip, &Skip{start + hourOf, line[0], NoShow})
	r.must(r.admission(start+hourOf, line[1])) // a pause stops calls, not claims
	r.must(resume(start + hourOf))
	left(start+hourOf, 20_000)
	r.must(pause(start + hourOf + 5*second))
	r.must(resume(start + 2*hourOf))
	left(start+2*hourOf, 15_000)
	r.must(r.admission(start+2*hourOf+15*second-1, line[2]))
	r.refuse(RuleSkip, &Skip{start + 2*hourOf + 15*second - 1, line[0], NoShow})
	left(start+2*hourOf+20*second, 0)
	r.refuse(RuleAdmission, r.admission(start+2*hourOf+15*second, line[0]))
	r.must(&Skip{start + 2*hourOf + 15*second, line[0], NoShow})
}

func TestRefund(t *testing.T) {
	r := drawn(t, 400, func(*Policy) {})
	start := base + minute
	r.call(start, 1)
	r.call(start+second, 11)
	r.limit(start+second, 0)
	r.must(&Skip{start + second, r.ticketAt(200), Left}) // never called: nothing to refund
	r.limit(start+second, 0)
	r.must(&Skip{start + second, r.ticketAt(5), Left})
	r.limit(start+second, 1)
	r.must(&Skip{start + second, r.ticketAt(6), Revoked})
	r.limit(start+second, 2)
	r.must(r.admission(start+second, r.ticketAt(7))) // nothing is refunded
	r.limit(start+second, 2)
	r.call(start+second, 13)
	r.must(&Skip{start + 31*second, r.ticketAt(8), NoShow}) // on top of the full store: one more
	r.limit(start+31*second, 101)
	r.must(&Skip{start + 31*second, r.ticketAt(9), NoShow}) // and no more than one
	r.limit(start+31*second, 101)
	r.limit(start+hourOf, 101)
	// The same in a pause.
	r.must(pause(start + hourOf))
	r.must(&Skip{start + hourOf, r.ticketAt(10), Left})
	r.must(resume(start + hourOf))
	r.limit(start+hourOf, 101)
}

// TestNoCrowdAfterNoShows lets all visitors of the first window stay away while no others can be called.
// Calls of the next window must still follow the outflow, after one store of credit.
func TestNoCrowdAfterNoShows(t *testing.T) {
	p := testPolicy()
	p.Closes = Never
	r := newScript(t, p)
	r.join(base, 500)
	r.settleWindows(base + minute)
	now := base + minute
	for r.lanes.all[0].called() < 500 {
		now += second
		upTo, _ := r.callLimit(now, math.MaxUint64)
		r.call(now, upTo)
	}
	now += hourOf
	late, _ := r.NoShows(Scan{}, now, 1000)
	if len(late) != 500 {
		t.Fatalf("%d no-shows, want 500", len(late))
	}
	for _, ticket := range late {
		r.must(&Skip{now, ticket, NoShow})
	}
	r.join(now, 500)
	now += minute
	r.settleWindows(now)
	r.limit(now, 101)
}

// TestAdmissionsReachTheOutflow runs sales in which 30 % never claim and the others take up to half a minute.
// Once the first no-shows are known, admissions follow the outflow, and at no time have more visitors been
// admitted than the outflow allows since the start.
func TestAdmissionsReachTheOutflow(t *testing.T) {
	for _, tc := range []struct {
		perMinute uint32
		tick      Time
		measure   Time // measured for this long, after ten minutes
	}{
		{1, second, 600 * minute},
		{7, second, 100 * minute},
		{100, second, 10 * minute},
		{600, second, 10 * minute},
		{600, 100, 10 * minute},
		{600, 7 * second, 10 * minute},
		{3000, second, 8 * minute},
	} {
		t.Run(fmt.Sprintf("%d a minute every %d ms", tc.perMinute, tc.tick), func(t *testing.T) {
			p := testPolicy()
			p.Outflow.PerMinute = tc.perMinute
			r := &crowd{State: &State{}, random: rand.New(rand.NewPCG(1, uint64(tc.perMinute))), claims: map[Time][]Ticket{}}
			from, to := p.Starts+10*minute, p.Starts+10*minute+tc.measure
			r.open(t, p, 50+int(to-p.Starts)*int(tc.perMinute)/60_000*3/2)
			var before uint64
			for now := p.Starts; now < to; now += tc.tick {
				if now < from {
					before = r.Counts().Admitted
				}
				r.tick(t, now, tc.tick)
				most := 1 + uint64(now-p.Starts)*uint64(tc.perMinute)/60_000
				if got := r.Counts().Admitted; got > most {
					t.Fatalf("%d ms after the start %d are admitted, more than %d", now-p.Starts, got, most)
				}
			}
			if r.Counts().Called == r.Counts().Drawn {
				t.Fatal("no visitors are left to call: the room is too small for this test")
			}
			got := float64(r.Counts().Admitted-before) / (float64(tc.measure) / float64(minute))
			if want := float64(tc.perMinute); math.Abs(got-want) > 0.03*want {
				t.Errorf("%.2f admissions per minute, want %.0f", got, want)
			}
		})
	}
}

// crowd is a room with simulated visitors.
type crowd struct {
	*State
	oracle  fakeOracle
	random  *rand.Rand
	claims  map[Time][]Ticket // by number of the tick
	noShows Scan
}

func (c *crowd) must(t *testing.T, e Entry) {
	t.Helper()
	if err := c.Apply(e, &c.oracle); err != nil {
		t.Fatal(err)
	}
}

func (c *crowd) open(t *testing.T, p Policy, visitors int) {
	c.must(t, &Room{p})
	for i := range visitors {
		e, _ := c.NextArrive(p.Opens, numbered(uint64(i)), General)
		c.must(t, &e)
	}
	f, alpha, _ := c.NextFreeze(p.Starts, c.oracle.root)
	f.Proof = fakeProof(p.VRFKey, alpha)
	c.must(t, f)
	d, _ := c.NextDraw(p.Starts, nil)
	c.must(t, d)
}

// tick acts like a server: it admits visitors who claim, skips late ones, and calls.
func (c *crowd) tick(t *testing.T, now, every Time) {
	for _, ticket := range c.claims[now] {
		c.must(t, &Admit{now, ticket, NewPassID(c.policy.Origin, ticket)})
	}
	delete(c.claims, now)
	var late []Ticket
	late, c.noShows = c.NoShows(c.noShows, now, math.MaxInt)
	for _, ticket := range late {
		c.must(t, &Skip{now, ticket, NoShow})
	}
	called := c.lanes.all[0].called()
	upTo, ok := c.callLimit(now, math.MaxUint64)
	if !ok {
		return
	}
	c.must(t, &Call{now, []Position{upTo}})
	for p := called + 1; p <= upTo; p++ {
		if c.random.IntN(10) >= 3 {
			at := now + Time(1+c.random.IntN(int(Time(c.policy.Claim)/every)-1))*every
			c.claims[at] = append(c.claims[at], c.at(&c.lanes.all[0], p).ticket)
		}
	}
}

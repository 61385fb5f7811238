package fairness

import (
	"math/rand/v2"
	"testing"
)

// fair is a room with random lanes and parties, whose calls are watched.
type fair struct {
	*script
	random *rand.Rand
	now    Time
	seen   map[Ticket]Standing // of tickets in line, when they were last looked at
}

func newFair(t *testing.T, seed uint64) *fair {
	random := rand.New(rand.NewPCG(seed, 3))
	p := testPolicy()
	p.Lanes = lanesOf(2 + random.IntN(4))
	for i := range p.Lanes {
		p.Lanes[i].Weight = uint32(1 + random.IntN(int(MaxWeight)))
	}
	if random.IntN(2) == 0 {
		p.Party = uint32(2 + random.IntN(int(MaxParty)-1))
	}
	p.Outflow.PerMinute = MaxRate
	p.Starts, p.Closes, p.Claim = p.Opens, Never, MinClaim
	return &fair{newScript(t, p), random, base, map[Ticket]Standing{}}
}

// join joins a random number of tickets in every lane, for random numbers of seats.
func (f *fair) join() {
	f.over(f.now)
	for i := range f.lanes.all {
		for range f.random.IntN(20) {
			ticket := numbered(f.joined)
			f.joined++
			e, _ := f.NextArrive(f.now, ticket, f.lanes.all[i].name)
			if seats := 1 + f.random.IntN(int(max(f.policy.Party, 1))); seats > 1 {
				e.Seats = uint32(seats)
			}
			f.must(&e)
		}
	}
}

// leave skips some tickets, in line or called, and admits some.
func (f *fair) leave() {
	for range f.random.IntN(6) {
		ticket := numbered(f.random.Uint64N(f.joined + 1))
		switch st, ok := f.Standing(ticket, f.size, f.now); {
		case !ok || st.Status == StatusSkipped || st.Status == StatusAdmitted:
		case st.Status == StatusCalled && st.Left > 0:
			f.must(&Admit{f.now, ticket, NewPassID(f.policy.Origin, ticket)})
		default:
			f.must(&Skip{f.now, ticket, Left})
		}
	}
}

// call calls people one at a time, and compares the seats of each pair of lanes from a moment on at which both have
// people: they differ from the shares by at most the largest party of each.
func (f *fair) call(people uint64) {
	f.Helper()
	type service struct{ before, ready uint64 }
	from := make([]service, len(f.lanes.all))
	for i, l := range f.lanes.all {
		from[i] = service{l.held, l.ready}
	}
	party := float64(max(f.policy.Party, 1))
	for range people {
		e, n := f.NextCall(f.now, 1)
		if n == 0 {
			return
		}
		for i, l := range f.lanes.all {
			if e.UpTo[i] < l.called() {
				f.Fatalf("the pointer of lane %d goes from %d to %d", i, l.called(), e.UpTo[i])
			}
		}
		f.must(e)
		for i, a := range f.lanes.all {
			for j, b := range f.lanes.all {
				if a.ready == 0 || b.ready == 0 || from[i].ready == 0 || from[j].ready == 0 {
					continue
				}
				mine, other := a.held-from[i].before, b.held-from[j].before
				weight, others := float64(f.policy.Lanes[i].Weight), float64(f.policy.Lanes[j].Weight)
				// the floor of the steps adds less than 1 in 10,000
				if behind := float64(other)/others - float64(mine)/weight; behind > party*(1/weight+1/others)*1.001+0.001 {
					f.Fatalf("lane %d of weight %v got %d, while lane %d of weight %v got %d", i, weight, mine, j, others, other)
				}
			}
		}
	}
}

// look checks that no ticket has moved back since it was last looked at: neither in its lane nor, at worst, among all.
func (f *fair) look() {
	f.Helper()
	for n := range f.joined {
		ticket := numbered(n)
		st, _ := f.Standing(ticket, f.size, f.now)
		was, ok := f.seen[ticket]
		if st.Status != StatusDrawn {
			delete(f.seen, ticket)
			continue
		}
		estimate := f.policy.HasGaps() && f.policy.Party > 0 // of the tickets before
		if ok && (st.Position != was.Position || st.AheadMax > was.AheadMax || st.BeforeMax > was.BeforeMax && !estimate) {
			f.Fatalf("a ticket moves back: %+v, was %+v", st, was)
		}
		if st.BeforeMin > st.BeforeMax {
			f.Fatalf("more than %d and at most %d before", st.BeforeMin, st.BeforeMax)
		}
		f.seen[ticket] = st
	}
}

// TestShares plays rooms with random lanes, parties, arrivals, departures, claims and calls. While a lane has people
// to serve, it is never further behind its share than the largest party; pointers and places never go back; and in
// the end every ticket has been called.
func TestShares(t *testing.T) {
	rooms := uint64(1000)
	if testing.Short() {
		rooms = 50
	}
	for seed := range rooms {
		f := newFair(t, seed)
		for range 6 {
			f.join()
			f.now += minute
			f.settleWindows(f.now)
			f.look()
			f.leave()
			f.look()
			f.call(uint64(f.random.IntN(60)))
			f.look()
		}
		f.call(f.joined)
		for n := range f.joined {
			if st, _ := f.Standing(numbered(n), f.size, f.now); st.Status == StatusDrawn || st.Status == StatusWaiting {
				t.Fatalf("room %d: ticket %d is never called: %+v", seed, n, st)
			}
		}
	}
}

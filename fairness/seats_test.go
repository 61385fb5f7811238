package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/proofline/proofline/vrf"
)

// parties returns a room with parties of up to 4 and a number of seats, whose pace is no limit.
func parties(t testing.TB, seats uint32) *script {
	p := testPolicy()
	p.Party, p.Seats = 4, seats
	p.Outflow.PerMinute = MaxRate
	p.Starts, p.Closes = p.Opens, Never
	return newScript(t, p)
}

// party joins a new ticket for n seats.
func (r *script) party(at Time, n uint32) Ticket {
	r.Helper()
	r.over(at)
	ticket := numbered(r.joined)
	r.joined++
	e, _ := r.NextArrive(at, ticket, General)
	if e.Seats = n; n == 1 {
		e.Seats = 0
	}
	r.must(&e)
	return ticket
}

func TestPartySizes(t *testing.T) {
	r := parties(t, 0)
	for _, n := range []uint32{1, 5, 6, 256, 1<<32 - 1} {
		e, _ := r.NextArrive(base, ticket1, General)
		e.Seats = n
		r.refuse(RuleArrival, &e)
	}
	for _, n := range []uint32{1, 2, 4} {
		st, _ := r.Standing(r.party(base, n), r.size, base)
		if st.Seats != n {
			t.Errorf("%d seats, want %d", st.Seats, n)
		}
	}
	plain := newScript(t, testPolicy())
	for _, n := range []uint32{1, 2} {
		plain.refuse(RuleArrival, &Arrive{base, 0, 0, ticket1, General, n, nil})
	}
}

// TestPartyPace: a party costs the credit of its seats, gets it back, and fits into the store of a slow room.
func TestPartyPace(t *testing.T) {
	p := testPolicy()
	p.Party, p.Outflow.PerMinute = 4, 6 // one seat in 10 s: ten seconds' worth is one
	r := newScript(t, p)
	first := r.party(base, 4)
	r.settleWindows(base + minute)
	now := base + minute
	r.refuse(RuleOutflow, &Call{now, []Position{1}})
	r.refuse(RuleOutflow, &Call{now + 29_999, []Position{1}})
	r.call(now+30_000, 1)
	r.must(&Skip{now + 30_000, first, Left}) // gives four back
	later := r.party(now+30_000, 4)
	r.settleWindows(now + 40_000)
	r.call(now+40_000, 2)
	if st, _ := r.Standing(later, r.size, now+40_000); st.Status != StatusCalled {
		t.Errorf("%+v", st)
	}
}

// TestSeats: no more seats are called than there are; no-shows and leavers give theirs back, admitted ones do not.
func TestSeats(t *testing.T) {
	r := parties(t, 5)
	for range 4 {
		r.party(base, 2)
	}
	now := base + minute
	r.settleWindows(now)
	r.refuse(RuleSeats, &Call{now, []Position{3}})
	e, people := r.NextCall(now, 100)
	if people != 2 || e.UpTo[0] != 2 {
		t.Fatalf("%d people up to %v", people, e.UpTo)
	}
	r.must(e)
	r.refuse(RuleSeats, &Call{now, []Position{3}})
	r.must(r.admission(now, r.ticketAt(1)))
	r.refuse(RuleSkip, &Skip{now, r.ticketAt(3), TooLarge}) // the other called one may give two back
	r.must(&Skip{now, r.ticketAt(2), Left})
	r.refuse(RuleSkip, &Skip{now, r.ticketAt(3), TooLarge}) // three are left for two
	r.call(now, 3)
	r.must(r.admission(now, r.ticketAt(3)))
	r.refuse(RuleSeats, &Call{now, []Position{4}})
	if got := r.Counts(); got.Sold != 4 || got.Held != 0 || got.Seats != 8 {
		t.Errorf("counts %+v", got)
	}
	if ticket, ok := r.TooLarge(); !ok || ticket != r.ticketAt(4) {
		t.Errorf("too large: %v, %v", ticket, ok)
	}
	r.must(&Skip{now, r.ticketAt(4), TooLarge})
	if _, ok := r.TooLarge(); ok {
		t.Error("a ticket is proposed, but none is left")
	}
}

// TestPartyBlocksNobody: behind a party that is too large for what is left, the line goes on.
func TestPartyBlocksNobody(t *testing.T) {
	r := parties(t, 1)
	r.party(base, 4)
	r.settleWindows(base + minute)
	single := r.party(base+minute, 1)
	now := base + minute + 10*second
	r.settleWindows(now)
	if e, _ := r.NextCall(now, 100); e != nil {
		t.Fatalf("call %+v", e)
	}
	r.refuse(RuleSkip, &Skip{now, single, TooLarge}) // not its turn
	large, ok := r.TooLarge()
	if !ok || large == single {
		t.Fatalf("too large: %v, %v", large, ok)
	}
	r.must(&Skip{now, large, TooLarge})
	r.call(now, 2)
	if st, _ := r.Standing(single, r.size, now); st.Status != StatusCalled {
		t.Errorf("%+v", st)
	}
}

// TestPartyRestored: a party that gets its place back is next again, in front of those that were passed over meanwhile.
func TestPartyRestored(t *testing.T) {
	r := parties(t, 3)
	for range 4 {
		r.party(base, 4)
	}
	r.settleWindows(base + minute)
	now := base + minute
	r.must(&Skip{now, r.ticketAt(1), Revoked})
	r.must(&Skip{now, r.ticketAt(2), TooLarge})
	mark := r.Mark()
	r.must(&Restore{now, r.ticketAt(1)})
	r.refuse(RuleSkip, &Skip{now, r.ticketAt(3), TooLarge})
	r.must(&Skip{now, r.ticketAt(1), TooLarge})
	r.must(&Skip{now, r.ticketAt(3), TooLarge})
	r.Undo(mark)
	if ticket, ok := r.TooLarge(); !ok || ticket != r.ticketAt(3) {
		t.Errorf("too large after an undo: %v, %v", ticket, ok)
	}
}

func TestAmendSeats(t *testing.T) {
	seats := func(at Time, n uint32) *Amend { return &Amend{Time: at, Change: ChangeSeats, Seats: n} }
	plain := newScript(t, testPolicy())
	plain.refuse(RuleAmend, seats(base, 10)) // the policy has no number to change
	r := parties(t, 4)
	r.party(base, 3)
	r.must(seats(base, 3))
	r.must(r.freeze(base + minute))
	r.refuse(RuleAmend, seats(base+minute, 9)) // the draw is awaited
	d, _ := r.NextDraw(base+minute, nil)
	r.must(d)
	r.call(base+minute, 1)
	r.refuse(RuleAmend, seats(base+minute, 2))
	r.refuse(RuleAmend, seats(base+minute, 0))
	r.must(seats(base+minute, 3))
	r.must(r.admission(base+minute, r.ticketAt(1)))
	r.refuse(RuleAmend, seats(base+minute, 2))
	if r.InForce().Seats != 3 {
		t.Errorf("%d seats", r.InForce().Seats)
	}
}

// TestPartiesShare: virtual time counts seats, so lanes share seats and not tickets.
func TestPartiesShare(t *testing.T) {
	p := testPolicy()
	p.Lanes, p.Party, p.Starts = lanesOf(2), 4, p.Opens
	p.Lanes[1].Weight, p.Outflow.PerMinute = 1, MaxRate
	r := newScript(t, p)
	for i := range 200 {
		e, _ := r.NextArrive(base, numbered(uint64(i)), p.Lanes[i%2].Name)
		if i%2 == 0 {
			e.Seats = 4
		}
		r.must(&e)
	}
	r.settleWindows(base + minute)
	if got := r.callNext(base+minute, 100); !slices.Equal(got, []Position{20, 80}) {
		t.Errorf("%v are called, want 80 seats of each lane", got)
	}
}

// peekNext returns the lane whose turn it is, as its index.
func (s *State) peekNext() (lane int, number uint32, ok bool) {
	t := newTurns(s)
	return t.peek()
}

// makeSeatsRoom plays the room with parties and seats of the vectors.
func makeSeatsRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	p := vectorPolicy(t, key)
	p.Lanes, p.Party, p.Seats, p.Claim = []LaneRule{{"members", 3, nil}, {General, 7, nil}}, 4, 9, 60_000
	s.must(&Room{p})
	party := func(at Time, visitor int, lane Lane, seats uint32) *Arrive {
		e, _ := s.NextArrive(at, NewTicket(p.Origin, vectorSecret(visitor)), lane)
		e.Seats = seats
		return &e
	}
	for i, seats := range []uint32{0, 4, 2, 3, 0, 4} {
		s.must(party(p.Opens, i, p.Lanes[i%2].Name, seats))
	}
	s.refuse(RuleArrival, party(p.Opens, 9, General, 5))
	s.refuse(RuleArrival, party(p.Opens, 9, General, 1))
	s.refuse(RuleAmend, &Amend{Time: p.Opens, Change: ChangeSeats})
	s.must(&Amend{Time: p.Opens, Change: ChangeSeats, Seats: 8})
	s.lanesDraw(p.Starts)
	for now := p.Starts + 20_000; ; now += 5_000 {
		e, _ := s.NextCall(now, 1)
		if e == nil {
			break
		}
		s.must(e)
	}
	now := p.Starts + 50_000
	for i := range s.lanes.all { // nothing is left for a party that is next
		l := &s.lanes.all[i]
		if l.called() < l.places {
			next := &Call{now, []Position{s.lanes.all[0].called(), s.lanes.all[1].called()}}
			next.UpTo[i]++
			if lane, _, _ := s.peekNext(); lane == i {
				s.refuse(RuleSeats, next)
			}
			s.refuse(RuleSkip, &Skip{now, s.at(l, l.places).ticket, TooLarge}) // a called visitor may give seats back
		}
	}
	s.refuse(RuleAmend, &Amend{Time: now, Change: ChangeSeats, Seats: 1})
	for i := range s.lanes.all {
		for n := range s.lanes.all[i].called() {
			ticket := s.at(&s.lanes.all[i], n+1).ticket
			s.must(&Admit{now, ticket, NewPassID(p.Origin, ticket)})
		}
	}
	for {
		ticket, ok := s.TooLarge()
		if !ok {
			break
		}
		s.must(&Skip{now, ticket, TooLarge})
	}
	s.must(&Amend{Time: now, Change: ChangeSeats, Seats: 20})
	s.must(&End{now})
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}

package fairness

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/table"
)

// TestZeroState calls all methods for a room without entries.
func TestZeroState(t *testing.T) {
	var s State
	if e, ok := s.NextArrive(base, ticket1, General); ok {
		t.Errorf("arrive %+v", e)
	}
	if at, ok := s.FreezeDue(); ok {
		t.Errorf("freeze due at %d", at)
	}
	if e, _, ok := s.NextFreeze(base, hash1); ok {
		t.Errorf("freeze %+v", e)
	}
	if e, ok := s.NextDraw(base, nil); ok {
		t.Errorf("draw %+v", e)
	}
	if e, ok := s.NextAssign(); ok {
		t.Errorf("assign %+v", e)
	}
	if upTo, ok := s.callLimit(base, 1); ok {
		t.Errorf("call up to %d", upTo)
	}
	if late, next := s.NoShows(Scan{}, base, 1); late != nil || len(next.lanes) > 0 {
		t.Errorf("no-shows %v, then from %v", late, next)
	}
	if st, ok := s.Standing(ticket1, math.MaxUint64, base); ok || s.Knows(ticket1) {
		t.Errorf("standing %+v", st)
	}
	if s.Size() != 0 || s.Now() != 0 || s.Counts() != (Counts{}) || s.Ended() || s.InForce().Paused || s.Schedule() != nil || len(s.Windows(9)) != 0 {
		t.Errorf("a room without entries is not empty: %+v", s)
	}
}

// TestNothingAfterTheEnd ends a room in which everything is due.
func TestNothingAfterTheEnd(t *testing.T) {
	r, line := inSale(t)
	r.call(base+minute, 1)
	r.must(r.freeze(base + 70*second))
	r.join(base+70*second, 1)
	now := base + 100*second
	proposals := func() (list []string) {
		if _, ok := r.NextArrive(now, ticket1, General); ok {
			list = append(list, "arrive")
		}
		if _, _, ok := r.NextFreeze(now, hash1); ok {
			list = append(list, "freeze")
		}
		if _, ok := r.NextDraw(now, nil); ok {
			list = append(list, "draw")
		}
		if _, ok := r.callLimit(now, 1); ok {
			list = append(list, "call")
		}
		if late, _ := r.NoShows(Scan{}, now, 1); len(late) > 0 {
			list = append(list, "skip")
		}
		return list
	}
	if diff := cmp.Diff([]string{"arrive", "freeze", "draw", "call", "skip"}, proposals()); diff != "" {
		t.Errorf("before the end (-want +got):\n%s", diff)
	}
	d, _ := r.NextDraw(base+79*second, nil)
	r.must(d)
	if _, ok := r.NextAssign(); !ok {
		t.Error("no assignment is due after a draw")
	}
	r.must(&End{now})
	if got := proposals(); got != nil {
		t.Errorf("after the end %v may be written", got)
	}
	if e, ok := r.NextAssign(); ok {
		t.Errorf("after the end %+v may be written", e)
	}
	if due, ok := r.FreezeDue(); !ok || due != base+80*second {
		t.Errorf("the window left open was over at %d, %v", due, ok)
	}
	if st, _ := r.Standing(line[0], r.Size(), now); st.Status != StatusCalled {
		t.Errorf("the first in line is %s after the end", st.Status)
	}
}

func TestNextCall(t *testing.T) {
	r := drawn(t, 20, func(*Policy) {})
	now := base + minute + second // eleven may be called
	for _, p := range []Position{2, 3, 8, 9, 10, 20} {
		r.must(&Skip{now, r.ticketAt(p), Left})
	}
	for _, tc := range []struct {
		capacity uint64
		want     Position
	}{
		{1, 1}, // places 2 and 3 were given up, and the pointer rests on the last one served
		{2, 4}, {5, 7}, {6, 11}, {10, 15}, {11, 16}, {12, 16}, {math.MaxUint64, 16},
	} {
		if got, ok := r.callLimit(now, tc.capacity); !ok || got != tc.want {
			t.Errorf("for %d people: up to %d, %v; want %d", tc.capacity, got, ok, tc.want)
		}
	}
	if got, ok := r.callLimit(now, 0); ok {
		t.Errorf("for 0 visitors: up to %d", got)
	}
	r.call(now, 1)
	if got, ok := r.callLimit(now, 0); ok {
		t.Errorf("for 0 visitors, with places given up ahead: up to %d", got)
	}
	r.refuse(RuleCall, &Call{now, []Position{3}}) // calls nobody
	r.refuse(RuleCall, &Call{now, []Position{5, 0}})
	r.refuse(RuleCall, &Call{now, []Position{8}}) // rests on a place that was given up
	r.must(pause(now))
	if got, ok := r.callLimit(now+minute, 100); ok {
		t.Errorf("in a pause: up to %d", got)
	}
	r.must(resume(now))
	r.call(now+minute, 19)
	if got, ok := r.callLimit(now+2*minute, 100); ok {
		t.Errorf("behind the last place: up to %d", got)
	}
	if got := r.Counts(); got.Called != 19 || got.Waiting != 14 {
		t.Errorf("counts %+v", got)
	}
}

func TestNoShows(t *testing.T) {
	r := drawn(t, 12, func(*Policy) {})
	at := func(ps ...Position) (list []Ticket) {
		for _, p := range ps {
			list = append(list, r.ticketAt(p))
		}
		return list
	}
	now := base + minute + second
	r.call(now, 6)
	r.must(r.admission(now, r.ticketAt(2)))
	r.must(&Skip{now, r.ticketAt(3), Left})
	r.call(now+second, 9)
	first, second := now+Time(r.policy.Claim), now+second+Time(r.policy.Claim)
	for _, tc := range []struct {
		from Position
		at   Time
		most int
		want []Ticket
		next Position
	}{
		{0, first - 1, 99, nil, 1},
		{0, first, 99, at(1, 4, 5, 6), 7},
		{1, first, 99, at(1, 4, 5, 6), 7},
		{2, first, 99, at(4, 5, 6), 7},
		{5, first, 99, at(5, 6), 7},
		{7, first, 99, nil, 7},
		{0, first, 0, nil, 1},
		{0, first, 1, at(1), 2},
		{2, first, 1, at(4), 5},
		{0, first, 4, at(1, 4, 5, 6), 7},
		{0, second, 99, at(1, 4, 5, 6, 7, 8, 9), 10},
		{10, second, 99, nil, 10},
		{11, Never - 1, 99, nil, 11},
		{1 << 62, second, 99, nil, 1 << 62},
	} {
		got, next := r.NoShows(Scan{lanes: []Position{tc.from}}, tc.at, tc.most)
		if diff := cmp.Diff(tc.want, got); diff != "" || next.lanes[0] != tc.next {
			t.Errorf("from %d at %d, most %d: next %v, want %d; tickets (-want +got):\n%s", tc.from, tc.at-first, tc.most, next, tc.next, diff)
		}
	}
	got, _ := r.NoShows(Scan{}, first, 2)
	if diff := cmp.Diff(at(1, 4), got); diff != "" {
		t.Errorf("from the beginning (-want +got):\n%s", diff)
	}
}

// TestNoShowsExtended: a ticket with more time does not hold up those behind, and is found when its own time is over.
func TestNoShowsExtended(t *testing.T) {
	r := drawn(t, 12, func(p *Policy) { p.Extend = 10_000 })
	at := func(ps ...Position) (list []Ticket) {
		for _, p := range ps {
			list = append(list, r.ticketAt(p))
		}
		return list
	}
	now := base + minute + second
	r.call(now, 6)
	r.must(&Extend{now + second, r.ticketAt(5)})
	r.must(&Extend{now + second, r.ticketAt(1)})
	r.must(&Extend{now + second, r.ticketAt(3)})
	over := now + Time(r.policy.Claim)
	r.must(r.admission(over, r.ticketAt(3)))
	var next Scan
	for _, tc := range []struct {
		at   Time
		most int
		want []Ticket
	}{
		{over - 1, 99, nil},
		{over, 2, at(2, 4)},
		{over, 99, at(6)},
		{over + 9_999, 99, nil},
		{over + 10_000, 1, at(5)},
		{over + 10_000, 99, at(1)},
		{over + 20_000, 99, nil},
	} {
		var got []Ticket
		got, next = r.NoShows(next, tc.at, tc.most)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("at %d, most %d (-want +got):\n%s", tc.at-over, tc.most, diff)
		}
		for _, ticket := range got {
			r.must(&Skip{tc.at, ticket, NoShow})
		}
	}
	if next.claims != 3 || next.lanes[0] != 7 {
		t.Errorf("next %+v", next)
	}
}

// TestStanding follows one ticket through its life.
func TestStanding(t *testing.T) {
	r := newScript(t, testPolicy())
	r.join(base, 3)
	ticket := r.join(base+500, 1)[0]
	joined := r.Size()
	want := Standing{
		Ticket: ticket, Index: 4, Joined: base + 500, Window: Window{0, base, base + minute}, Seq: 3, Lane: General, Seats: 1,
		Status: StatusWaiting, AheadMax: 3,
	}
	check := func(when string, size uint64, now Time) {
		t.Helper()
		got, ok := r.Standing(ticket, size, now)
		want.BeforeMin, want.BeforeMax = want.AheadMin, want.AheadMax   // there is one lane
		want.TicketsMin, want.TicketsMax = want.AheadMin, want.AheadMax // of a plain room
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("joined", joined, base+500)
	if st, ok := r.Standing(ticket, joined-1, base+500); ok || st != (Standing{}) {
		t.Errorf("before it joined: %+v", st)
	}
	r.join(base+second, 2)
	check("at a size before others joined", joined, base+second)
	want.AheadMax = 5
	check("others joined", r.Size(), base+second)

	r.must(r.freeze(base + minute))
	check("frozen", r.Size(), base+minute)
	d, _ := r.NextDraw(base+minute, nil)
	r.must(d)
	place := Position(r.arrivals.At(3).position)
	before := want
	want.Status, want.Position, want.AheadMin, want.AheadMax = StatusDrawn, place, uint64(place)-1, uint64(place)-1
	check("drawn", r.Size(), base+minute)
	drawnAt := r.Size()
	drawnStanding := want

	now := base + minute + second
	r.call(now, place)
	want.Status, want.AheadMin, want.AheadMax, want.Left = StatusCalled, 0, 0, 30_000
	check("called", r.Size(), now)
	want.Left = 1
	check("at the last moment", r.Size(), now+30*second-1)
	want.Left = 0
	check("too late", r.Size(), now+hourOf)

	want.Left, want.Settled, want.SettledIndex = 0, now+second, EntryIndex(r.Size())
	r.must(r.admission(now+second, ticket))
	want.Status = StatusAdmitted
	check("admitted", r.Size(), now+second)

	want = drawnStanding
	check("at the size of the draw", drawnAt, now+second)
	want = before
	check("at the size before it", drawnAt-1, now+second)

	late := r.join(now+second, 1)[0]
	if st, _ := r.Standing(late, r.Size(), now+second); st.AheadMin != 6-uint64(place) || st.AheadMax != st.AheadMin {
		t.Errorf("in the next window: %d to %d ahead, want %d", st.AheadMin, st.AheadMax, 6-place)
	}
}

func TestWindows(t *testing.T) {
	r := newScript(t, testPolicy())
	r.join(base, 2)
	r.join(base+minute, 1)
	r.join(base+100*second, 3)
	d, _ := r.NextDraw(base+100*second, nil)
	r.must(d)
	all := []WindowSum{
		{Window{0, base, base + minute}, 2, []uint32{2}, true, true, base + minute, 1},
		{Window{1, base + minute, base + 70*second}, 1, []uint32{1}, true, false, base + 70*second, 0},
		{Window{5, base + 100*second, base + 110*second}, 3, []uint32{3}, false, false, base + 110*second, 0},
	}
	for _, tc := range []struct{ n, want int }{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 3}, {math.MaxInt, 3}, {-1, 0}, {math.MinInt, 0}} {
		if diff := cmp.Diff(all[3-tc.want:], r.Windows(tc.n)); diff != "" {
			t.Errorf("the latest %d (-want +got):\n%s", tc.n, diff)
		}
	}
}

// TestArrivalsInPieces fills several chunks and looks up every ticket.
func TestArrivalsInPieces(t *testing.T) {
	var s State
	oracle := &fakeOracle{}
	p := testPolicy()
	if err := s.Apply(&Room{p}, oracle); err != nil {
		t.Fatal(err)
	}
	const n = 2*table.PieceSize + 1
	for i := range uint64(n) {
		e, _ := s.NextArrive(base, numbered(i), General)
		if err := s.Apply(&e, oracle); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(n) {
		st, ok := s.Standing(numbered(i), s.Size(), base)
		if !ok || uint64(st.Seq) != i || uint64(st.Index) != i+1 || st.AheadMax != n-1 {
			t.Fatalf("arrival %d: %+v, %v", i, st, ok)
		}
	}
}

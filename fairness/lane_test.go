package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/proofline/proofline/vrf"
)

// laned returns a room with lanes of these weights, whose pace is no limit.
func laned(t testing.TB, weights ...uint32) *script {
	p := testPolicy()
	p.Lanes = lanesOf(len(weights))
	for i, w := range weights {
		p.Lanes[i].Weight = w
	}
	p.Outflow.PerMinute = MaxRate
	p.Starts, p.Closes = p.Opens, Never
	return newScript(t, p)
}

// joinLane joins n new tickets in a lane, given by its index.
func (r *script) joinLane(at Time, lane, n int) (tickets []Ticket) {
	r.Helper()
	r.over(at)
	for range n {
		ticket := numbered(r.joined)
		r.joined++
		e, ok := r.NextArrive(at, ticket, r.lanes.all[lane].name)
		if !ok {
			r.Fatalf("no window is open at base+%d", at-base)
		}
		r.must(&e)
		tickets = append(tickets, ticket)
	}
	return tickets
}

// callNext calls n people, and returns how many of each lane were called before.
func (r *script) callNext(at Time, n uint64) []Position {
	r.Helper()
	e, people := r.NextCall(at, n)
	if people != n {
		r.Fatalf("%d people are called, want %d", people, n)
	}
	r.must(e)
	return e.UpTo
}

func TestLanesShareByWeight(t *testing.T) {
	r := laned(t, 70, 30)
	r.joinLane(base, 0, 1000)
	r.joinLane(base, 1, 1000)
	r.settleWindows(base + minute)
	for i, want := range [][]Position{{1, 1}, {2, 1}, {3, 1}, {3, 2}, {4, 2}, {5, 2}, {5, 3}, {6, 3}} {
		now := base + minute + Time(i)
		if i == 0 {
			if got := r.callNext(now, 1); !slices.Equal(got, []Position{1, 0}) { // ties go to the first lane
				t.Fatalf("first %v", got)
			}
		}
		if got := r.callNext(now, 1); !slices.Equal(got, want) {
			t.Fatalf("after %d people %v are called, want %v", i+2, got, want)
		}
	}
	if got := r.callNext(base+2*minute, 991); got[0] != 700 || got[1] != 300 {
		t.Errorf("of 1000 people %v are called", got)
	}
	// The other lane uses what a lane without people leaves.
	if got := r.callNext(base+2*minute, 1000); got[0] != 1000 || got[1] != 1000 {
		t.Errorf("of 2000 people %v are called", got)
	}
	if e, n := r.NextCall(base+2*minute, 1); e != nil || n != 0 {
		t.Errorf("%v calls %d of nobody", e, n)
	}
}

// TestLaneSavesNothing leaves a lane without people for long, and lets it compete again.
func TestLaneSavesNothing(t *testing.T) {
	r := laned(t, 1, 1)
	r.joinLane(base, 0, 1000)
	r.joinLane(base, 1, 1)
	r.settleWindows(base + minute)
	r.callNext(base+minute, 500)
	r.joinLane(base+minute, 1, 100)
	r.settleWindows(base + minute + 10*second)
	before := r.lanes.all[0].called()
	r.callNext(base+2*minute, 100)
	if gained := r.lanes.all[0].called() - before; gained < 49 || gained > 50 {
		t.Errorf("of 100 people %d are of the lane that was served alone", gained)
	}
}

// TestLaneOfSkippedPeople empties a lane by skips: then it has nobody to serve, and saves nothing either.
func TestLaneOfSkippedPeople(t *testing.T) {
	r := laned(t, 1, 1)
	r.joinLane(base, 0, 300)
	leavers := r.joinLane(base, 1, 50)
	r.settleWindows(base + minute)
	for _, ticket := range leavers {
		r.must(&Skip{base + minute, ticket, Left})
	}
	if got := r.callNext(base+minute, 100); got[0] != 100 || got[1] != 0 {
		t.Fatalf("%v are called", got)
	}
	r.refuse(RuleCall, &Call{base + minute, []Position{100, 50}})
	r.refuse(RuleCall, &Call{base + minute, []Position{101, 50}})
	gone := r.joinLane(base+minute, 1, 40)
	r.must(&Skip{base + minute, gone[7], Left})
	r.settleWindows(base + minute + 10*second)
	if got := r.callNext(base+2*minute, 20); got[0] != 110 {
		t.Errorf("%v are called, want 110 of the first lane", got)
	}
}

func TestCallOfLanes(t *testing.T) {
	r := laned(t, 2, 1, 5)
	for lane, n := range []int{30, 30, 10} {
		r.joinLane(base, lane, n)
	}
	now := base + minute
	r.refuse(RuleCall, &Call{now - 1, []Position{1, 0, 0}}) // nothing is drawn
	r.settleWindows(now)
	for _, upTo := range [][]Position{
		{}, {1}, {1, 0}, {1, 0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 0, 1}, {2, 0, 0}, {1, 2, 0}, {31, 31, 31}, {2, 1, 2}, {1 << 62, 1, 1},
	} {
		r.refuse(RuleCall, &Call{now, upTo})
	}
	r.must(&Call{now, []Position{1, 1, 3}})
	r.refuse(RuleCall, &Call{now, []Position{1, 1, 3}})
	r.refuse(RuleCall, &Call{now, []Position{2, 1, 2}})
	r.refuse(RuleCall, &Call{now, []Position{0, 1, 4}})
	r.must(&Call{now, []Position{2, 1, 3}})
}

// TestLanesDrawn compares the lines of a window with the shuffles of its lanes, and the order of assignments.
func TestLanesDrawn(t *testing.T) {
	r := laned(t, 1, 1, 1)
	var joined [3][]Ticket
	for _, lane := range []int{0, 2, 2, 0, 2, 2, 2, 0} {
		joined[lane] = append(joined[lane], r.joinLane(base, lane, 1)...)
	}
	f := r.freeze(base + minute)
	if !slices.Equal(f.Lots, []uint32{3, 0, 5}) {
		t.Fatalf("lots %v", f.Lots)
	}
	for _, lots := range [][]uint32{{8}, {3, 5}, {5, 0, 3}, {3, 0, 5, 0}} {
		bad := *f
		bad.Lots = lots
		r.refuse(RuleFreeze, &bad)
	}
	r.must(f)
	d, _ := r.NextDraw(base+minute, nil)
	r.must(d)
	var order []string
	for e, ok := r.NextAssign(); ok; e, ok = r.NextAssign() {
		bad := e
		bad.Lane = r.lanes.all[1].name
		r.refuse(RuleAssign, &bad)
		r.must(&e)
		order = append(order, fmt.Sprint(e.Lane, " ", e.Position))
		lane, _ := r.lanes.index(e.Lane)
		if want := joined[lane][Shuffle(d.Seed, e.Lane, f.Lots[lane])[e.Position-1]]; e.Ticket != want {
			t.Errorf("place %d of lane %s is %v, want %v", e.Position, e.Lane, e.Ticket, want)
		}
	}
	want := []string{"general 1", "lane-2 1", "general 2", "lane-2 2", "general 3", "lane-2 3", "lane-2 4", "lane-2 5"}
	if !slices.Equal(order, want) {
		t.Errorf("assigned %v, want %v", order, want)
	}
}

// TestStandingInLanes compares the bounds of people who are called before a ticket with what happens.
func TestStandingInLanes(t *testing.T) {
	r := laned(t, 7, 2, 1)
	var all []Ticket
	for lane, n := range []int{20, 15, 9} {
		all = append(all, r.joinLane(base, lane, n)...)
	}
	now := base + minute
	r.settleWindows(now)
	r.callNext(now, 5)
	want := map[Ticket]Standing{}
	for _, ticket := range all {
		want[ticket], _ = r.Standing(ticket, r.size, now)
	}
	for called := uint64(0); ; called++ {
		e, n := r.NextCall(now, 1)
		if n == 0 {
			break
		}
		r.must(e)
		for ticket, st := range want {
			if is, _ := r.Standing(ticket, r.size, now); st.Status == StatusDrawn && is.Status == StatusCalled {
				if st.BeforeMin != called || st.BeforeMax < called {
					t.Errorf("place %d of %s: called after %d people, expected %d to %d", st.Position, st.Lane, called, st.BeforeMin, st.BeforeMax)
				}
				delete(want, ticket)
			}
		}
	}
	if len(want) != 5 {
		t.Errorf("%d are not called", len(want)-5)
	}
}

func TestVirtualTimeFits(t *testing.T) {
	most := uint64(math.MaxUint32) * quantum
	if most >= 1<<53 {
		t.Errorf("virtual time reaches %d, which JavaScript does not hold", most)
	}
}

// makeLanesRoom plays the room with three lanes of the vectors.
func makeLanesRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	p := vectorPolicy(t, key)
	p.Lanes = []LaneRule{{"members", 3, nil}, {General, 7, nil}, {"hall", 1, nil}}
	s.must(&Room{p})
	join := func(at Time, lane Lane, visitors ...int) {
		for _, n := range visitors {
			e, _ := s.NextArrive(at, NewTicket(p.Origin, vectorSecret(n)), lane)
			s.must(&e)
		}
	}
	join(p.Opens, General, 1, 2)
	join(p.Opens, "members", 3)
	s.refuse(RuleArrival, &Arrive{p.Opens, 0, 3, NewTicket(p.Origin, vectorSecret(4)), General, 0, nil}) // two are in this lane
	s.refuse(RuleLane, &Arrive{p.Opens, 0, 0, NewTicket(p.Origin, vectorSecret(4)), "vip", 0, nil})
	join(p.Opens, General, 4, 5, 6, 7, 8)
	join(p.Opens, "members", 9, 10, 11)
	s.lanesDraw(p.Starts)
	s.refuse(RuleCall, &Call{p.Starts, []Position{0, 1, 0}}) // a tie, which goes to the lane named first
	s.refuse(RuleCall, &Call{p.Starts, []Position{1}})
	s.must(&Call{p.Starts, []Position{1, 0, 0}})
	s.refuse(RuleOutflow, &Call{p.Starts, []Position{1, 1, 0}})
	s.must(&Skip{p.Starts + 1000, s.at(&s.lanes.all[1], 3).ticket, Left})
	s.refuse(RuleCall, &Call{p.Starts + 4000, []Position{1, 3, 0}}) // nobody is there
	s.refuse(RuleCall, &Call{p.Starts + 4000, []Position{2, 2, 0}})
	s.must(&Call{p.Starts + 4000, []Position{1, 4, 0}})
	join(p.Starts+4000, "hall", 12, 13)
	s.must(&Call{p.Starts + 29_000, []Position{4, 7, 0}})
	s.lanesDraw(p.Starts + 30_000)
	join(p.Starts+30_000, "members", 14)
	join(p.Starts+30_000, "hall", 15)
	s.lanesDraw(p.Starts + 60_000)
	s.refuse(RuleCall, &Call{p.Starts + 60_000, []Position{4, 7, 2}}) // the lane saved nothing while it was empty
	s.must(&Call{p.Starts + 60_000, []Position{5, 7, 1}})
	s.must(&Call{p.Starts + 61_000, []Position{5, 7, 3}})
	s.must(&End{p.Starts + 62_000})
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}

// lanesDraw freezes and draws a window.
func (s *story) lanesDraw(at Time) {
	s.t.Helper()
	f, alpha, _ := s.NextFreeze(at, s.oracle.Root())
	proof, beta := s.key.Prove(alpha)
	f.Proof = [ProofSize]byte(proof)
	bad := *f
	bad.Lots = slices.Clone(f.Lots)
	bad.Lots[0]++
	s.refuse(RuleFreeze, &bad)
	s.must(f)
	d, _ := s.NextDraw(at, nil)
	s.draw(d, alpha, beta)
	for e, ok := s.NextAssign(); ok; e, ok = s.NextAssign() {
		s.assign(&e)
	}
}

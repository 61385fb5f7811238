package ticket

import (
	"fmt"
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/roomtest"
)

// lotsRoom writes a room in which club and phone give one more lot each, with slots of 20 seconds if there are any.
// Visitors 0, 3, 6, ... of the first window show club when they join, and visitors 1, 7, 13, ... phone half a minute
// later; visitor 7 shows club after that.
func (s *stage) lotsRoom(slots fairness.Millis) *tree {
	club, phone := issuertest.Signed("club", 0), issuertest.Blind("phone", 0)
	policy := s.keys.Policy()
	policy.Methods = []credential.Method{club.Method, phone.Method}
	policy.Lots, policy.Slots = []string{"club", "phone"}, slots
	room := roomtest.Open(s.keys, policy)
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	var tickets []fairness.Ticket
	for i := range 20 {
		when := at([]int{5, 25, 26, 27, 45}[i/4])
		if i%3 > 0 {
			tickets = append(tickets, room.Join(when, 1)...)
			continue
		}
		subject := room.State().Subject(fairness.General, roomtest.Ticket(origin, uint64(i)))
		tickets = append(tickets, room.JoinWith(when, fairness.General, club.Show(subject, i)))
	}
	show := func(i int, by *issuertest.Issuer) {
		c := by.Show(room.State().Subject(fairness.General, tickets[i]), i)
		merit, _ := fairness.DoorOf(room.State()).NextMerit(at(50), tickets[i], c)
		room.Append(&merit)
	}
	for i := 1; i < len(tickets); i += 6 {
		show(i, phone)
	}
	show(7, club)
	room.Settle(at(60))
	room.Join(at(61), 3)
	room.Settle(at(70))
	if room.Err() != nil {
		s.Fatal(room.Err())
	}
	return newTree(s.keys, room.Entries())
}

// lotsOf returns the places of all lots of a ticket of the first window, from 1, as [fairness.Deal] has them.
func lotsOf(entries []fairness.Entry, of fairness.Ticket) (places []uint64) {
	policy := entries[0].(*fairness.Room).Policy
	freeze := entries[must(find(entries, 0, fairness.KindFreeze, 0))].(*fairness.Freeze)
	draw := entries[must(find(entries, 0, fairness.KindDraw, 0))].(*fairness.Draw)
	own := map[fairness.Lot]bool{}
	slot := 0
	for _, e := range entries {
		switch e := e.(type) {
		case *fairness.Arrive:
			if e.Ticket != of {
				continue
			}
			slot = policy.SlotOf(0, e.Time)
			for i := range 1 + len(e.Credentials) {
				own[fairness.Lot{Slot: slot, Seq: e.Seq + uint32(i)}] = true
			}
		case *fairness.Merit:
			if e.Ticket == of {
				own[fairness.Lot{Slot: slot, Seq: e.Seq}] = true
			}
		}
	}
	for i, lot := range fairness.Deal(draw.Seed, fairness.General, freeze.Lots) {
		if own[lot] {
			places = append(places, uint64(i)+1)
		}
	}
	return places
}

// lotCases are files of visitors of rooms with lots, one of them with slots.
func (s *stage) lotCases() (all []testCase) {
	place := func(r Reason) [4]Reason { return [4]Reason{Included, Closed, NoBeacon, r} }
	add := func(name string, b *Bundle, want [4]Reason) { all = append(all, testCase{name, b, want}) }
	for _, slots := range []fairness.Millis{0, 20_000} {
		log := s.lotsRoom(slots)
		entries := log.parsed(s)
		name := fmt.Sprintf("with slots of %d s: ", slots/1000)
		file := func(l *tree, ticket fairness.Ticket) *Bundle {
			index := uint64(slices.IndexFunc(entries, func(e fairness.Entry) bool {
				a, ok := e.(*fairness.Arrive)
				return ok && a.Ticket == ticket
			}))
			return l.gather(s, log.receipt(s, index, index+1), ticket, index)
		}
		for n := range uint64(20) {
			ticket := roomtest.Ticket(origin, n)
			b := file(log, ticket)
			if got, want := Check(b, Trust{})[3].Facts["position"], fmt.Sprint(lotsOf(entries, ticket)[0]); got != want {
				s.Errorf("%svisitor %d has place %s, want %s", name, n, got, want)
			}
			if n < 9 {
				add(fmt.Sprintf("%svisitor %d", name, n), b, honest)
			}
		}
		later := file(log, roomtest.Ticket(origin, 21))
		later.Earlier = List[Proven]{*log.prove(must(find(entries, 0, fairness.KindFreeze, 0)))}
		add(name+"a visitor of the second window", later, honest)

		// A visitor whose place is that of a merit, and one whose place is not.
		gaining, other := s.byMerit(entries, true), s.byMerit(entries, false)
		less := func(n uint64) *Bundle {
			b := file(log, roomtest.Ticket(origin, n))
			b.Merits = nil
			return b
		}
		add(name+"a merit left out that gave the place", less(gaining), place(MoreLots))
		add(name+"a merit left out that did not", less(other), place(Exact))
		shown := less(gaining)
		shown.Shown, shown.Place = number(lotsOf(entries, roomtest.Ticket(origin, gaining))[0]), nil
		add(name+"a merit left out that gave the place that is shown", shown, place(MoreLots))
		wrong := less(gaining)
		wrong.Shown = number(lotsOf(entries, roomtest.Ticket(origin, other))[0])
		add(name+"a merit left out, and the place of another is shown", wrong, place(OtherShown))

		merit := func(change func(*Bundle)) *Bundle {
			b := file(log, roomtest.Ticket(origin, gaining))
			change(b)
			return b
		}
		add(name+"a merit without proof", merit(func(b *Bundle) { flip(&b.Merits[0]) }), place(OtherMerit))
		add(name+"a merit twice", merit(func(b *Bundle) { b.Merits = append(b.Merits, b.Merits[0]) }), place(OtherMerit))
		add(name+"another's merit", merit(func(b *Bundle) {
			b.Merits = file(log, roomtest.Ticket(origin, other)).Merits
		}), place(OtherMerit))
		add(name+"an arrival for a merit", merit(func(b *Bundle) { b.Merits[0] = *b.Arrive }), place(OtherMerit))
		all = append(all, s.brokenMerits(name, log, gaining, file)...)
	}
	return all
}

// byMerit returns a visitor who showed one method later, and whose place is that of the lot for it, or is not.
func (s *stage) byMerit(entries []fairness.Entry, gained bool) uint64 {
	for n := uint64(1); n < 20; n += 6 {
		ticket := roomtest.Ticket(origin, n)
		without := slices.DeleteFunc(slices.Clone(entries), func(e fairness.Entry) bool {
			m, ok := e.(*fairness.Merit)
			return ok && m.Ticket == ticket
		})
		if n != 7 && (lotsOf(entries, ticket)[0] != lotsOf(without, ticket)[0]) == gained {
			return n
		}
	}
	s.Fatalf("no visitor whose merit matters: %v", gained)
	return 0
}

// brokenMerits are files of a room whose operator wrote a merit that the rules do not allow, and drew with it.
func (s *stage) brokenMerits(name string, log *tree, n uint64, file func(*tree, fairness.Ticket) *Bundle) []testCase {
	ticket := roomtest.Ticket(origin, n)
	place := [4]Reason{Included, Closed, NoBeacon, OtherMerit}
	broken := func(change func(*fairness.Merit)) *Bundle {
		entries := log.parsed(s)
		at := slices.IndexFunc(entries, func(e fairness.Entry) bool {
			m, ok := e.(*fairness.Merit)
			return ok && m.Ticket == ticket
		})
		change(entries[at].(*fairness.Merit))
		b := file(s.redrawn(entries), ticket)
		b.Place = nil
		return b
	}
	return []testCase{
		{name + "a merit with the number of the ticket's first lot", broken(func(m *fairness.Merit) { m.Seq = 0 }), place},
		{name + "a merit with a number that the drum does not have", broken(func(m *fairness.Merit) { m.Seq = 99 }), place},
	}
}

// redrawn returns a log in which the first window is frozen and drawn anew after other entries before have changed.
func (s *stage) redrawn(entries []fairness.Entry) *tree {
	at := must(find(entries, 0, fairness.KindFreeze, 0))
	texts := func() (all [][]byte) {
		for _, e := range entries {
			all = append(all, fairness.AppendEntry(nil, e))
		}
		return all
	}
	f := entries[at].(*fairness.Freeze)
	f.Root = newTree(s.keys, texts()).node(0, at)
	alpha := fairness.Alpha(hashOf(texts()[0]), f)
	proof, beta := s.keys.VRF.Prove(alpha)
	f.Proof = [fairness.ProofSize]byte(proof)
	entries[must(find(entries, 0, fairness.KindDraw, 0))].(*fairness.Draw).Seed = fairness.NewSeed(alpha, beta, 0, nil)
	return newTree(s.keys, texts())
}

// TestMostLots checks the bound on the lots that earlier entries can have given.
func TestMostLots(t *testing.T) {
	j := &judge{room: &fairness.Room{Policy: fairness.Policy{Lots: []string{"club"}}}}
	if got := j.mostLots(11); got != 20 {
		t.Errorf("%d lots in 10 entries after the first", got)
	}
	for _, lots := range [][]uint32{{1}, {1, 0}, {9, 0, 0}, make([]uint32, fairness.MaxSlots), {1000, 0, 0, 0, 0, 0, 0}} {
		lots[0]++
		j.room.Slots = fairness.Millis(len(lots) - 1)
		if got, most := sum(fairness.Fill(lots)), j.mostPlaces(sum(lots)); got > most {
			t.Errorf("%v: %d places, more than %d", lots, got, most)
		}
	}
}

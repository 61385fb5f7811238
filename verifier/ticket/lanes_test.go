package ticket

import (
	"fmt"
	"slices"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// laneCases are files of visitors of a room with three lanes.
func (s *stage) laneCases() (all []testCase) {
	policy := s.keys.Policy()
	policy.Lanes = []fairness.LaneRule{{Name: "members", Weight: 3}, {Name: "general", Weight: 7}, {Name: "hall", Weight: 1}}
	room := roomtest.Open(s.keys, policy)
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	room.JoinLane(at(5), "general", 5)
	room.JoinLane(at(6), "members", 3)
	room.Settle(at(60))
	room.JoinLane(at(61), "general", 4)
	room.JoinLane(at(62), "hall", 7)
	room.JoinLane(at(63), "members", 2)
	room.Settle(at(70))
	if room.Err() != nil {
		s.Fatal(room.Err())
	}
	log := newTree(s.keys, room.Entries())
	entries := log.parsed(s)
	file := func(l *tree, index uint64) *Bundle {
		ticket := entries[index].(*fairness.Arrive).Ticket
		return l.gather(s, log.receipt(s, index, index+1), ticket, index)
	}
	first := must(find(entries, 0, fairness.KindFreeze, 0))
	for index, e := range entries {
		arrive, ok := e.(*fairness.Arrive)
		if !ok || arrive.Seq != 1 {
			continue
		}
		b := file(log, uint64(index))
		if arrive.Window == 1 {
			b.Earlier = List[Proven]{*log.prove(first)}
		}
		all = append(all, testCase{fmt.Sprintf("lane %s of window %d", arrive.Lane, arrive.Window), b, honest})
	}
	mine := uint64(slices.IndexFunc(entries, func(e fairness.Entry) bool {
		a, ok := e.(*fairness.Arrive)
		return ok && a.Window == 1 && a.Lane == "hall" && a.Seq == 2
	}))
	freezeAt := must(find(entries, 0, fairness.KindFreeze, 1))
	refrozen := func(lots ...uint32) *Bundle {
		return file(log.rewritten(s, func(all []fairness.Entry) []fairness.Entry {
			f := all[freezeAt].(*fairness.Freeze)
			f.Lots = lots
			proof, _ := s.keys.VRF.Prove(fairness.Alpha(hashOf(log.entries[0]), f))
			f.Proof = [fairness.ProofSize]byte(proof)
			return all
		}), mine)
	}
	swapped := file(log.rewritten(s, func(all []fairness.Entry) []fairness.Entry { // the first places of two lanes
		i := must(find(all, 0, fairness.KindAssign, 1))
		all[i], all[i+2] = all[i+2], all[i]
		return all
	}), mine)
	shifted := file(log.rewritten(s, func(all []fairness.Entry) []fairness.Entry {
		for _, e := range all {
			if a, ok := e.(*fairness.Assign); ok && a.Lane == "hall" {
				a.Position++
			}
		}
		return all
	}), mine)
	shifted.Earlier = List[Proven]{*log.prove(first)}
	group := func(r Reason) [4]Reason { return [4]Reason{Included, r, Unchecked, Unchecked} }
	draw := func(r Reason) [4]Reason { return [4]Reason{Included, Closed, r, Unchecked} }
	place := func(r Reason) [4]Reason { return [4]Reason{Included, Closed, NoBeacon, r} }
	return append(all,
		testCase{"a freeze of fewer people in my lane than me", refrozen(2, 4, 2), group(OtherLots)},
		testCase{"a freeze with a lane less", refrozen(2, 4), group(OtherLots)},
		testCase{"a freeze with a lane more", refrozen(2, 4, 7, 0), group(OtherLots)},
		testCase{"a freeze of more people in all lanes than entries", refrozen(20, 20, 7), group(OtherLots)},
		testCase{"a freeze of one more in another lane", refrozen(3, 4, 7), draw(OtherSeed)},
		testCase{"the first places of two lanes in another order", swapped, place(Exact)},
		testCase{"a lane that begins at another place", shifted, place(OtherFirst)})
}

package ticket

import (
	"fmt"
	"slices"
	"sort"

	"github.com/proofline/proofline/fairness"
)

// own holds the lots of the visitor's ticket, and the line that they are drawn into. Only the shuffle of its own slot
// is needed for that.
type own struct {
	slot      int
	drums     []uint32 // lots of the lane, by slot
	seqs      []uint32 // lots of the ticket in its slot, ascending
	byArrival int      // how many of these the arrival has given
	missing   bool     // reports whether merits that are not in the file may give more

	filled []uint32
	order  []uint32 // of the slot's lots
	ahead  []uint32 // slots whose turn comes before
}

// mostLots returns the most lots that entries before an index can have put into drums: all but the first.
func (j *judge) mostLots(index uint64) uint64 { return (index - 1) * uint64(1+len(j.room.Lots)) }

// drumsOf returns the numbers of lots of a freeze in the visitor's lane, by slot; false if it does not have a number
// for each drum.
func (j *judge) drumsOf(f *fairness.Freeze) (drums []uint32, whole bool) {
	lanes := j.room.Lanes
	lane := slices.IndexFunc(lanes, func(l fairness.LaneRule) bool { return l.Name == j.arrive.Lane })
	for i, n := range f.Lots {
		if i%len(lanes) == lane {
			drums = append(drums, n)
		}
	}
	return drums, len(f.Lots) == j.room.SlotsIn(f.Window)*len(lanes)
}

func sum(numbers []uint32) (total uint64) {
	for _, n := range numbers {
		total += uint64(n)
	}
	return total
}

// ownOf returns the lots that the visitor's arrival has by itself; false if the freeze of its window cannot be right.
func (j *judge) ownOf(f *fairness.Freeze) (o own, ok bool) {
	arrive := j.arrive
	o.drums, ok = j.drumsOf(f)
	o.slot = j.room.SlotOf(arrive.Window, arrive.Time)
	o.byArrival = 1
	for _, name := range j.room.Lots {
		if shows(arrive, name) {
			o.byArrival++
		} else {
			o.missing = true
		}
	}
	if !ok || o.slot < 0 || o.slot >= len(o.drums) || uint64(arrive.Seq)+uint64(o.byArrival) > uint64(o.drums[o.slot]) {
		return own{}, false
	}
	for i := range o.byArrival {
		o.seqs = append(o.seqs, arrive.Seq+uint32(i))
	}
	return o, true
}

func shows(e *fairness.Arrive, method string) bool {
	for _, c := range e.Credentials {
		if c.Method == method {
			return true
		}
	}
	return false
}

// addMerits adds the lots that the merits of the file give; false if one of them is not the ticket's.
func (j *judge) addMerits() bool {
	o, last, shown := &j.own, j.b.Arrive.Index, map[string]bool{}
	for i := range j.b.Merits {
		index := j.b.Merits[i].Index
		merit, ok := proven[*fairness.Merit](j.head, &j.b.Merits[i])
		if !ok || merit.Ticket != j.arrive.Ticket || index <= last || index >= j.b.Freeze.Index {
			return false
		}
		method := merit.Credential.Method
		if shown[method] || shows(j.arrive, method) {
			return false
		}
		last, shown[method] = index, true
		if !slices.Contains(j.room.Lots, method) {
			continue
		}
		if merit.Seq <= o.seqs[len(o.seqs)-1] || merit.Seq >= o.drums[o.slot] {
			return false
		}
		o.seqs = append(o.seqs, merit.Seq)
	}
	o.missing = slices.ContainsFunc(j.room.Lots, func(name string) bool {
		return !shown[name] && !shows(j.arrive, name)
	})
	return true
}

// shuffle draws the ticket's slot.
func (o *own) shuffle(seed fairness.Seed, lane fairness.Lane) {
	if len(o.filled) == 1 {
		o.order = fairness.Shuffle(seed, lane, o.filled[0])
		return
	}
	o.order = fairness.Shuffle(seed, fairness.Lane(fmt.Sprintf("%s/%d", lane, o.slot)), o.filled[o.slot])
	turns := fairness.Shuffle(seed, lane+"/", uint32(len(o.filled)))
	o.ahead = turns[:slices.Index(turns, uint32(o.slot))]
}

// rank returns the number of the ticket's first lot in the line of its window and lane, from 0.
func (o *own) rank() uint64 {
	round := slices.IndexFunc(o.order, func(seq uint32) bool { return slices.Contains(o.seqs, seq) })
	return o.before(round)
}

// before returns how many lots are drawn before the one with a number in the order of the slot.
func (o *own) before(round int) (n uint64) {
	for _, size := range o.filled {
		n += min(uint64(size), uint64(round))
	}
	for _, slot := range o.ahead {
		if uint64(o.filled[slot]) > uint64(round) {
			n++
		}
	}
	return n
}

// mayBeOfMerit reports whether the lot with a number in the line is one that a merit could have given the ticket
// which is not in the file.
func (o *own) mayBeOfMerit(rank uint64) bool {
	round := sort.Search(len(o.order), func(i int) bool { return o.before(i) >= rank })
	if !o.missing || round == len(o.order) || o.before(round) != rank {
		return false
	}
	seq := o.order[round]
	return seq > o.seqs[o.byArrival-1] && seq < o.drums[o.slot]
}

// placesOf returns how many places the visitor's lane gets in the window of a freeze; false if the freeze cannot be
// right.
func (j *judge) placesOf(f *fairness.Freeze) (uint64, bool) {
	drums, ok := j.drumsOf(f)
	if !ok {
		return 0, false
	}
	return sum(fairness.Fill(drums)), true
}

// mostPlaces returns the most places that so many lots of a lane can have got: in a room with slots, half of a drum may
// be empty lots.
func (j *judge) mostPlaces(lots uint64) uint64 {
	if j.room.Slots == 0 {
		return lots
	}
	return 2*lots + fairness.MaxSlots
}

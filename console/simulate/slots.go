package simulate

import (
	"fmt"
	"math/rand/v2"

	"github.com/proofline/proofline/fairness"
)

// repeats is the number of draws over which places are averaged.
const repeats = 20

// SlotRow says what visitors do and get if the first window is cut into slots and a share of the people chooses its
// slot by the published counts. Places are means, among those of visitors.
type SlotRow struct {
	Slots    int     `json:"slots"`    // 1: none
	Choosing float64 `json:"choosing"` // share of people that chooses
	Peak     int     `json:"peak"`     // joins in the busiest second
	Chosen   float64 `json:"chosen"`   // place of a visitor that chooses; 0: none does
	Opening  float64 `json:"opening"`  // place of a visitor that joins in the first slot
	Random   float64 `json:"random"`   // place of a visitor that joins at any time
}

// CompareSlots draws the visitors that come in the first window of a valid plan without slots, and with so many slots
// while nobody, half of the people and everybody chooses. A visitor that chooses looks once in each slot, and waits
// while the slot is busier than those before it were on average. Otherwise it joins with a chance of one in the slots
// that are left, and in the last slot in any case.
func CompareSlots(p Plan, slots int) []SlotRow {
	policy := p.policy()
	first, _ := fairness.NewSchedule(&policy).At(0)
	length := first.To - first.From
	var crowd []visitor
	for _, v := range newCrowd(&p) {
		if v.arrives < length {
			crowd = append(crowd, v)
		}
	}
	rows := []SlotRow{newSlotRow(&p, crowd, length, 1, 0)}
	for _, share := range []float64{0, 0.5, 1} {
		rows = append(rows, newSlotRow(&p, crowd, length, slots, share))
	}
	return rows
}

func newSlotRow(p *Plan, crowd []visitor, length fairness.Time, slots int, share float64) SlotRow {
	d := &dice{rand.New(rand.NewPCG(p.Seed, 3))}
	each := (length + fairness.Time(slots) - 1) / fairness.Time(slots)
	fixed, choosing := make([][]fairness.Time, slots), 0 // times of those that do not choose, by slot
	for i := range crowd {
		if v := &crowd[i]; d.chance(share) && v.kind != bot {
			choosing++
		} else {
			fixed[v.arrives/each] = append(fixed[v.arrives/each], v.arrives)
		}
	}
	row := SlotRow{Slots: slots, Choosing: share}
	lots, chosen, joins := make([]uint32, slots), make([]int, slots), map[fairness.Time]int{}
	left, before := choosing, 0
	for slot := range slots {
		n := len(fixed[slot])
		for range left {
			isBusy := slot > 0 && (n*slot > before)
			if slot == slots-1 || !isBusy && d.chance(1/float64(slots-slot)) {
				joins[(fairness.Time(slot)*each+fairness.Time(d.Float64()*float64(each)))/1000]++
				chosen[slot]++
				n++
			}
		}
		for _, at := range fixed[slot] {
			joins[at/1000]++
		}
		left -= chosen[slot]
		before += n
		lots[slot] = uint32(n) //nolint:gosec // at most MaxVisitors
	}
	for _, n := range joins {
		row.Peak = max(row.Peak, n)
	}
	places := meanPlaces(d, lots)
	row.Opening = places[0]
	for slot, place := range places {
		row.Random += place / float64(slots)
		row.Chosen += place * float64(chosen[slot]) / float64(max(choosing, 1))
	}
	return row
}

// meanPlaces returns the mean place of a lot of each slot among those of visitors. In an empty slot it is that of an
// empty lot.
func meanPlaces(d *dice, lots []uint32) []float64 {
	sums, counts := make([]float64, len(lots)), make([]float64, len(lots))
	for range repeats {
		place := 1.0
		for _, lot := range fairness.Deal(d.seed(), fairness.General, lots) {
			sums[lot.Slot] += place
			counts[lot.Slot]++
			if lot.Seq < lots[lot.Slot] {
				place++
			}
		}
	}
	for i := range sums {
		sums[i] /= max(counts[i], 1)
	}
	return sums
}

// seed draws the seed of a draw.
func (d *dice) seed() (seed fairness.Seed) {
	for i := range seed {
		seed[i] = byte(d.Uint32()) //nolint:gosec // a random byte
	}
	return seed
}

// LotRow says what one more lot is worth if a share of the visitors has it.
type LotRow struct {
	Share   float64 `json:"share"`   // visitors with a second lot
	With    float64 `json:"with"`    // share of these that has one of the first places
	Without float64 `json:"without"` // the same of the others
}

// CompareLots draws all visitors of a valid plan together, for as many first places as there are tickets, while a
// tenth, half and nine tenths of the visitors have two lots.
func CompareLots(p Plan) (rows []LotRow) {
	d := &dice{rand.New(rand.NewPCG(p.Seed, 4))}
	front := p.Visitors
	if p.Tickets > 0 {
		front = min(p.Tickets, p.Visitors)
	}
	for _, share := range []float64{0.1, 0.5, 0.9} {
		second := int(share * float64(p.Visitors)) // visitors before this number have two lots
		with, without := 0, 0
		for range repeats {
			has, rank := make([]bool, p.Visitors), 0
			for _, lot := range fairness.Deal(d.seed(), fairness.General, []uint32{uint32(p.Visitors + second)}) { //nolint:gosec // at most 2 MaxVisitors
				n := int(lot.Seq) % p.Visitors
				if has[n] {
					continue
				}
				has[n] = true
				if n < second {
					with++
				} else {
					without++
				}
				if rank++; rank == front {
					break
				}
			}
		}
		of := func(n, visitors int) float64 { return float64(n) / float64(max(visitors, 1)*repeats) }
		rows = append(rows, LotRow{share, of(with, second), of(without, p.Visitors-second)})
	}
	return rows
}

// Label describes the row in a few words.
func (r *SlotRow) Label() string {
	if r.Slots == 1 {
		return "no slots"
	}
	return fmt.Sprintf("%d slots, %s choose", r.Slots, Percent(r.Choosing))
}

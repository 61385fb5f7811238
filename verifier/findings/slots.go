package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// slots counts what arrived in each slot of the first window, and what was shown for lots.
type slots struct {
	arrivals []uint64 // by slot and lane, as lots of a freeze; nil: the room has no slots
	lanes    []fairness.LaneRule
	methods  []string // those that give a lot
	shown    []uint64 // for each of these, tickets that showed it
}

func (l *slots) begin(s *fairness.State) {
	p := s.Policy()
	l.lanes, l.methods, l.shown = p.Lanes, p.Lots, make([]uint64, len(p.Lots))
	if n := p.SlotsIn(0); n > 1 {
		l.arrivals = make([]uint64, n*len(p.Lanes))
	}
}

func (l *slots) arrive(p *fairness.Policy, e *fairness.Arrive) {
	for _, c := range e.Credentials {
		l.show(c.Method)
	}
	if e.Window == 0 && l.arrivals != nil {
		lane := slices.IndexFunc(l.lanes, func(r fairness.LaneRule) bool { return r.Name == e.Lane })
		l.arrivals[p.SlotOf(0, e.Time)*len(l.lanes)+lane]++
	}
}

func (l *slots) show(method string) {
	if i := slices.Index(l.methods, method); i >= 0 {
		l.shown[i]++
	}
}

// freezeSlots adds what each slot held, once the first window is frozen.
func (f *Finder) freezeSlots(s *fairness.State, e *fairness.Freeze) {
	l := &f.slots
	if e.Window != 0 || l.arrivals == nil {
		return
	}
	for lane := range l.lanes {
		var lots []uint32
		for i := lane; i < len(e.Lots); i += len(l.lanes) {
			lots = append(lots, e.Lots[i])
		}
		filled := fairness.Fill(lots)
		for slot := range lots {
			arrivals := l.arrivals[slot*len(l.lanes)+lane]
			text := fmt.Sprintf("Slot %d, lane %s: %s with %s; %s", slot+1, l.lanes[lane].Name,
				numeral.Count(arrivals, "arrival", "arrivals"), numeral.Count(uint64(lots[slot]), "lot", "lots"),
				numeral.Count(uint64(filled[slot]-lots[slot]), "empty lot", "empty lots"))
			if lots[slot] > 0 {
				text += fmt.Sprintf("; mean place of a lot %s, behind %s of tickets",
					numeral.Group(uint64(MeanPlace(filled, slot)+0.5)),
					numeral.Count(uint64(MeanAhead(lots, filled, slot)+0.5), "lot", "lots"))
			}
			f.add(Slots, s, "", text+".", 0)
		}
	}
}

// MeanPlace returns the mean place of a lot of a slot among those of its window and lane, given the numbers of lots of
// each slot, empty ones included: section 9 of fairness/RULES.md.
func MeanPlace(filled []uint32, slot int) float64 {
	mean := float64(filled[slot]+1) / 2
	for j := range filled {
		if j != slot {
			mean += before(filled, slot, j)
		}
	}
	return mean
}

// MeanAhead returns the mean number of lots of tickets before a lot of a slot: empty ones are passed over.
func MeanAhead(lots, filled []uint32, slot int) float64 {
	mean := float64(lots[slot]-1) / 2
	for j, n := range lots {
		if j != slot && n > 0 {
			mean += before(filled, slot, j) * float64(n) / float64(filled[j])
		}
	}
	return mean
}

// before returns the mean number of lots of another slot before a lot of a slot, empty ones included.
func before(filled []uint32, slot, other int) float64 {
	own, n := float64(filled[slot]), float64(filled[other])
	if n >= own {
		return own / 2
	}
	return n - n*n/(2*own)
}

// close adds the methods that gave a lot.
func (l *slots) close(f *Finder) {
	if len(l.methods) == 0 {
		return
	}
	found := &Finding{ID: Lots}
	for i, name := range l.methods {
		found.Count += l.shown[i]
		found.Items = append(found.Items, Item{Kind: name, Time: f.opened,
			Text: fmt.Sprintf("%s gave one more lot to %s.", name, numeral.Count(l.shown[i], "ticket", "tickets"))})
	}
	if f.found == nil {
		f.found = map[ID]*Finding{}
	}
	f.found[Lots] = found
}

// words says how many tickets had more than one lot.
func (l *slots) words() string {
	most, sum := uint64(0), uint64(0)
	for _, n := range l.shown {
		most, sum = max(most, n), sum+n
	}
	tickets := numeral.Count(sum, "ticket had", "tickets had")
	if len(l.shown) > 1 && most < sum {
		tickets = fmt.Sprintf("Between %s and %s tickets had", numeral.Group(most), numeral.Group(sum))
	}
	return fmt.Sprintf("%s more than one lot in the draw, for showing %s. Of two tickets drawn together, one with two lots is ahead of one with one lot in two of three draws. Whether an account has only one credential is its issuer's word.",
		tickets, strings.Join(l.methods, " or "))
}

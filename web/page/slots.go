package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/number"
)

// Slots is the data of the first window of a room that cuts it into slots, which take turns in its draw.
type Slots struct {
	From, To time.Time // the window
	Length   time.Duration
	Lots     []uint32 // lots in each slot of the visitor's lane, so far; nil once they are drawn
	AreLots  bool     // a visitor may have several lots
	Own      int      // slot of the visitor's ticket, from 0; -1: none
}

// Count returns the number of slots.
func (s *Slots) Count() uint64 { return uint64((s.To.Sub(s.From) + s.Length - 1) / s.Length) } //nolint:gosec // at most fairness.MaxSlots

// at returns the slot at a time, from 0.
func (s *Slots) at(t time.Time) int { return int(t.Sub(s.From) / s.Length) }

// span returns the begin and end of a slot.
func (s *Slots) span(slot int) (from, to time.Time) {
	from = s.From.Add(time.Duration(slot) * s.Length)
	to = from.Add(s.Length)
	if to.After(s.To) {
		to = s.To
	}
	return from, to
}

// worth returns how much better the mean place of a lot of a slot is than that of the fullest slot: section 9 of
// fairness/RULES.md.
func (s *Slots) worth(slot int) float64 {
	total := uint64(0)
	for _, n := range s.Lots {
		total += uint64(n)
	}
	slots := uint64(len(s.Lots))
	least := (total + 2*slots - 1) / (2 * slots)
	mean := func(own uint32) float64 {
		size := float64(max(uint64(own), least))
		place := 0.5 // with the own slot, in the sum, (size + 1) / 2
		for _, n := range s.Lots {
			other := float64(max(uint64(n), least))
			if other >= size {
				place += size / 2
			} else {
				place += other - other*other/(2*size)
			}
		}
		return place
	}
	return mean(slices.Max(s.Lots)) / mean(s.Lots[slot])
}

// Slots returns the slots that matter to the visitor; nil: none do.
func (p *linePage) Slots() *Slots { return p.View.Slots }

// Slot returns the visitor's slot, or without a ticket the one that is open, counted from 1.
func (p *linePage) Slot() uint64 { return uint64(p.slot()) + 1 } //nolint:gosec // not negative

func (p *linePage) slot() int {
	if s := p.View.Slots; s.Own < 0 {
		return s.at(p.View.Now)
	}
	return p.View.Slots.Own
}

// SlotFrom returns when that slot begins.
func (p *linePage) SlotFrom() time.Time {
	from, _ := p.View.Slots.span(p.slot())
	return from
}

// SlotTo returns when that slot ends.
func (p *linePage) SlotTo() time.Time {
	_, to := p.View.Slots.span(p.slot())
	return to
}

// HasSlotLots reports whether to say how full the slots are: while the first window is open.
func (p *linePage) HasSlotLots() bool {
	s := p.View.Slots
	return s != nil && s.Lots != nil && !p.View.Now.Before(s.From) && p.View.Now.Before(s.To)
}

// SlotEnds returns from when on scripts fetch the page again, which speaks of the open slot.
func (p *linePage) SlotEnds() time.Time {
	if p.HasSlotLots() {
		return p.SlotTo()
	}
	return p.View.Slots.From
}

// InSlot says how many people, or lots, are in the slot so far.
func (p *linePage) InSlot() (template.HTML, error) {
	s, key := p.View.Slots, "slots.people"
	if s.AreLots {
		key = "slots.lots"
	}
	return p.Count(key, "", uint64(s.Lots[p.slot()]))
}

// muchBetter is the worth from which a slot is said to be better than the fullest.
const muchBetter = 1.1

// SlotWorth says what the slot is worth against the fullest; nothing if all are empty.
func (p *linePage) SlotWorth() (template.HTML, error) {
	s := p.View.Slots
	own, most := s.Lots[p.slot()], slices.Max(s.Lots)
	if most == 0 {
		return "", nil
	}
	worth := s.worth(p.slot())
	switch {
	case worth >= muchBetter:
		times := p.printer.Sprint(number.Decimal(worth, number.MaxFractionDigits(1), number.MinFractionDigits(1)))
		return p.Say("slots.better", "times", times)
	case own == most:
		return p.Say("slots.fullest")
	}
	return p.Say("slots.same")
}

// Size of the picture of the slots.
const (
	barHeight = 40
	barWidth  = 10
)

// SlotBars draws how full the slots are so far. What it shows is in words next to it.
func (p *linePage) SlotBars() template.HTML {
	s := p.View.Slots
	most := max(slices.Max(s.Lots), 1)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg data-slots aria-hidden="true" viewBox="0 0 %d %d" preserveAspectRatio="none">`, barWidth*len(s.Lots), barHeight)
	for i, n := range s.Lots {
		mark, height := "", max(uint64(n)*barHeight/uint64(most), 1)
		if i == p.slot() {
			mark = ` data-own`
		}
		fmt.Fprintf(&b, `<rect%s x="%d" y="%d" width="%d" height="%d"/>`, mark, i*barWidth+1, barHeight-height, barWidth-2, height)
	}
	b.WriteString("</svg>")
	return trusted(b.String())
}

// Lots returns the number of lots of the visitor's place; 0: every place has one.
func (p *linePage) Lots() uint64 { return uint64(p.View.Ticket.Lots) } //nolint:gosec // not negative

// Most returns the suffix of the messages that count people ahead where places may be nobody's.
func (p *linePage) Most() string {
	if p.View.HasGaps {
		return ".most"
	}
	return ""
}

// Rank returns the place among those of tickets; with gaps, what scripts count people by.
func (p *linePage) Rank() uint64 { return p.View.Ticket.Passed + p.View.Ticket.AheadMin + 1 }

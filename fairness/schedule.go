package fairness

import (
	"slices"
	"sort"
)

// WindowRule opens windows of one length from From until the next rule's From or the room's close.
// The last window may be cut short.
type WindowRule struct {
	From   Time
	Length Millis
}

// Window is one half-open interval [From, To) of arrival time whose arrivals
// are drawn together.
type Window struct {
	Index WindowIndex
	From  Time
	To    Time
}

// Schedule divides the time from opening to close into windows.
type Schedule struct {
	closes Time
	rules  []WindowRule  // ascending by From, never empty
	first  []WindowIndex // index of the first window of each rule
}

// NewSchedule lays out the windows of a valid policy.
func NewSchedule(p *Policy) *Schedule { return new(Schedule).replace(p.Windows, p.Closes) }

// SlotsIn returns the number of slots of a window: all windows but the first have one.
func (p *Policy) SlotsIn(w WindowIndex) int {
	if p.Slots == 0 || w > 0 {
		return 1
	}
	first, _ := NewSchedule(p).At(p.Opens)
	return int((Millis(first.To-first.From) + p.Slots - 1) / p.Slots)
}

// SlotOf returns the slot of an arrival, from 0.
func (p *Policy) SlotOf(w WindowIndex, t Time) int {
	if p.Slots == 0 || w > 0 {
		return 0
	}
	return int(Millis(t-p.Opens) / p.Slots)
}

// Fixed returns the last moment at which a window may begin that an amendment at a time leaves as it is. Slots cut the
// first window as it was published, so it never changes.
func (p *Policy) Fixed(amended Time) Time {
	fixed := amended + Time(p.Notice) - 1
	if p.Slots > 0 {
		fixed = max(fixed, p.Opens)
	}
	return fixed
}

// Opens returns the start of the first window.
func (s *Schedule) Opens() Time { return s.rules[0].From }

// Closes returns the end of the last window; [Never] if it has no end.
func (s *Schedule) Closes() Time { return s.closes }

// At returns the window that contains t; false before opening and from the close on.
func (s *Schedule) At(t Time) (Window, bool) {
	if t < s.Opens() || t >= s.closes {
		return Window{}, false
	}
	i := sort.Search(len(s.rules), func(i int) bool { return s.rules[i].From > t }) - 1
	r := s.rules[i]
	k := int64(t-r.From) / int64(r.Length)
	from := r.From + Time(k*int64(r.Length))
	to := min(from+Time(r.Length), s.closes)
	if i+1 < len(s.rules) {
		to = min(to, s.rules[i+1].From)
	}
	return Window{Index: s.first[i] + WindowIndex(k), From: from, To: to}, true
}

// replace returns a schedule that follows rules from the first one's From on and closes at closes.
// Earlier rules stay.
func (s *Schedule) replace(rules []WindowRule, closes Time) *Schedule {
	kept := s.rules
	if len(rules) > 0 {
		kept = kept[:sort.Search(len(kept), func(i int) bool { return kept[i].From >= rules[0].From })]
	}
	all := slices.Concat(kept, rules)
	for len(all) > 1 && all[len(all)-1].From >= closes {
		all = all[:len(all)-1]
	}
	first := make([]WindowIndex, len(all))
	for i := 1; i < len(all); i++ {
		r := all[i-1]
		windows := (all[i].From - r.From + Time(r.Length) - 1) / Time(r.Length) // rounded up
		first[i] = first[i-1] + WindowIndex(windows)
	}
	return &Schedule{closes, all, first}
}

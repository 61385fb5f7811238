package fairness

import (
	"math"
	"sort"
)

// This file holds the lanes: parallel lines with positions of their own, which share the calls by
// weight. The next person called comes from the lane with the smallest virtual time among those with
// a ready ticket, as in start-time fair queueing.

// LaneRule is a lane in a policy.
type LaneRule struct {
	Name   Lane
	Weight uint32   // share of the calls, relative to the other lanes; 1 to [MaxWeight]
	Needs  []string // methods that each arrival shows, in the order of the policy
}

// quantum is the virtual time that serving one seat takes in a lane of weight 1.
const quantum = 1 << 20

// lanes holds the lanes of a room, in the order of its policy.
type lanes struct {
	all     []lane
	virtual uint64 // virtual time of the lane that was served last, when it was
	isPlain bool   // arrivals are alike: in one lane, for one seat, and numbered like the lots of their window
}

// lane is the state of one lane.
type lane struct {
	name   Lane
	needs  methodSet
	step   uint64 // virtual time that serving one seat takes
	served uint64 // virtual time
	ready  uint64 // tickets drawn and neither called nor skipped

	arrivals uint64
	seats    uint64               // of all arrivals
	waiting  uint64               // called places neither admitted nor skipped
	held     uint64               // seats of these
	sold     uint64               // seats of admitted tickets
	settled  [len(reasons)]uint64 // arrivals by outcome
	places   Position             // places drawn so far
	lined    uint32               // seats of these
	drawn    uint64               // tickets with a place
	stated   uint64               // of these, those that assign entries have stated
	passed   uint64               // of these, those that the serving pointer has passed
	assigned Position             // places before the next one to state
	clear    Position             // no place between the serving pointer and the one after this is ready
	calls    []call
	parts    []part
}

// part is what one draw has added to a lane's line.
type part struct {
	window int    // index in windows
	base   uint32 // number of the window's first arrival
	first  Position
	order  []uint32 // maps place - first to the arrival's number in its window, or blank
	seats  []uint32 // maps place - first to the seats of all places before; nil in a plain room
}

// blank is an empty lot, which fills up a slot.
const blank = math.MaxUint32

// call is one move of a lane's serving pointer.
type call struct {
	index EntryIndex
	clock Time // claim clock
	upTo  Position
}

func newLanes(p *Policy) lanes {
	all := make([]lane, len(p.Lanes))
	for i, r := range p.Lanes {
		needs, _ := p.methodSet(r.Needs)
		all[i] = lane{name: r.Name, needs: needs, step: quantum / uint64(r.Weight)}
	}
	return lanes{all: all, isPlain: len(all) == 1 && p.Party == 0 && !p.HasGaps()}
}

// index returns the index of a lane; false if the room has no such lane.
func (l *lanes) index(name Lane) (int, bool) {
	for i := range l.all {
		if l.all[i].name == name {
			return i, true
		}
	}
	return 0, false
}

// drum returns the index of the drum of a slot and a lane.
func (l *lanes) drum(slot, lane int) int { return slot*len(l.all) + lane }

func (l *lane) called() Position {
	if len(l.calls) == 0 {
		return 0
	}
	return l.calls[len(l.calls)-1].upTo
}

// callOf returns the call that reached a position.
func (l *lane) callOf(p Position) (call, bool) {
	if p == 0 || p > l.called() {
		return call{}, false
	}
	i := sort.Search(len(l.calls), func(i int) bool { return l.calls[i].upTo >= p })
	return l.calls[i], true
}

// partAt returns the part with a drawn position.
func (l *lane) partAt(p Position) *part {
	i := sort.Search(len(l.parts), func(i int) bool { return l.parts[i].first > p })
	return &l.parts[i-1]
}

// holder returns the number of the arrival that has a drawn place; false if nobody has it, because it is that of an
// empty lot, or of a further lot of a ticket.
func (l *lane) holder(of *arrivals, p Position) (number uint32, ok bool) {
	part := l.partAt(p)
	n := part.order[p-part.first]
	number = part.base + n
	return number, n != blank && Position(of.At(number).position) == p
}

// line gives the lots of a window their places, at the ends of the lanes' lines.
func (s *State) line(window int, seed Seed) {
	w := &s.windows.all[window]
	if s.lanes.isPlain {
		s.extend(&s.lanes.all[0], window, Shuffle(seed, s.lanes.all[0].name, w.count))
		return
	}
	for i := range s.lanes.all {
		var order []uint32
		for _, lot := range Deal(seed, s.lanes.all[i].name, w.lotsOf(i, len(s.lanes.all))) {
			n := uint32(blank)
			if drum := w.drums[s.lanes.drum(lot.Slot, i)]; int(lot.Seq) < len(drum) {
				n = drum[lot.Seq]
			}
			order = append(order, n)
		}
		s.extend(&s.lanes.all[i], window, order)
	}
	w.drums = nil
}

// extend adds places to a lane.
func (s *State) extend(l *lane, window int, order []uint32) {
	if len(order) == 0 {
		return
	}
	base := s.windows.all[window].base
	l.wake(s.lanes.virtual)
	next := part{window: window, base: base, first: l.places + 1, order: order}
	for _, n := range order {
		l.places++
		if !s.lanes.isPlain {
			next.seats = append(next.seats, l.lined)
		}
		if n == blank || s.arrivals.At(base+n).position > 0 {
			continue
		}
		a := s.arrivals.At(base + n)
		a.position = uint32(l.places)
		l.lined += uint32(s.arrivals.seatsOf(base + n))
		l.drawn++
		if !s.arrivals.outcome(a).skipped() {
			l.ready++
		}
	}
	l.parts = append(l.parts, next)
	l.pass(&s.arrivals)
}

// pass moves on to the next place to state: nobody has those between.
func (l *lane) pass(of *arrivals) {
	for l.assigned < l.places {
		if _, ok := l.holder(of, l.assigned+1); ok {
			return
		}
		l.assigned++
	}
}

// wake keeps a lane that is about to get ready tickets from making up for a time in which it had none.
func (l *lane) wake(virtual uint64) {
	if l.ready == 0 {
		l.served = max(l.served, virtual)
	}
}

// turns serves people one by one, in the order of the rules, without changing the state.
type turns struct {
	of      *State
	lanes   [MaxLanes]turn
	virtual uint64
	people  uint64 // served so far
	seats   uint64 // of these
}

// turn is the state of one lane during a call.
type turn struct {
	upTo                Position // place of the last person served
	served, ready, held uint64
}

func newTurns(s *State) turns {
	t := turns{of: s, virtual: s.lanes.virtual}
	for i := range s.lanes.all {
		l := &s.lanes.all[i]
		t.lanes[i] = turn{l.called(), l.served, l.ready, l.held}
	}
	return t
}

// peek returns the arrival to serve next: its lane, as an index, and its number; false if no ticket is
// ready.
func (t *turns) peek() (lane int, number uint32, ok bool) {
	for i := range t.of.lanes.all {
		if t.lanes[i].ready > 0 && (!ok || t.lanes[i].served < t.lanes[lane].served) {
			lane, ok = i, true
		}
	}
	if !ok {
		return 0, 0, false
	}
	l := &t.of.lanes.all[lane]
	for p := max(t.lanes[lane].upTo, l.clear) + 1; ; p++ {
		number, ok = l.holder(&t.of.arrivals, p)
		if ok && !t.of.arrivals.outcome(t.of.arrivals.At(number)).skipped() {
			return lane, number, true
		}
	}
}

// serve serves the arrival that peek has returned.
func (t *turns) serve(lane int, number uint32) {
	at, seats := &t.lanes[lane], t.of.arrivals.seatsOf(number)
	at.upTo = Position(t.of.arrivals.At(number).position)
	t.virtual = at.served
	at.served += seats * t.of.lanes.all[lane].step
	at.held += seats
	at.ready--
	t.people++
	t.seats += seats
}

// reach serves people until the serving pointers are those of a call.
func (t *turns) reach(upTo []Position) error {
	if len(upTo) != len(t.of.lanes.all) {
		return violation(RuleCall, "%d positions, but the policy has %d lanes", len(upTo), len(t.of.lanes.all))
	}
	behind := 0 // lanes whose pointer has still to move
	for i, p := range upTo {
		l := &t.of.lanes.all[i]
		switch {
		case p < l.called():
			return violation(RuleCall, "up to %d in lane %q, but %d is already called", p, l.name, l.called())
		case p > l.places:
			return violation(RuleCall, "up to %d in lane %q, but only %d places are drawn", p, l.name, l.places)
		case p > l.called():
			behind++
		}
	}
	if behind == 0 {
		return violation(RuleCall, "no visitor is called")
	}
	for behind > 0 {
		i, number, ok := t.peek()
		if !ok {
			return violation(RuleCall, "up to %v, but the last person in line is before", upTo)
		}
		t.serve(i, number)
		switch {
		case t.lanes[i].upTo > upTo[i]:
			return violation(RuleCall, "up to %d in lane %q, but its place %d comes before the end of this call",
				upTo[i], t.of.lanes.all[i].name, t.lanes[i].upTo)
		case t.lanes[i].upTo == upTo[i]:
			behind--
		}
	}
	return nil
}

// commit makes the served people called.
func (t *turns) commit(now Time) {
	s := t.of
	s.lanes.virtual = t.virtual
	for i := range s.lanes.all {
		l, at := &s.lanes.all[i], &t.lanes[i]
		if at.upTo == l.called() {
			continue
		}
		l.passed += uint64(at.upTo - l.called())
		for p := l.called() + 1; p <= at.upTo && s.policy.HasGaps(); p++ {
			if _, ok := l.holder(&s.arrivals, p); !ok {
				l.passed--
			}
		}
		l.calls = append(l.calls, call{index: EntryIndex(s.size), clock: s.clockAt(now), upTo: at.upTo})
		l.waiting += l.ready - at.ready
		l.served, l.ready, l.held = at.served, at.ready, at.held
	}
}

// nextPlace returns the lane, as its index, and the part of the first place that is not published:
// windows in order, in each the first place of every lane, then the second, and so on; nil if every
// drawn place is published.
func (l *lanes) nextPlace() (lane int, next *part) {
	rank := Position(0)
	for i := range l.all {
		at := &l.all[i]
		if at.assigned == at.places {
			continue
		}
		p := at.partAt(at.assigned + 1)
		r := at.assigned + 1 - p.first
		if next == nil || p.window < next.window || p.window == next.window && r < rank {
			lane, next, rank = i, p, r
		}
	}
	return lane, next
}

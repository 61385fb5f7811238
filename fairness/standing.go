package fairness

import (
	"slices"
	"sort"
)

// This file answers questions of visitors and organizers. The server shows the answers; an auditor
// does not need them, and the verifier compiles without this file.

// Status is the stage that a ticket has reached.
type Status string

// The statuses of a ticket, in the order of its life.
const (
	StatusWaiting  Status = "waiting"  // its window is not drawn
	StatusDrawn    Status = "drawn"    // it has a position but is not called
	StatusCalled   Status = "called"   // it may be claimed
	StatusAdmitted Status = "admitted" // it was claimed
	StatusSkipped  Status = "skipped"  // it was passed over for a [Reason]
)

func (o outcome) status() Status {
	if o.skipped() {
		return StatusSkipped
	}
	return StatusAdmitted
}

// Standing describes where one ticket stands.
type Standing struct {
	Ticket   Ticket
	Index    EntryIndex // index of its arrive entry
	Joined   Time
	Window   Window
	Slot     int // of the first window, from 0; of other windows 0
	Seq      uint32
	Lane     Lane
	Seats    uint32
	Status   Status
	Reason   Reason   // reason for the skip, if skipped
	Position Position // 0 until drawn
	// AheadMin and AheadMax bound the number of uncalled places ahead of the ticket in its lane,
	// given-up places included. They are equal once drawn and 0 once called. While its window is open
	// AheadMax grows with every arrival.
	AheadMin, AheadMax uint64
	// TicketsMin and TicketsMax are the numbers of tickets that have these places: without slots and lots all of them.
	TicketsMin, TicketsMax uint64
	// BeforeMin and BeforeMax bound the number of tickets called before the ticket in all lanes: without slots and
	// lots at least AheadMin and AheadMax. BeforeMin assumes that the other lanes get no more places and have only the
	// largest parties; BeforeMax, that they never run out of places and have no parties. With slots or lots, the
	// numbers of tickets among places that are not drawn, or that parties have, are estimates.
	BeforeMin, BeforeMax uint64
	Left                 Millis // time left to claim, if called; at least 0
	Extended             bool   // whether it got more of that, which it gets once; false unless called
	Restored             bool   // whether it was revoked and got its place back, which it gets once
	Settled              Time   // when it was admitted or skipped, if so
	SettledIndex         EntryIndex
}

// Standing returns where a ticket stood when the transcript had size entries; false if it had not
// joined. now must not be before the latest of those entries. With size, a server can answer from
// its stored entries although it has applied more.
func (s *State) Standing(t Ticket, size uint64, now Time) (Standing, bool) {
	number, ok := s.arrivals.find(t)
	if !ok || uint64(s.arrivals.At(number).index) >= size {
		return Standing{}, false
	}
	a, w := s.arrivals.At(number), s.windows.of(number)
	lane := s.arrivals.laneOf(number)
	st := Standing{
		Ticket: t, Index: a.index, Joined: a.time, Window: w.Window, Slot: s.policy.SlotOf(w.Index, a.time),
		Seq:  s.arrivals.seqOf(number, w),
		Lane: s.lanes.all[lane].name, Seats: uint32(s.arrivals.seatsOf(number)), Status: StatusWaiting,
	}
	if own := s.arrivals.claimedAt(number, size); own > 0 {
		st.Restored = s.arrivals.claims.At(own-1).restored > 0
	}
	s.place(&st, number, size, now)
	if end := s.arrivals.settledAt(number, size); end != nil {
		st.Status, st.Reason = end.outcome.status(), reasons[end.outcome]
		st.Settled, st.SettledIndex = end.time, end.index
		st.AheadMin, st.AheadMax, st.BeforeMin, st.BeforeMax, st.Left, st.Extended = 0, 0, 0, 0, 0, false
		st.TicketsMin, st.TicketsMax = 0, 0
	}
	return st, true
}

// place fills in the position, the call and the places ahead.
func (s *State) place(st *Standing, number uint32, size uint64, now Time) {
	w, position := s.windows.of(number), Position(s.arrivals.At(number).position)
	lane := s.arrivals.laneOf(number)
	l, party := &s.lanes.all[lane], uint64(max(s.policy.Party, 1))
	var seatsMin, seatsMax uint64     // of the places ahead
	var ticketsMin, ticketsMax uint64 // of these places
	switch called := l.calledAt(size); {
	case w.drawn == 0 || uint64(w.drawn) >= size:
		st.AheadMin = uint64(s.placesBefore(lane, number) - called)
		st.AheadMax = st.AheadMin + uint64(s.lotsAt(lane, w, size)) - 1
		ticketsMin, ticketsMax = ticketsIn(s, lane, called, st.AheadMin), ticketsIn(s, lane, called, st.AheadMax)
		seatsMax = min(ticketsMax*party, l.seats)
		seatsMin = min(ticketsMin, seatsMax)
	case position > called:
		st.Status, st.Position = StatusDrawn, position
		st.AheadMin = uint64(position - 1 - called)
		st.AheadMax = st.AheadMin
		seatsMin = l.seatsBetween(called, position)
		seatsMax, ticketsMin = seatsMin, st.AheadMin
		if s.policy.HasGaps() {
			ticketsMin = min(ticketsMin, l.ticketsOf(seatsMin))
		}
		ticketsMax = ticketsMin
	default:
		c := s.claimOf(number, s.arrivals.claimedAt(number, size))
		st.Status, st.Position = StatusCalled, position
		st.Left, st.Extended = max(0, c.left(s.clockAt(now))), c.extended
		return
	}
	st.TicketsMin, st.TicketsMax = ticketsMin, ticketsMax
	st.BeforeMin = ticketsMin + s.lanes.others(lane, seatsMin, party, false)
	st.BeforeMax = ticketsMax + s.lanes.others(lane, seatsMax, 1, true)
}

// ticketsOf returns how many tickets of a lane have so many seats; with parties, on average.
func (l *lane) ticketsOf(seats uint64) uint64 { return seats * l.arrivals / max(l.seats, 1) }

// ticketsIn returns how many tickets have the next so many places of a lane after those called: with gaps, of the
// places that are not drawn as many as on average.
func ticketsIn(s *State, lane int, called Position, places uint64) uint64 {
	if !s.policy.HasGaps() {
		return places
	}
	l, tickets, ahead := &s.lanes.all[lane], uint64(0), places
	if called < l.places {
		next := l.partAt(called + 1)
		tickets = l.ticketsOf(uint64(l.lined - next.seats[called+1-next.first]))
		places -= min(places, uint64(l.places-called))
	}
	all := uint64(0)
	for i := s.windows.drawn; i < len(s.windows.all); i++ {
		all += uint64(s.windows.all[i].placesOf(lane, len(s.lanes.all)))
	}
	return min(ahead, tickets+places*(l.arrivals-l.drawn)/max(all, 1))
}

// settledAt returns the settlement of an arrival when the transcript had size entries; nil if it had none.
func (l *arrivals) settledAt(number uint32, size uint64) *settlement {
	settled := l.At(number).settled
	own := l.claimed[number]
	for ; own > 0 && uint64(l.claims.At(own-1).index) >= size; own = l.claims.At(own - 1).before {
		if c := l.claims.At(own - 1); l.restores(c) {
			settled = c.restored
		}
	}
	if settled == 0 || uint64(l.settlements.At(settled-1).index) >= size {
		return nil
	}
	return l.settlements.At(settled - 1)
}

// claimedAt returns the number of an arrival's claim, from 1, when the transcript had size entries; 0: none of its own.
func (l *arrivals) claimedAt(number uint32, size uint64) uint32 {
	own := l.claimed[number]
	for own > 0 && uint64(l.claims.At(own-1).index) >= size {
		own = l.claims.At(own - 1).before
	}
	return own
}

// placesBefore returns the number of places of a lane in the windows before that of an arrival.
func (s *State) placesBefore(lane int, number uint32) Position {
	l := &s.lanes.all[lane]
	if position := Position(s.arrivals.At(number).position); position > 0 {
		return l.partAt(position).first - 1
	}
	before := l.places
	for i := s.windows.drawn; s.windows.all[i].base+s.windows.all[i].count <= number; i++ {
		before += s.windows.all[i].placesOf(lane, len(s.lanes.all))
	}
	return before
}

// placesOf returns the number of places that a lane gets in a window that is not drawn.
func (w *window) placesOf(lane, lanes int) (places Position) {
	for _, n := range Fill(w.lotsOf(lane, lanes)) {
		places += Position(n)
	}
	return places
}

// lotsAt returns the number of places that a lane would get in a window which is not drawn, had it been drawn when the
// transcript had size entries. It counts all further lots of the tickets that had arrived.
func (s *State) lotsAt(lane int, w *window, size uint64) uint32 {
	n := w.count
	if uint64(s.arrivals.At(w.base+n-1).index) >= size {
		n = uint32(sort.Search(int(n), func(i int) bool {
			return uint64(s.arrivals.At(w.base+uint32(i)).index) >= size
		}))
	}
	if w.lots == nil {
		return n
	}
	then := window{lots: slices.Clone(w.lots)}
	for ; n < w.count; n++ {
		then.lots[s.arrivals.drumOf(w.base+n, &s.lanes)]--
	}
	return uint32(then.placesOf(lane, len(s.lanes.all)))
}

// seatsBetween returns the seats of the places between two places of a lane, of which the first may be 0.
func (l *lane) seatsBetween(p, q Position) uint64 {
	of := l.partAt(q)
	if of.seats == nil {
		return uint64(q - p - 1)
	}
	after := uint64(0) // seats of the places up to p
	if p > 0 {
		next := l.partAt(p + 1)
		after = uint64(next.seats[p+1-next.first])
	}
	return uint64(of.seats[q-of.first]) - after
}

// others returns how many places of the other lanes are called before a place of the lane at, in front of which its
// own lane has uncalled places for so many seats. Each place of the other lanes is for a party of that size. If
// endless, these lanes never run out of places; otherwise they get no more.
func (l *lanes) others(at int, seats, party uint64, endless bool) (n uint64) {
	start := func(at *lane) uint64 {
		if at.ready == 0 {
			return max(at.served, l.virtual)
		}
		return at.served
	}
	turn := start(&l.all[at]) + seats*l.all[at].step
	for i := range l.all {
		other := &l.all[i]
		end := turn // its places up to this virtual time are called before
		if i < at {
			end++ // and it wins ties
		}
		if from := start(other); i != at && from < end {
			places := (end-from-1)/(other.step*party) + 1
			if !endless {
				places = min(places, other.ready)
			}
			n += places
		}
	}
	return n
}

// Unsettled returns the number of tickets neither admitted nor skipped: in line, or called.
func (n *Counts) Unsettled() uint64 { return n.InLine + n.Waiting }

// WindowSum summarizes a window with arrivals.
type WindowSum struct {
	Window
	Arrivals uint32
	Lots     []uint32 // by slot, in each by lane
	Frozen   bool
	Drawn    bool
	Draws    Time     // expected time of the draw
	First    Position // 1 + the places of earlier windows, in all lanes; 0 until drawn
}

// Windows returns the latest windows with arrivals, at most n, oldest first.
func (s *State) Windows(n int) []WindowSum {
	all := s.windows.all
	from := len(all) - min(max(n, 0), len(all))
	sums := make([]WindowSum, 0, len(all)-from)
	for i := from; i < len(all); i++ {
		w := &all[i]
		sum := WindowSum{Window: w.Window, Arrivals: w.count, Lots: w.freezes(), Frozen: i < s.windows.frozen,
			Drawn: w.drawn != 0, Draws: w.draws(s.policy.Beacon)}
		if sum.Drawn {
			sum.First = s.lanes.firstPlace(i)
		}
		sums = append(sums, sum)
	}
	return sums
}

// firstPlace returns 1 + the places of the windows before one that is drawn, in all lanes.
func (l *lanes) firstPlace(window int) Position {
	first := Position(1)
	for i := range l.all {
		at := &l.all[i]
		k := sort.Search(len(at.parts), func(k int) bool { return at.parts[k].window >= window })
		if k == len(at.parts) {
			first += at.places
		} else {
			first += at.parts[k].first - 1
		}
	}
	return first
}

// Uncalled returns how many tickets of each of the latest n windows with arrivals have no place that a call has passed.
// With slots or lots it is an estimate.
func Uncalled(s *State, n int) (list []uint32) {
	most := uint64(0) // in all drawn windows
	for i := range s.lanes.all {
		most += s.lanes.all[i].drawn - s.lanes.all[i].passed
	}
	for i := max(0, len(s.windows.all)-n); i < len(s.windows.all); i++ {
		tickets := s.windows.all[i].count
		if i < s.windows.drawn {
			left, places := s.lanes.uncalled(i)
			tickets = uint32(min(most, (uint64(tickets)*left+places-1)/places))
		}
		list = append(list, tickets)
	}
	return list
}

// uncalled returns the number of places of a drawn window that no call has passed, and of all its places.
func (l *lanes) uncalled(window int) (left, places uint64) {
	for i := range l.all {
		at := &l.all[i]
		k := sort.Search(len(at.parts), func(k int) bool { return at.parts[k].window >= window })
		if k < len(at.parts) && at.parts[k].window == window {
			n := uint64(len(at.parts[k].order))
			places += n
			left += n - min(n, uint64(max(at.called()+1, at.parts[k].first)-at.parts[k].first))
		}
	}
	return left, places
}

// draws returns when a window is drawn: when its round appears or, without a beacon, when it ends.
func (w *window) draws(b *Beacon) Time {
	switch {
	case b == nil:
		return w.To
	case w.round == 0:
		return Time(b.Emitted(b.Round(w.To)))
	default:
		return Time(b.Emitted(w.round))
	}
}

// calledAt returns the serving pointer when the transcript had size entries.
func (l *lane) calledAt(size uint64) Position {
	for i := len(l.calls) - 1; i >= 0; i-- {
		if uint64(l.calls[i].index) < size {
			return l.calls[i].upTo
		}
	}
	return 0
}

// seqOf returns the number of an arrival in its lane of the window, from 0.
func (l *arrivals) seqOf(number uint32, w *window) uint32 {
	if l.details.Len() == 0 {
		return number - w.base
	}
	return l.details.At(number).seq
}

// LaneCounts returns the totals of each lane, in the order of the policy.
func (s *State) LaneCounts() []Counts {
	list := make([]Counts, len(s.lanes.all))
	for i := range s.lanes.all {
		s.lanes.all[i].addTo(&list[i])
	}
	return list
}

// Passed returns for each lane how many tickets have places that its pointer has passed. Without slots and lots these
// are all places that it has passed.
func Passed(s *State) []uint64 {
	list := make([]uint64, len(s.lanes.all))
	for i := range s.lanes.all {
		list[i] = s.lanes.all[i].passed
	}
	return list
}

// AwaitsDraw reports whether a ticket's window is frozen but not drawn: the ticket can be neither revoked nor restored.
func (s *State) AwaitsDraw(t Ticket) bool {
	number, ok := s.arrivals.find(t)
	return ok && s.windows.awaitsDraw(number)
}

// Rules returns the window rules in force, oldest first.
func (s *Schedule) Rules() []WindowRule { return slices.Clone(s.rules) }

// Knows reports whether a ticket has joined.
func (s *State) Knows(t Ticket) bool {
	_, ok := s.arrivals.find(t)
	return ok
}

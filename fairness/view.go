package fairness

import "sort"

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

// outcome returns how an arrival was settled.
func (s *State) outcome(a *arrival) outcome {
	if a.settled == 0 {
		return open
	}
	return s.settlements.at(a.settled - 1).outcome
}

// windowOf returns the window of an arrival.
func (s *State) windowOf(number uint32) *window {
	i := sort.Search(len(s.windows), func(i int) bool { return s.windows[i].base > number })
	return &s.windows[i-1]
}

// calledAt returns the serving pointer when the transcript had size entries.
func (s *State) calledAt(size uint64) Position {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if uint64(s.calls[i].index) < size {
			return s.calls[i].upTo
		}
	}
	return 0
}

func (s *State) called() Position { return s.calledAt(s.size) }

// callOf returns the call that reached a position.
func (s *State) callOf(p Position) (call, bool) {
	if p == 0 || p > s.called() {
		return call{}, false
	}
	i := sort.Search(len(s.calls), func(i int) bool { return s.calls[i].upTo >= p })
	return s.calls[i], true
}

// claimLeft returns how long a ticket reached by call c may still be claimed.
func (s *State) claimLeft(c call, now Time) Millis {
	return s.policy.Claim - Millis(s.clockAt(now)-c.clock)
}

// clockAt returns the claim clock at a time that is not before the latest entry. It stands still in a pause, and
// after that entry it advances by at most the policy's grace, so that an outage costs nobody's turn.
func (s *State) clockAt(now Time) Time {
	if s.pace.paused {
		return s.clock
	}
	return s.clock + min(now-s.now, Time(s.policy.Grace))
}

// Paused reports whether calls are paused.
func (s *State) Paused() bool { return s.pace.paused }

// Waiting returns the number of called places neither admitted nor skipped.
func (s *State) Waiting() uint64 { return s.waiting }

// windowAt returns the window of a drawn position.
func (s *State) windowAt(p Position) *window {
	i := sort.Search(s.drawn, func(i int) bool { return s.windows[i].first > p })
	return &s.windows[i-1]
}

// number returns the number of the arrival at a position of the window.
func (w *window) number(p Position) uint32 { return w.base + w.order[p-w.first] }

// at returns the arrival at a drawn position.
func (s *State) at(p Position) *arrival { return s.arrivals.at(s.windowAt(p).number(p)) }

// Size returns the number of entries applied.
func (s *State) Size() uint64 { return s.size }

// Now returns the time of the latest entry that has one.
func (s *State) Now() Time { return s.now }

// Policy returns the published policy; [State.Outflow] and [State.Schedule] include amendments.
func (s *State) Policy() *Policy { return &s.policy }

// Schedule returns the windows in force.
func (s *State) Schedule() *Schedule { return s.schedule }

// Outflow returns the outflow in force.
func (s *State) Outflow() Outflow { return s.pace.outflow }

// Ended reports whether the room has ended.
func (s *State) Ended() bool { return s.ended }

// Counts holds the totals of a room.
type Counts struct {
	Arrivals uint64
	Drawn    uint64 // places drawn
	Assigned uint64 // places published
	Called   uint64 // places the serving pointer has passed
	Admitted uint64
	NoShows  uint64
	Left     uint64
	Revoked  uint64
	Waiting  uint64 // called places neither admitted nor skipped
	InLine   uint64 // tickets neither called nor skipped
	Windows  uint64 // windows with arrivals
	Amends   uint64
}

// Counts returns the room's totals.
func (s *State) Counts() Counts {
	n := Counts{
		Arrivals: uint64(s.arrivals.count),
		Drawn:    uint64(s.places),
		Assigned: uint64(s.assigned),
		Called:   uint64(s.called()),
		Admitted: s.settled[admitted],
		NoShows:  s.settled[noShow],
		Left:     s.settled[left],
		Waiting:  s.waiting,
		Windows:  uint64(len(s.windows)),
		Amends:   s.amends,
	}
	for _, of := range s.settled[revoked:] {
		n.Revoked += of
	}
	n.InLine = n.Arrivals - n.Waiting - n.Admitted - n.NoShows - n.Left - n.Revoked
	return n
}

// FreezeDue returns when the next window with arrivals ends and can be frozen; false if no window
// is left to freeze. It also works for a room that has ended, in which windows may have been left
// open.
func (s *State) FreezeDue() (Time, bool) {
	if s.frozen == len(s.windows) {
		return 0, false
	}
	return s.windows[s.frozen].To, true
}

// NextSeq returns the seq of the next arrival in w.
func (s *State) NextSeq(w Window) uint32 {
	if n := len(s.windows); n > 0 && s.windows[n-1].Index == w.Index {
		return s.windows[n-1].count
	}
	return 0
}

// WindowOf returns the window in which a ticket joined; false if it has not joined.
func (s *State) WindowOf(t Ticket) (WindowIndex, bool) {
	number, ok := s.arrivals.find(t)
	if !ok {
		return 0, false
	}
	return s.windowOf(number).Index, true
}

// AwaitsDraw reports whether a ticket's window is frozen but not drawn, so that the ticket cannot be revoked.
func (s *State) AwaitsDraw(t Ticket) bool {
	number, ok := s.arrivals.find(t)
	return ok && s.awaitsDraw(number)
}

func (s *State) awaitsDraw(number uint32) bool {
	if s.drawn == s.frozen {
		return false
	}
	last := &s.windows[s.frozen-1]
	return s.arrivals.at(number).position == 0 && number < last.base+last.count
}

// Knows reports whether a ticket has joined.
func (s *State) Knows(t Ticket) bool {
	_, ok := s.arrivals.find(t)
	return ok
}

// NextAssign returns the assign entry that is due; false if every drawn place is assigned.
func (s *State) NextAssign() (Assign, bool) {
	if s.ended || s.assigned == s.places {
		return Assign{}, false
	}
	p := s.assigned + 1
	w := s.windowAt(p)
	return Assign{Window: w.Index, Lane: General, Position: p, Ticket: s.arrivals.at(w.number(p)).ticket}, true
}

package fairness

// clockAt returns the claim clock at a time that is not before the latest entry. It stands still in a pause, and
// after that entry it advances by at most the policy's grace, so that an outage costs nobody's turn.
func (s *State) clockAt(now Time) Time {
	if s.pace.paused {
		return s.clock
	}
	return s.clock + min(now-s.now, Time(s.policy.Grace))
}

// Waiting returns the number of called places neither admitted nor skipped.
func (s *State) Waiting() (n uint64) {
	for i := range s.lanes.all {
		n += s.lanes.all[i].waiting
	}
	return n
}

// Size returns the number of entries applied.
func (s *State) Size() uint64 { return s.size }

// Now returns the time of the latest entry that has one.
func (s *State) Now() Time { return s.now }

// Policy returns the published policy; [State.InForce] and [State.Schedule] include amendments.
func (s *State) Policy() *Policy { return &s.policy }

// Schedule returns the windows in force.
func (s *State) Schedule() *Schedule { return s.schedule }

// InForce holds what amendments can change, apart from the schedule.
type InForce struct {
	Outflow      Outflow
	Seats        uint32         // 0: any number
	Paused       bool           // calls are paused
	ClaimsPaused bool           // and claims of called visitors too
	Open         bool           // the site admits visitors who are not in line
	Message      [HashSize]byte // hash of the message to visitors; zero: none
}

// InForce returns what is in force.
func (s *State) InForce() InForce {
	return InForce{s.pace.outflow, s.seats, s.pace.paused, s.claimsPaused, s.isOpen, s.message}
}

// Ended reports whether the room has ended.
func (s *State) Ended() bool { return s.ended }

// Counts holds the totals of a room or a lane.
type Counts struct {
	Arrivals uint64
	Drawn    uint64 // tickets with a place
	Assigned uint64 // of these, those published
	Called   uint64 // places the serving pointer has passed
	Ready    uint64 // drawn tickets neither called nor skipped
	Admitted uint64
	NoShows  uint64
	Left     uint64
	TooLarge uint64 // parties skipped because too few seats were left
	Revoked  uint64
	Waiting  uint64 // called places neither admitted nor skipped
	InLine   uint64 // tickets neither called nor skipped
	Windows  uint64 // windows with arrivals; 0 for a lane
	Amends   uint64 // 0 for a lane
	Seats    uint64 // seats of all arrivals
	Held     uint64 // seats of called places neither admitted nor skipped
	Sold     uint64 // seats of admitted tickets
}

// Counts returns the room's totals.
func (s *State) Counts() Counts {
	n := Counts{Windows: uint64(len(s.windows.all)), Amends: s.amends}
	for i := range s.lanes.all {
		s.lanes.all[i].addTo(&n)
	}
	return n
}

func (l *lane) addTo(n *Counts) {
	settled := uint64(0)
	for _, of := range l.settled {
		settled += of
	}
	n.Arrivals += l.arrivals
	n.Drawn += l.drawn
	n.Assigned += l.stated
	n.Called += uint64(l.called())
	n.Ready += l.ready
	n.Admitted += l.settled[admitted]
	n.NoShows += l.settled[noShow]
	n.Left += l.settled[left]
	n.TooLarge += l.settled[tooLarge]
	n.Seats += l.seats
	n.Held += l.held
	n.Sold += l.sold
	for _, of := range l.settled[revoked:] {
		n.Revoked += of
	}
	n.Waiting += l.waiting
	n.InLine += l.arrivals - l.waiting - settled
}

// FreezeDue returns when the next window to freeze ends; false if none is left. A room that has ended may have some.
func (s *State) FreezeDue() (Time, bool) {
	if s.windows.frozen == len(s.windows.all) {
		return 0, false
	}
	return s.windows.all[s.windows.frozen].To, true
}

// TurnOf returns the window in which a ticket joined and, if it was called, how much of its time to claim the latest
// entry has left it, at most 0 for a no-show; false if it has not joined.
func (s *State) TurnOf(t Ticket) (in WindowIndex, left Millis, ok bool) {
	number, ok := s.arrivals.find(t)
	if !ok {
		return 0, 0, false
	}
	c := s.claimOf(number, s.arrivals.claimed[number])
	return s.windows.of(number).Index, c.left(s.clock), true
}

// NextAssign returns the assign entry that is due; false if every drawn place is assigned.
func (s *State) NextAssign() (Assign, bool) {
	lane, part := s.lanes.nextPlace()
	if s.ended || part == nil {
		return Assign{}, false
	}
	l, w := &s.lanes.all[lane], &s.windows.all[part.window]
	p := l.assigned + 1
	number, _ := l.holder(&s.arrivals, p)
	a := s.arrivals.At(number)
	return Assign{Window: w.Index, Lane: l.name, Position: p, Ticket: a.ticket}, true
}

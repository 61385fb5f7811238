package fairness

import "sort"

// Status is where a ticket stands.
type Status string

// The statuses of a ticket, in the order of its life.
const (
	StatusWaiting  Status = "waiting"  // its window is not drawn
	StatusDrawn    Status = "drawn"    // it has a position
	StatusCalled   Status = "called"   // it may be claimed
	StatusAdmitted Status = "admitted" // it was claimed
	StatusSkipped  Status = "skipped"  // it was passed over, see [Reason]
)

// Standing is what a room says about one ticket.
type Standing struct {
	Ticket   Ticket
	Index    EntryIndex // of its arrive entry
	Joined   Time
	Window   Window
	Seq      uint32
	Lane     Lane
	Status   Status
	Reason   Reason   // when skipped
	Position Position // 0 until drawn
	// AheadMin and AheadMax bound the places not yet called before its own,
	// given up ones included: the same number once drawn, 0 once called. While
	// its window is open AheadMax grows with every arrival.
	AheadMin, AheadMax uint64
	Left               Millis // when called: time left to claim, not below 0
	Settled            Time   // when admitted or skipped
	SettledIndex       EntryIndex
}

// Standing returns where a ticket stood when the transcript had size entries,
// at a moment not before the latest of them; false when it had not joined.
// The size lets a server that has applied entries it has not yet stored
// answer with what is stored.
func (s *State) Standing(t Ticket, size uint64, now Time) (Standing, bool) {
	a, number := s.find(t)
	if a == nil || uint64(a.index) >= size {
		return Standing{}, false
	}
	w := &s.windows[a.window]
	st := Standing{
		Ticket: t, Index: a.index, Joined: a.time, Window: w.Window, Seq: number - w.base,
		Lane: General, Status: StatusWaiting,
	}
	s.place(&st, w, a.position, size, now)
	if a.settled != 0 && uint64(a.settled) < size {
		st.Status, st.Reason, st.Settled, st.SettledIndex = a.outcome.status(), reasons[a.outcome], a.settledAt, a.settled
		st.AheadMin, st.AheadMax, st.Left = 0, 0, 0
	}
	return st, true
}

// place fills in position, call and the places ahead.
func (s *State) place(st *Standing, w *window, position Position, size uint64, now Time) {
	switch called := uint64(s.calledAt(size)); {
	case w.drawn == 0 || uint64(w.drawn) >= size:
		lots := int(w.count)
		if uint64(s.arrivals.at(w.base+w.count-1).index) >= size {
			lots = sort.Search(lots, func(i int) bool { return uint64(s.arrivals.at(w.base+uint32(i)).index) >= size })
		}
		st.AheadMin = uint64(w.base) - called
		st.AheadMax = st.AheadMin + uint64(lots) - 1
	case uint64(position) > called:
		st.Status, st.Position = StatusDrawn, position
		st.AheadMin = uint64(position) - 1 - called
		st.AheadMax = st.AheadMin
	default:
		c, _ := s.callOf(position)
		st.Status, st.Position, st.Left = StatusCalled, position, max(0, s.left(c, now))
	}
}

// find returns the arrival of a ticket and its number, nil for none.
func (s *State) find(t Ticket) (*arrival, uint32) {
	number, ok := s.tickets[t]
	if !ok {
		return nil, 0
	}
	return s.arrivals.at(number), number
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

// left returns how long a ticket of that call may still be claimed.
func (s *State) left(c call, now Time) Millis {
	return s.policy.Claim - Millis(s.pace.clock(now)-c.clock)
}

// at returns the arrival at a drawn position.
func (s *State) at(p Position) *arrival {
	i := sort.Search(s.drawn, func(i int) bool { return s.windows[i].first > p })
	w := &s.windows[i-1]
	return s.arrivals.at(w.base + w.order[p-w.first])
}

// Size returns the number of entries applied.
func (s *State) Size() uint64 { return s.size }

// Now returns the time of the latest entry that has one.
func (s *State) Now() Time { return s.now }

// Policy returns the policy as published; amendments are in [State.Outflow]
// and [State.Schedule].
func (s *State) Policy() *Policy { return &s.policy }

// Schedule returns the windows in force.
func (s *State) Schedule() *Schedule { return s.schedule }

// Outflow returns the outflow in force.
func (s *State) Outflow() Outflow { return s.pace.outflow }

// Paused tells whether calls are held.
func (s *State) Paused() bool { return s.pace.paused }

// Ended tells whether the room has ended.
func (s *State) Ended() bool { return s.ended }

// Message returns the hash of the message to visitors, zero for none.
func (s *State) Message() [HashSize]byte { return s.message }

// Counts sums up a room.
type Counts struct {
	Arrivals uint64
	Drawn    uint64 // places drawn
	Assigned uint64 // places stated
	Called   uint64 // places the serving pointer has passed
	Admitted uint64
	NoShows  uint64
	Left     uint64
	Revoked  uint64
	Waiting  uint64 // called places neither admitted nor skipped
	Windows  uint64 // with arrivals
	Amends   uint64
}

// Counts returns the room's sums.
func (s *State) Counts() Counts {
	return Counts{
		Arrivals: uint64(s.arrivals.count),
		Drawn:    uint64(s.places),
		Assigned: uint64(s.assigned),
		Called:   uint64(s.called()),
		Admitted: s.settled[admitted],
		NoShows:  s.settled[noShow],
		Left:     s.settled[left],
		Revoked:  s.settled[revoked],
		Waiting:  s.waiting,
		Windows:  uint64(len(s.windows)),
		Amends:   s.amends,
	}
}

// WindowSum is what became of a window with arrivals.
type WindowSum struct {
	Window
	Arrivals uint32
	Frozen   bool
	Drawn    bool
	Draws    Time     // when it is drawn, if all goes well
	First    Position // of its first place, once drawn
}

// Windows returns the latest windows with arrivals, at most n, oldest first.
func (s *State) Windows(n int) []WindowSum {
	from := len(s.windows) - min(max(n, 0), len(s.windows))
	sums := make([]WindowSum, 0, len(s.windows)-from)
	for i := from; i < len(s.windows); i++ {
		w := &s.windows[i]
		sums = append(sums, WindowSum{w.Window, w.count, i < s.frozen, w.drawn != 0, s.draws(w), w.first})
	}
	return sums
}

// draws returns when a window is drawn: with its round, or when it is over.
func (s *State) draws(w *window) Time {
	switch b := s.policy.Beacon; {
	case b == nil:
		return w.To
	case w.round == 0:
		return Time(b.Emitted(b.Round(w.To, w.To)))
	default:
		return Time(b.Emitted(w.round))
	}
}

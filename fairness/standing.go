package fairness

import "sort"

// This file answers questions of visitors and organizers. The server shows the answers; an auditor
// does not need them, and the verifier compiles without this file.

// ClaimsPaused reports whether claims of called visitors are paused too.
func (s *State) ClaimsPaused() bool { return s.claimsPaused }

// Message returns the hash of the message to visitors; zero: no message.
func (s *State) Message() [HashSize]byte { return s.message }

// IsOpen reports whether the site admits visitors who are not in line.
func (s *State) IsOpen() bool { return s.isOpen }

// Standing describes where one ticket stands.
type Standing struct {
	Ticket   Ticket
	Index    EntryIndex // index of its arrive entry
	Joined   Time
	Window   Window
	Seq      uint32
	Lane     Lane
	Status   Status
	Reason   Reason   // reason for the skip, if skipped
	Position Position // 0 until drawn
	// AheadMin and AheadMax bound the number of uncalled places ahead of the ticket, given-up places
	// included. They are equal once drawn and 0 once called. While its window is open AheadMax grows
	// with every arrival.
	AheadMin, AheadMax uint64
	Left               Millis // time left to claim, if called; at least 0
	Settled            Time   // when it was admitted or skipped, if so
	SettledIndex       EntryIndex
}

// Standing returns where a ticket stood when the transcript had size entries; false if it had not
// joined. now must not be before the latest of those entries. With size, a server can answer from
// its stored entries although it has applied more.
func (s *State) Standing(t Ticket, size uint64, now Time) (Standing, bool) {
	number, ok := s.arrivals.find(t)
	if !ok || uint64(s.arrivals.at(number).index) >= size {
		return Standing{}, false
	}
	a, w := s.arrivals.at(number), s.windowOf(number)
	st := Standing{
		Ticket: t, Index: a.index, Joined: a.time, Window: w.Window, Seq: number - w.base,
		Lane: General, Status: StatusWaiting,
	}
	s.place(&st, w, Position(a.position), size, now)
	if a.settled == 0 {
		return st, true
	}
	if end := s.settlements.at(a.settled - 1); uint64(end.index) < size {
		st.Status, st.Reason = end.outcome.status(), reasons[end.outcome]
		st.Settled, st.SettledIndex = end.time, end.index
		st.AheadMin, st.AheadMax, st.Left = 0, 0, 0
	}
	return st, true
}

// place fills in the position, the call and the places ahead.
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
		st.Status, st.Position, st.Left = StatusCalled, position, max(0, s.claimLeft(c, now))
	}
}

// WindowSum summarizes a window with arrivals.
type WindowSum struct {
	Window
	Arrivals uint32
	Frozen   bool
	Drawn    bool
	Draws    Time     // expected time of the draw
	First    Position // first position; 0 until drawn
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

// draws returns when a window is drawn: when its round appears or, without a beacon, when it ends.
func (s *State) draws(w *window) Time {
	switch b := s.policy.Beacon; {
	case b == nil:
		return w.To
	case w.round == 0:
		return Time(b.Emitted(b.Round(w.To)))
	default:
		return Time(b.Emitted(w.round))
	}
}

package fairness

import "slices"

// Mark is a state as it was, for [State.Undo].
type Mark struct {
	state   State
	windows []window // those not drawn then: what follows changes them in place
}

// Mark remembers the state. It costs the same however many have arrived.
func (s *State) Mark() Mark { return Mark{*s, slices.Clone(s.windows[s.drawn:])} }

// Undo takes the state back to a mark of it: no entry after that was applied.
// Marks taken since are void. It looks at every arrival.
func (s *State) Undo(m Mark) {
	was := &m.state
	for n := was.arrivals.count; n < s.arrivals.count; n++ {
		a := s.arrivals.at(n)
		delete(s.tickets, a.ticket)
		*a = arrival{}
	}
	for n := range was.arrivals.count {
		a := s.arrivals.at(n)
		if uint64(a.settled) >= was.size {
			a.settled, a.settledAt, a.outcome = 0, 0, open
		}
		if a.position > was.places {
			a.position = 0
		}
	}
	*s = *was
	copy(s.windows[s.drawn:], m.windows)
}

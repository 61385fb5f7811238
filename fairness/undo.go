package fairness

import "slices"

// Mark is a saved state for [State.Undo].
type Mark struct {
	state   State
	windows []window // windows not drawn then, which later entries change in place
}

// Mark saves the state. The cost does not depend on the number of arrivals.
func (s *State) Mark() Mark { return Mark{*s, slices.Clone(s.windows[s.drawn:])} }

// Undo restores the state saved in m. Marks taken since are invalid. It visits every arrival.
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

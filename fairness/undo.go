package fairness

import "slices"

// Mark is a saved state for [State.Undo].
type Mark struct {
	state   State
	windows []window // windows not drawn at that time, which later entries change in place
}

// Mark saves the state. The cost does not depend on the number of arrivals.
func (s *State) Mark() Mark { return Mark{*s, slices.Clone(s.windows[s.drawn:])} }

// Undo restores the state saved in m. Marks taken since are invalid. The cost is that of the entries
// applied since.
func (s *State) Undo(m Mark) {
	was := &m.state
	for s.settlements.count > was.settlements.count {
		s.arrivals.at(s.settlements.at(s.settlements.count - 1).arrival).settled = 0
		s.settlements.drop()
	}
	for _, w := range s.windows[was.drawn:s.drawn] {
		for n := range w.count {
			s.arrivals.at(w.base + n).position = 0
		}
	}
	for s.arrivals.count > was.arrivals.count {
		s.arrivals.leave()
	}
	arrivals, settlements := s.arrivals, s.settlements
	*s = *was
	s.arrivals, s.settlements = arrivals, settlements
	copy(s.windows[s.drawn:], m.windows)
}

// leave undoes the latest join.
func (l *arrivals) leave() {
	delete(l.numbers, l.key(l.at(l.count-1).ticket))
	l.drop()
}

// drop removes the latest element.
func (l *list[T]) drop() {
	if l.count--; l.count == 0 {
		l.pieces = nil
		return
	}
	last := len(l.pieces) - 1
	l.pieces[last] = l.pieces[last][:l.count%pieceSize]
	if l.count%pieceSize == 0 {
		l.pieces = l.pieces[:last]
	}
}

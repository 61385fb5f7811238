package fairness

import "slices"

// Mark is a saved state for [State.Undo].
type Mark struct {
	state   State
	windows []window // windows not drawn at that time, which later entries change in place
}

// Mark saves the state. The cost does not depend on the number of arrivals.
func (s *State) Mark() Mark {
	m := Mark{*s, cloneWindows(s.windows[s.drawn:])}
	m.state.lanes = slices.Clone(s.lanes)
	return m
}

func cloneWindows(windows []window) []window {
	windows = slices.Clone(windows)
	for i := range windows {
		windows[i].lots = slices.Clone(windows[i].lots)
	}
	return windows
}

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
	for s.details.count > was.details.count {
		s.details.drop()
	}
	arrivals, details, settlements := s.arrivals, s.details, s.settlements
	*s = *was
	s.arrivals, s.details, s.settlements = arrivals, details, settlements
	s.lanes = slices.Clone(was.lanes)
	copy(s.windows[s.drawn:], cloneWindows(m.windows))
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

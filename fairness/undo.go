package fairness

import "slices"

// Mark is a saved state for [State.Undo].
type Mark struct {
	state   State
	windows []window // windows not drawn at that time, which later entries change in place
}

// Mark saves the state. The cost does not depend on the number of arrivals.
func (s *State) Mark() Mark {
	m := Mark{*s, cloneWindows(s.windows.all[s.windows.drawn:])}
	m.state.lanes.all = slices.Clone(s.lanes.all)
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
	for _, w := range s.windows.all[was.windows.drawn:s.windows.drawn] {
		for n := range w.count {
			s.arrivals.at(w.base + n).position = 0
		}
	}
	s.arrivals.undo(&was.arrivals)
	arrivals := s.arrivals
	*s = *was
	s.arrivals = arrivals
	s.lanes.all = slices.Clone(was.lanes.all)
	copy(s.windows.all[s.windows.drawn:], cloneWindows(m.windows))
}

// undo undoes the joins and settlements since then.
func (l *arrivals) undo(then *arrivals) {
	for l.settlements.count > then.settlements.count {
		l.at(l.settlements.at(l.settlements.count - 1).arrival).settled = 0
		l.settlements.drop()
	}
	for l.count > then.count {
		l.leave()
	}
	for l.details.count > then.details.count {
		l.details.drop()
	}
}

// leave undoes the latest join.
func (l *arrivals) leave() {
	s, hash := l.shardOf(l.at(l.count - 1).ticket)
	s.remove(hash>>32<<32 | uint64(l.count))
	l.drop()
}

// remove frees a slot. Each slot behind it moves up if it would no longer be found.
func (s *shard) remove(slot uint64) {
	mask := uint64(len(s.slots) - 1)
	free := slot >> s.shift
	for s.slots[free&mask] != slot {
		free++
	}
	s.used--
	for i := free + 1; s.slots[i&mask] != 0; i++ {
		if first := s.slots[i&mask] >> s.shift; (i-first)&mask >= i-free {
			s.slots[free&mask] = s.slots[i&mask]
			free = i
		}
	}
	s.slots[free&mask] = 0
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

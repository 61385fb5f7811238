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
		windows[i].drums = slices.Clone(windows[i].drums)
	}
	return windows
}

// Undo restores the state saved in m. Marks taken since are invalid. The cost is that of the entries
// applied since.
func (s *State) Undo(m Mark) {
	was := &m.state
	for _, w := range s.windows.all[was.windows.drawn:s.windows.drawn] {
		for n := range w.count {
			s.arrivals.At(w.base + n).position = 0
		}
	}
	s.door.undo(&was.door)
	s.arrivals.undo(&was.arrivals)
	arrivals, door := s.arrivals, s.door
	*s = *was
	s.arrivals, s.door = arrivals, door
	s.lanes.all = slices.Clone(was.lanes.all)
	copy(s.windows.all[s.windows.drawn:], cloneWindows(m.windows))
}

// undo undoes the joins, settlements and claims since then.
func (l *arrivals) undo(then *arrivals) {
	for l.claims.Len() > then.claims.Len() {
		last := l.claims.At(l.claims.Len() - 1)
		if l.restores(last) {
			l.At(last.arrival).settled = last.restored
		}
		l.claimed[last.arrival] = last.before
		if last.before == 0 {
			delete(l.claimed, last.arrival)
		}
		l.claims.Drop()
	}
	if l.claims.Len() == 0 {
		l.claimed = nil
	}
	for l.settlements.Len() > then.settlements.Len() {
		last := l.settlements.At(l.settlements.Len() - 1)
		if a := l.At(last.arrival); a.settled == l.settlements.Len() {
			a.settled = 0
		}
		l.settlements.Drop()
	}
	for l.Len() > then.Len() {
		l.leave()
	}
	for l.details.Len() > then.details.Len() {
		l.details.Drop()
	}
}

// restores reports whether a claim is that of a restore: it has taken a settlement back.
func (l *arrivals) restores(c *claim) bool {
	return c.restored > 0 && (c.before == 0 || l.claims.At(c.before-1).restored == 0)
}

// leave undoes the latest join.
func (l *arrivals) leave() {
	number := l.Len() - 1
	l.index.Remove(l.At(number).ticket[:], number)
	l.Drop()
}

// undo gives back the credentials taken since then.
func (d *door) undo(then *door) {
	for d.taken.Len() > then.taken.Len() {
		number := d.taken.Len() - 1
		last := d.taken.At(number)
		if last.unique {
			d.index.Remove(last.nullifier.value[:], number)
		}
		d.methods[last.nullifier.method].taken--
		*d.shown.At(last.arrival) &^= 1 << last.nullifier.method
		d.taken.Drop()
	}
	for d.shown.Len() > then.shown.Len() {
		d.shown.Drop()
	}
	d.round = then.round
}

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
	for l.claims.count > then.claims.count {
		last := l.claims.at(l.claims.count - 1)
		if l.restores(last) {
			l.at(last.arrival).settled = last.restored
		}
		l.claimed[last.arrival] = last.before
		if last.before == 0 {
			delete(l.claimed, last.arrival)
		}
		l.claims.drop()
	}
	if l.claims.count == 0 {
		l.claimed = nil
	}
	for l.settlements.count > then.settlements.count {
		last := l.settlements.at(l.settlements.count - 1)
		if a := l.at(last.arrival); a.settled == l.settlements.count {
			a.settled = 0
		}
		l.settlements.drop()
	}
	for l.count > then.count {
		l.leave()
	}
	for l.details.count > then.details.count {
		l.details.drop()
	}
}

// restores reports whether a claim is that of a restore: it has taken a settlement back.
func (l *arrivals) restores(c *claim) bool {
	return c.restored > 0 && (c.before == 0 || l.claims.at(c.before-1).restored == 0)
}

// leave undoes the latest join.
func (l *arrivals) leave() {
	number := l.count - 1
	l.index.remove(l.at(number).ticket[:], number)
	l.drop()
}

// undo gives back the credentials taken since then.
func (d *door) undo(then *door) {
	for d.taken.count > then.taken.count {
		number := d.taken.count - 1
		last := d.taken.at(number)
		if last.unique {
			d.index.remove(last.nullifier.value[:], number)
		}
		d.methods[last.nullifier.method].taken--
		*d.shown.at(last.arrival) &^= 1 << last.nullifier.method
		d.taken.drop()
	}
	for d.shown.count > then.shown.count {
		d.shown.drop()
	}
	d.round = then.round
}

// remove removes a key. Each slot behind its own moves up if it would no longer be found.
func (x *index) remove(key []byte, number uint32) {
	s, hash := x.shardOf(key)
	slot, mask := slotOf(hash, number), uint64(len(s.slots)-1)
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

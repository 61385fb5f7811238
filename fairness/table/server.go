package table

import "slices"

// This file holds what only servers do: taking elements back, and preparing for keys to come.

// Remove removes a key. Each slot behind its own moves up if it would no longer be found.
func (x *Index) Remove(key []byte, number uint32) {
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

// Drop removes the latest element.
func (l *List[T]) Drop() {
	if l.count--; l.count == 0 {
		l.pieces = nil
		return
	}
	last := len(l.pieces) - 1
	l.pieces[last] = l.pieces[last][:l.count%PieceSize]
	if l.count%PieceSize == 0 {
		l.pieces = l.pieces[:last]
	}
}

// AppendSlots appends the first slot of a key, and one that may be in the next cache line.
func (x *Index) AppendSlots(slots []*uint64, key []byte) []*uint64 {
	s, hash := x.shardOf(key)
	if s.used == 0 {
		return slots
	}
	first := hash >> s.shift
	return append(slots, &s.slots[first], &s.slots[(first+5)&uint64(len(s.slots)-1)])
}

// Load loads slots into the processor's cache.
func (x *Index) Load(slots []*uint64) {
	for _, slot := range slots { // nothing else here, so that the loads overlap
		x.loaded ^= *slot
	}
}

// Equal reports whether two indexes have the same keys. The order of their slots depends on keys that were removed.
func (x *Index) Equal(y *Index) bool {
	for i := range x.shards {
		if !slices.Equal(x.shards[i].sorted(), y.shards[i].sorted()) {
			return false
		}
	}
	return true
}

// sorted returns the slots in use.
func (s *shard) sorted() []uint64 {
	return slices.Sorted(func(yield func(uint64) bool) {
		for _, slot := range s.slots {
			if slot != 0 && !yield(slot) {
				return
			}
		}
	})
}

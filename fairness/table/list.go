// Package table has the containers of a room's state: a list of millions of values, and a hash table that finds them
// by a key. They know no rule.
package table

// List grows in pieces, and only moves elements of the first: copying millions of them would hold a
// room's lock for too long. The zero value is empty.
type List[T any] struct {
	count  uint32
	pieces [][]T
}

// PieceSize is the number of elements in a piece.
const PieceSize = 4096

// Len returns the number of elements.
func (l *List[T]) Len() uint32 { return l.count }

// At returns an element by its number, from 0. The pointer is valid until the next Add or Drop.
func (l *List[T]) At(number uint32) *T { return &l.pieces[number/PieceSize][number%PieceSize] }

// Add adds an element at the end.
func (l *List[T]) Add(v T) {
	if l.count%PieceSize == 0 {
		l.pieces = append(l.pieces, make([]T, 0, min(l.count, PieceSize)))
	}
	last := &l.pieces[len(l.pieces)-1]
	*last = append(*last, v)
	l.count++
}

package fairness

import "hash/maphash"

// arrival is one ticket's record. It is 40 bytes, because there are millions.
type arrival struct {
	ticket   Ticket
	index    EntryIndex // index of the arrive entry
	time     Time
	position uint32 // 0 before the draw
	settled  uint32 // number in State.settlements, from 1; 0: none yet
}

// arrivals holds the arrivals of a room in order, and finds them by ticket.
type arrivals struct {
	list[arrival]
	// numbers maps a ticket's hash to its arrival; on a collision, the next free key is used. A map
	// by ticket would be twice as large.
	numbers map[uint32]uint32
}

// ticketSeed is unknown to visitors, who choose their secrets and could choose equal hashes.
var ticketSeed = maphash.MakeSeed()

// key returns a ticket's key in numbers, which is free if the ticket is new.
func (l *arrivals) key(t Ticket) uint32 {
	for key := uint32(maphash.Bytes(ticketSeed, t[:])); ; key++ {
		if n, taken := l.numbers[key]; !taken || l.at(n).ticket == t {
			return key
		}
	}
}

// find returns the number of a ticket's arrival, from 0; false if there is none.
func (l *arrivals) find(t Ticket) (uint32, bool) {
	number, ok := l.numbers[l.key(t)]
	return number, ok
}

// join adds an arrival whose ticket is new.
func (l *arrivals) join(a arrival) {
	l.numbers[l.key(a.ticket)] = l.count
	l.add(a)
}

// list grows in pieces, and only moves elements of the first: copying millions of them would hold a
// room's lock for too long.
type list[T any] struct {
	count  uint32
	pieces [][]T
}

const pieceSize = 4096

func (l *list[T]) at(number uint32) *T { return &l.pieces[number/pieceSize][number%pieceSize] }

func (l *list[T]) add(v T) {
	if l.count%pieceSize == 0 {
		l.pieces = append(l.pieces, make([]T, 0, min(l.count, pieceSize)))
	}
	last := &l.pieces[len(l.pieces)-1]
	*last = append(*last, v)
	l.count++
}

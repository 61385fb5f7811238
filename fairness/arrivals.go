package fairness

import (
	"hash/maphash"
	"math/bits"
)

// arrival is one ticket's record. It is 40 bytes, because there are millions.
type arrival struct {
	ticket   Ticket
	index    EntryIndex // index of the arrive entry
	time     Time
	position uint32 // 0 before the draw
	settled  uint32 // number in arrivals.settlements, from 1; 0: none yet
}

// detail is what a room with several lanes, or with parties, keeps of an arrival in addition to [arrival].
type detail struct {
	seq   uint32 // number in its lane of the window
	lane  uint8  // index in lanes
	seats uint8
}

// settlement is the end of a ticket's wait.
type settlement struct {
	index   EntryIndex // admit or skip entry
	time    Time
	arrival uint32 // number in arrivals
	outcome outcome
}

// outcome is how an arrival was settled.
type outcome uint8

const (
	open outcome = iota
	admitted
	noShow
	left
	tooLarge
	revoked // revoked for a given reason
)

// reasons maps outcomes to skip reasons; "" if the outcome is not a skip.
var reasons = [...]Reason{
	noShow: NoShow, left: Left, tooLarge: TooLarge,
	revoked: Revoked, RevokedBot, RevokedDuplicate, RevokedFraud, RevokedRequest,
}

func (o outcome) skipped() bool { return reasons[o] != "" }

// arrivals holds the arrivals of a room in order, with how they were settled, and finds them by ticket.
type arrivals struct {
	list[arrival]
	details     list[detail] // of all arrivals, unless the room is plain
	settlements list[settlement]
	numbers     [shards]shard // a ticket's is given by the lowest bits of its hash
	loaded      uint64        // all slots that Foresee has loaded: without it, the compiler would leave that out
}

// shards is the number of parts of a room's hash table. Each grows on its own, because moving millions of numbers at
// once would hold the room's lock for too long.
const shards = 16

// shard is a hash table of the numbers of arrivals. A ticket's slot is the first free one from that of the highest
// bits of its hash on.
type shard struct {
	slots []uint64 // upper half of a ticket's hash, and its number, from 1; 0: free
	used  int
	shift uint8 // 64 - log2 of the number of slots
}

// ticketSeed is unknown to visitors, who choose their secrets and could choose equal hashes.
var ticketSeed = maphash.MakeSeed()

// shardOf returns the shard of a ticket, and its hash.
func (l *arrivals) shardOf(t Ticket) (*shard, uint64) {
	hash := maphash.Bytes(ticketSeed, t[:])
	return &l.numbers[hash%shards], hash
}

// find returns the number of a ticket's arrival, from 0; false if there is none.
func (l *arrivals) find(t Ticket) (uint32, bool) {
	s, hash := l.shardOf(t)
	for i := hash >> s.shift; s.used > 0; i++ {
		slot := s.slots[i&uint64(len(s.slots)-1)]
		if slot == 0 {
			break
		}
		if number := uint32(slot) - 1; slot>>32 == hash>>32 && l.at(number).ticket == t {
			return number, true
		}
	}
	return 0, false
}

// join adds an arrival whose ticket is new.
func (l *arrivals) join(a arrival) {
	s, hash := l.shardOf(a.ticket)
	if s.used*4 >= len(s.slots)*3 {
		s.grow()
	}
	l.add(a)
	s.put(hash>>32<<32 | uint64(l.count))
	s.used++
}

func (s *shard) put(slot uint64) {
	i := slot >> s.shift
	for s.slots[i&uint64(len(s.slots)-1)] != 0 {
		i++
	}
	s.slots[i&uint64(len(s.slots)-1)] = slot
}

// grow doubles the number of slots.
func (s *shard) grow() {
	old := s.slots
	s.slots = make([]uint64, max(8, 2*len(old)))
	clear(s.slots) // new memory that is read before it is written costs two page faults
	s.shift = uint8(64 - bits.TrailingZeros(uint(len(s.slots))))
	for _, slot := range old {
		if slot != 0 {
			s.put(slot)
		}
	}
}

// laneOf returns the lane of an arrival, as its index.
func (l *arrivals) laneOf(number uint32) int {
	if l.details.count == 0 {
		return 0
	}
	return int(l.details.at(number).lane)
}

// seqOf returns the number of an arrival in its lane of the window, from 0.
func (l *arrivals) seqOf(number uint32, w *window) uint32 {
	if l.details.count == 0 {
		return number - w.base
	}
	return l.details.at(number).seq
}

// seatsOf returns the number of seats of an arrival.
func (l *arrivals) seatsOf(number uint32) uint64 {
	if l.details.count == 0 {
		return 1
	}
	return uint64(l.details.at(number).seats)
}

// outcome returns how an arrival was settled.
func (l *arrivals) outcome(a *arrival) outcome {
	if a.settled == 0 {
		return open
	}
	return l.settlements.at(a.settled - 1).outcome
}

// settle ends the wait of an arrival.
func (l *arrivals) settle(number uint32, o outcome, index EntryIndex, t Time) {
	l.settlements.add(settlement{index, t, number, o})
	l.at(number).settled = l.settlements.count
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

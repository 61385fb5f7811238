package table

import (
	"hash/maphash"
	"math/bits"
)

// Index is a hash table that finds the values of a list by a key of theirs. It holds their numbers in the list, from 0.
// The zero value is empty.
type Index struct {
	shards [shards]shard // a key's is given by the lowest bits of its hash
	loaded uint64        // all slots that Load has loaded: without it, the compiler would leave that out
}

// shards is the number of parts of an index. Each grows on its own, because moving millions of numbers at once would
// hold the room's lock for too long.
const shards = 16

// shard is a hash table. A key's slot is the first free one from that of the highest bits of its hash on.
type shard struct {
	slots []uint64 // upper half of a key's hash, and its number plus 1; 0: free
	used  int
	shift uint8 // 64 - log2 of the number of slots
}

// hashSeed is unknown to visitors, who choose their secrets and could choose equal hashes.
var hashSeed = maphash.MakeSeed()

// shardOf returns the shard of a key, and its hash.
func (x *Index) shardOf(key []byte) (*shard, uint64) {
	hash := maphash.Bytes(hashSeed, key)
	return &x.shards[hash%shards], hash
}

// Find returns the number of a key; has reports whether the value with a number has that key. False: none has it.
func (x *Index) Find(key []byte, has func(number uint32) bool) (uint32, bool) {
	s, hash := x.shardOf(key)
	for i := hash >> s.shift; s.used > 0; i++ {
		slot := s.slots[i&uint64(len(s.slots)-1)]
		if slot == 0 {
			break
		}
		if number := uint32(slot) - 1; slot>>32 == hash>>32 && has(number) {
			return number, true
		}
	}
	return 0, false
}

// Add adds a key that is new.
func (x *Index) Add(key []byte, number uint32) {
	s, hash := x.shardOf(key)
	if s.used*4 >= len(s.slots)*3 {
		s.grow()
	}
	s.put(slotOf(hash, number))
	s.used++
}

func slotOf(hash uint64, number uint32) uint64 { return hash>>32<<32 | uint64(number+1) }

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

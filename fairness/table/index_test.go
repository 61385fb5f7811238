package table

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestIndex adds so many keys that some have equal halves of hashes, takes half of them back, and adds them again.
func TestIndex(t *testing.T) {
	const count = 400_000 // a pair on average, and nearly all share slots with others before growth
	var l List[[16]byte]
	var x Index
	random := rand.New(rand.NewPCG(1, 2))
	keys := make([][16]byte, count)
	for i := range keys {
		binary.LittleEndian.PutUint64(keys[i][:], uint64(i))
		binary.LittleEndian.PutUint64(keys[i][8:], random.Uint64())
	}
	check := func(added uint32) {
		t.Helper()
		for i, key := range keys {
			n, ok := x.Find(key[:], func(number uint32) bool { return *l.At(number) == key })
			if ok != (uint32(i) < added) || ok && n != uint32(i) {
				t.Fatalf("of %d keys, number %d is found as %d, %t", added, i, n, ok)
			}
		}
		used := 0
		for i := range x.shards {
			used += x.shards[i].used
		}
		if l.Len() != added || used != int(added) {
			t.Fatalf("%d keys and %d used slots after %d were added", l.Len(), used, added)
		}
	}
	add := func(keys [][16]byte) {
		for _, key := range keys {
			x.Add(key[:], l.Len())
			l.Add(key)
		}
	}
	add(keys)
	check(count)
	for range count / 2 {
		last := *l.At(l.Len() - 1)
		l.Drop()
		x.Remove(last[:], l.Len())
	}
	check(count / 2)
	add(keys[count/2:])
	check(count)
}

func TestList(t *testing.T) {
	var l List[int]
	const n = 2*PieceSize + 1
	for i := range n {
		l.Add(i)
	}
	for i := range uint32(n) {
		if *l.At(i) != int(i) {
			t.Fatalf("element %d is %d", i, *l.At(i))
		}
	}
	for range n {
		l.Drop()
	}
	if l.Len() != 0 {
		t.Fatalf("%d elements are left", l.Len())
	}
	if l.Add(7); *l.At(0) != 7 {
		t.Fatal("an emptied list lost an element")
	}
}

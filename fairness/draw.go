package fairness

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cloudflare/circl/xof"
)

const (
	drawLabel    = "proofline/draw/v1"
	seedLabel    = "proofline/seed/v1"
	shuffleLabel = "proofline/shuffle/v1"
)

// Seed decides one window's shuffle.
type Seed [HashSize]byte

// Alpha returns the input of a window's VRF proof: everything that its freeze fixes.
//
//	label || 0 || SHA-256(room entry) || uint64(window) || uint64(lots)... || uint64(size) || root
//
// with integers big-endian: 18 + 32 + 8 + 8 for each drum + 8 + 32 bytes, which is 106 for one lane.
func Alpha(roomHash [HashSize]byte, f *Freeze) []byte {
	lots := make([]byte, 0, 8*len(f.Lots))
	for _, n := range f.Lots {
		lots = binary.BigEndian.AppendUint64(lots, uint64(n))
	}
	return labelled(drawLabel, roomHash[:], uint64be(uint64(f.Window)), lots, uint64be(f.Size), f.Root[:])
}

func uint64be(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// NewSeed mixes values the operator was committed to (alpha and the VRF output beta) with one that
// was unpredictable then (the beacon's signature):
//
//	SHA-256(label || 0 || alpha || beta || uint64(round) || SHA-256(signature))
//
// Without a beacon the round is 0 and the signature empty.
func NewSeed(alpha []byte, beta [BetaSize]byte, round uint64, signature []byte) Seed {
	sum := sha256.Sum256(signature)
	return sha256.Sum256(labelled(seedLabel, alpha, beta[:], uint64be(round), sum[:]))
}

// Shuffle returns the order in which n lots of a lane are drawn: element k is the lot drawn
// as number k, both counted from 0. It is Fisher-Yates from the last place down to the
// second, with words of SHAKE256(label || 0 || seed || lane).
func Shuffle(seed Seed, lane Lane, n uint32) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	w := newWords(seed, lane)
	for i := len(order) - 1; i >= 1; i-- {
		j := w.below(uint32(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// Lot is a lot of a lane: its number in the drum of a slot. One that is not below the number of the drum's lots is
// empty.
type Lot struct {
	Slot int
	Seq  uint32
}

// Deal returns the order in which the lots of a lane are drawn, given how many there are in each slot of the window;
// most windows have one. Slots are shuffled alone and take turns: the first lot of each, the second of each, and so
// on, in an order of slots that comes from the same seed. See [Fill] for the empty lots.
func Deal(seed Seed, lane Lane, lots []uint32) (line []Lot) {
	turns, orders := []uint32{0}, [][]uint32{nil}
	if lots = Fill(lots); len(lots) == 1 {
		orders[0] = Shuffle(seed, lane, lots[0])
	} else {
		turns, orders = Shuffle(seed, lane+"/", uint32(len(lots))), make([][]uint32, len(lots))
		for i, n := range lots {
			orders[i] = Shuffle(seed, Lane(fmt.Sprintf("%s/%d", lane, i)), n)
		}
	}
	for round := range int(slices.Max(lots)) {
		for _, slot := range turns {
			if round < len(orders[slot]) {
				line = append(line, Lot{int(slot), orders[slot][round]})
			}
		}
	}
	return line
}

// Fill returns the numbers of a lane's lots in each slot after slots with fewer than half of the mean, rounded up, are
// filled up with empty lots to that number: whoever is alone in a slot would always be in the first round.
func Fill(lots []uint32) []uint32 {
	total, slots := uint64(0), uint64(len(lots))
	for _, n := range lots {
		total += uint64(n)
	}
	least := uint32((total + 2*slots - 1) / (2 * slots))
	filled := make([]uint32, slots)
	for i, n := range lots {
		filled[i] = max(n, least)
	}
	return filled
}

// words reads little-endian uint32 from SHAKE256.
type words struct {
	stream xof.XOF
	buffer [4096]byte
	rest   []byte // unread part of buffer
}

func newWords(seed Seed, lane Lane) *words {
	w := &words{stream: xof.SHAKE256.New()}
	_, _ = w.stream.Write(labelled(shuffleLabel, seed[:], []byte(lane))) // never fails
	return w
}

// below returns a number below m without modulo bias: it rejects words from the last, incomplete
// run of m values.
func (w *words) below(m uint32) uint32 {
	limit := uint64(1<<32) - uint64(1<<32)%uint64(m)
	for {
		if len(w.rest) == 0 {
			_, _ = w.stream.Read(w.buffer[:]) // never fails
			w.rest = w.buffer[:]
		}
		word := binary.LittleEndian.Uint32(w.rest)
		w.rest = w.rest[4:]
		if uint64(word) < limit {
			return word % m
		}
	}
}

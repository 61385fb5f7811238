package ticket

import (
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// MaxLots is the maximum size of a group that is shuffled, as in the browser: 80 MB, less than a
// second. An audit shuffles any size.
const MaxLots = 20_000_000

// place checks that the shuffle gives the position.
func (j *judge) place(facts Facts) Reason {
	b, arrive := j.b, j.arrive
	lots, _ := j.lotsOf(j.freeze)
	facts.number("lots", lots)
	if lots > MaxLots {
		return TooLarge
	}
	rank := uint64(0)
	for i, seq := range fairness.Shuffle(j.seed, arrive.Lane, uint32(lots)) {
		if seq == arrive.Seq {
			rank = uint64(i)
		}
	}
	facts.number("rank", rank)
	if b.FirstPlace == nil {
		return b.missing()
	}
	first, ok := j.firstPosition()
	if !ok {
		return NoPlaces
	}
	facts.number("first", first)
	if !j.beginsRightly(first) {
		return OtherFirst
	}
	position := first + rank
	facts.number("position", position)
	if b.Shown != nil && uint64(*b.Shown) != position {
		return OtherShown
	}
	if b.Place == nil {
		return b.missing()
	}
	assign, ok := proven[*fairness.Assign](j.head, b.Place)
	switch {
	case !ok:
		return NoPlace
	case uint64(assign.Position) != position, assign.Window != arrive.Window, assign.Lane != arrive.Lane:
		facts.number("stated", uint64(assign.Position))
		return OtherPosition
	case assign.Ticket != arrive.Ticket:
		return OtherTicket
	}
	return Exact
}

// firstPosition returns the recorded position of the first place of the visitor's window and lane, from their
// first assign entry after the draw. The run shows that no earlier one exists.
func (j *judge) firstPosition() (uint64, bool) {
	run := j.b.FirstPlace
	if uint64(run.First) != uint64(j.b.Draw.Index)+1 || !run.verify(j.head) {
		return 0, false
	}
	last := len(run.Entries) - 1
	for i, text := range run.Entries {
		e, err := fairness.ParseEntry(text)
		assign, ok := e.(*fairness.Assign)
		switch isPlace := err == nil && ok && assign.Window == j.arrive.Window && assign.Lane == j.arrive.Lane; {
		case isPlace && i == last:
			return uint64(assign.Position), true
		case isPlace:
			return 0, false
		}
	}
	return 0, false
}

// beginsRightly checks the first position: positions of a lane continue across windows, one per lot. Without
// the earlier freezes it only checks that the first window begins at 1, and that other windows have
// no more places before them than there were earlier arrivals.
func (j *judge) beginsRightly(first uint64) bool {
	arrive, earlier := j.arrive, j.b.Earlier
	if arrive.Window == 0 && first != 1 || first < 1 || first+uint64(arrive.Seq) > uint64(j.b.Arrive.Index) {
		return false
	}
	if earlier == nil {
		return true
	}
	people, next := uint64(0), fairness.WindowIndex(0)
	for i := range earlier {
		freeze, ok := proven[*fairness.Freeze](j.head, &earlier[i])
		if !ok || freeze.Window < next || freeze.Window >= arrive.Window {
			return false
		}
		next = freeze.Window + 1
		lots, _ := j.lotsOf(freeze)
		people += lots
	}
	return first == people+1
}

// verify reports whether the entries, without gaps, are in the tree from their index on. The proof
// consists of the roots of the largest subtrees outside the run, from left to right; RFC 6962 has
// no name for it.
func (r *Run) verify(head audit.Checkpoint) bool {
	end := uint64(r.First) + uint64(len(r.Entries))
	if len(r.Entries) == 0 || end > head.Size {
		return false
	}
	rest, ok := r.Proof, true
	var over func(from, to uint64) audit.Hash
	over = func(from, to uint64) (h audit.Hash) {
		switch {
		case to <= uint64(r.First) || from >= end:
			if ok = ok && len(rest) > 0; ok {
				h, rest = rest[0], rest[1:]
			}
			return h
		case to-from == 1:
			return audit.LeafHash(r.Entries[from-uint64(r.First)])
		}
		middle := from + split(to-from)
		left := over(from, middle)
		return tlog.NodeHash(left, over(middle, to))
	}
	root := over(0, head.Size)
	return ok && len(rest) == 0 && root == head.Root
}

// split returns the largest power of two smaller than n, for n > 1.
func split(n uint64) uint64 {
	k := uint64(1)
	for 2*k < n {
		k *= 2
	}
	return k
}

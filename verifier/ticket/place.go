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
	b, arrive, own := j.b, j.arrive, &j.own
	facts.number("lots", sum(own.drums))
	own.filled = fairness.Fill(own.drums)
	if sum(own.filled) > MaxLots {
		return TooLarge
	}
	if !j.addMerits() {
		return OtherMerit
	}
	own.shuffle(j.seed, arrive.Lane)
	rank := own.rank()
	facts.number("own", uint64(len(own.seqs)))
	facts.number("rank", rank)
	if b.FirstPlace == nil {
		return b.missing()
	}
	stated, ok := j.firstPosition()
	if !ok {
		return NoPlaces
	}
	facts.number("first", stated)
	first := stated
	if len(own.drums) > 1 {
		first = 1 // the first places of slots may be those of empty lots
	}
	position := first + rank
	if !j.beginsRightly(first) || stated < first || stated > position {
		return OtherFirst
	}
	facts.number("position", position)
	if b.Shown != nil && uint64(*b.Shown) != position {
		if shown := uint64(*b.Shown); shown >= first && shown < position && own.mayBeOfMerit(shown-first) {
			return MoreLots
		}
		return OtherShown
	}
	if b.Place == nil {
		return b.missing()
	}
	assign, ok := proven[*fairness.Assign](j.head, b.Place)
	if !ok {
		return NoPlace
	}
	switch p, isHere := uint64(assign.Position), assign.Window == arrive.Window && assign.Lane == arrive.Lane; {
	case p != position || !isHere:
		facts.number("stated", p)
		if isHere && assign.Ticket == arrive.Ticket && p >= first && p < position && own.mayBeOfMerit(p-first) {
			return MoreLots
		}
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
// no more places before them than earlier entries can have given.
func (j *judge) beginsRightly(first uint64) bool {
	arrive, earlier := j.arrive, j.b.Earlier
	lots, seq := j.mostLots(uint64(j.b.Arrive.Index)), uint64(arrive.Seq)
	if arrive.Window == 0 && first != 1 || first < 1 || seq > lots || first-1 > j.mostPlaces(lots-seq) {
		return false
	}
	if earlier == nil {
		return true
	}
	places, next := uint64(0), fairness.WindowIndex(0)
	for i := range earlier {
		freeze, ok := proven[*fairness.Freeze](j.head, &earlier[i])
		if !ok || freeze.Window < next || freeze.Window >= arrive.Window {
			return false
		}
		next = freeze.Window + 1
		more, whole := j.placesOf(freeze)
		if !whole {
			return false
		}
		places += more
	}
	return first == places+1
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

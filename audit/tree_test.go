package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/transparency-dev/merkle/compact"
)

const bruteForceSize = 130

// The definitions of RFC 6962 section 2.1 word for word, as slow as they are
// short. Everything else in these tests is compared with them.

func entryData(i int) []byte { return fmt.Appendf(nil, "entry %d", i) }

func leaves(n int) []Hash {
	hashes := make([]Hash, n)
	for i := range hashes {
		hashes[i] = LeafHash(entryData(i))
	}
	return hashes
}

func split(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

func mth(d []Hash) Hash {
	switch n := len(d); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return d[0]
	default:
		k := split(n)
		left, right := mth(d[:k]), mth(d[k:])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
	}
}

func auditPath(m int, d []Hash) []Hash {
	n := len(d)
	if n == 1 {
		return nil
	}
	if k := split(n); m < k {
		return append(auditPath(m, d[:k]), mth(d[k:]))
	} else {
		return append(auditPath(m-k, d[k:]), mth(d[:k]))
	}
}

func consistency(m int, d []Hash) []Hash { return subproof(m, d, true) }

func subproof(m int, d []Hash, whole bool) []Hash {
	n := len(d)
	if m == n {
		if whole {
			return nil
		}
		return []Hash{mth(d)}
	}
	if k := split(n); m <= k {
		return append(subproof(m, d[:k], whole), mth(d[k:]))
	} else {
		return append(subproof(m-k, d[k:], false), mth(d[:k]))
	}
}

func TestLeafHash(t *testing.T) {
	for _, n := range []int{0, 1, 54, 55, 56, 64, 300, 1023, 1024, MaxEntrySize} {
		entry := make([]byte, n)
		if got, want := LeafHash(entry), Hash(sha256.Sum256(append([]byte{0}, entry...))); got != want {
			t.Errorf("%d bytes: %v, want %v", n, got, want)
		}
		if allocs := testing.AllocsPerRun(10, func() { LeafHash(entry) }); allocs != 0 {
			t.Errorf("%d bytes: %v allocations", n, allocs)
		}
	}
}

// TestExtend appends every batch to every tree of up to bruteForceSize leaves
// and compares all proofs, roots and edges.
func TestExtend(t *testing.T) {
	all := leaves(bruteForceSize)
	var proofs [bruteForceSize + 1][][]Hash
	var roots [bruteForceSize + 1]Hash
	for n := range proofs {
		roots[n] = mth(all[:n])
		for m := range n {
			proofs[n] = append(proofs[n], auditPath(m, all[:n]))
		}
	}
	var base Tree
	for start := range bruteForceSize + 1 {
		for size := start; size <= bruteForceSize; size++ {
			tree := base.Clone()
			e := tree.Extend(all[start:size])
			if e.Start() != uint64(start) || e.Size() != uint64(size) || tree.Size() != uint64(size) {
				t.Fatalf("[%d, %d): extension is [%d, %d), tree of %d", start, size, e.Start(), e.Size(), tree.Size())
			}
			if e.Root() != roots[size] || tree.Root() != roots[size] {
				t.Fatalf("[%d, %d): roots %v and %v, want %v", start, size, e.Root(), tree.Root(), roots[size])
			}
			for m := range size + 1 {
				proof, err := e.InclusionProof(uint64(m))
				switch {
				case (m < start || m == size) && !errors.Is(err, ErrRange):
					t.Fatalf("[%d, %d): proof of %d: error %v", start, size, m, err)
				case m >= start && m < size && (err != nil || !slices.Equal(proof, proofs[size][m])):
					t.Fatalf("[%d, %d): proof of %d is %v (%v), want %v", start, size, m, proof, err, proofs[size][m])
				}
			}
			if want := edge(all[:size]); !slices.Equal(tree.Edge(), want) {
				t.Fatalf("[%d, %d): edge %v, want %v", start, size, tree.Edge(), want)
			}
		}
		if start < bruteForceSize {
			base.Append(all[start])
		}
	}
}

// edge returns the hashes of a compact range, by its definition.
func edge(d []Hash) []Hash {
	var hashes []Hash
	for _, id := range compact.RangeNodes(0, uint64(len(d)), nil) {
		begin, end := id.Coverage()
		hashes = append(hashes, mth(d[begin:end]))
	}
	return hashes
}

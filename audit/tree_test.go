package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/testonly"
)

const bruteForceSize = 130

// The definitions in section 2.1 of RFC 6962, word for word; they are short and slow. All other code in these
// tests is compared with them.

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

// TestExtend appends every batch to every tree of up to bruteForceSize leaves and compares all proofs, roots
// and edges.
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
			for _, id := range compact.RangeNodes(0, uint64(size), nil) {
				begin, end := id.Coverage()
				if want := mth(all[begin:end]); tree.edge[id.Level] != want {
					t.Fatalf("[%d, %d): edge at level %d is %v, want %v", start, size, id.Level, tree.edge[id.Level], want)
				}
			}
		}
		if start < bruteForceSize {
			base.Append(all[start])
		}
	}
}

// TestTree compares trees built from leaves and from aligned subtrees with the definition.
func TestTree(t *testing.T) {
	all := leaves(bruteForceSize)
	var byLeaf Tree
	for size := range bruteForceSize + 1 {
		var bySubtree Tree
		for _, id := range compact.RangeNodes(0, uint64(size), nil) {
			begin, end := id.Coverage()
			if err := bySubtree.AppendSubtree(id.Level, mth(all[begin:end])); err != nil {
				t.Fatal(err)
			}
		}
		for name, tree := range map[string]*Tree{"leaves": &byLeaf, "subtrees": &bySubtree} {
			if want := mth(all[:size]); tree.Size() != uint64(size) || tree.Root() != want {
				t.Fatalf("%s, size %d: %v of %d, want %v", name, size, tree.Root(), tree.Size(), want)
			}
		}
		if size < bruteForceSize {
			byLeaf.Append(all[size])
		}
	}
}

// sized returns a tree of any size with made-up hashes.
func sized(t *testing.T, size uint64) *Tree {
	t.Helper()
	tree := new(Tree)
	for _, id := range compact.RangeNodes(0, size, nil) {
		if err := tree.AppendSubtree(id.Level, Hash{byte(id.Level)}); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestAppendSubtreeRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  uint64
		level uint
	}{
		{"odd size", 1, 1},
		{"half a tile", 128, 8},
		{"one leaf short", 255, 8},
		{"too many leaves", 1 << 59, 60},
		{"full tree", MaxSize, 0},
		{"level above MaxSize", 0, 61},
		{"level 63", 0, 63},
		{"level 64", 0, 64},
		{"level 200", 0, 200},
	} {
		tree := sized(t, c.size)
		before := *tree
		if err := tree.AppendSubtree(c.level, Hash{1}); !errors.Is(err, ErrRange) || *tree != before {
			t.Errorf("%s: %v, size %d", c.name, err, tree.Size())
		}
	}
}

func TestLargestTree(t *testing.T) {
	tree := sized(t, MaxSize-1)
	e := tree.Extend(leaves(1))
	path, err := e.InclusionProof(MaxSize - 1)
	if err != nil || len(path) != 60 || e.Root() != tree.Root() {
		t.Fatalf("proof of %d hashes (%v), roots %v and %v", len(path), err, e.Root(), tree.Root())
	}
	if err := VerifyInclusion(Checkpoint{Size: e.Size(), Root: e.Root()}, MaxSize-1, leaves(1)[0], path); err != nil {
		t.Error(err)
	}
}

// TestReferenceTree compares with the vectors that implementations of Certificate Transparency share.
func TestReferenceTree(t *testing.T) {
	var tree Tree
	for i, root := range testonly.RootHashes() {
		if got := tree.Root(); got != Hash(root) {
			t.Errorf("size %d: %v, want %x", i, got, root)
		}
		if i < len(testonly.LeafInputs()) {
			tree.Append(LeafHash(testonly.LeafInputs()[i]))
		}
	}
	if tree.Size() != 8 {
		t.Errorf("%d reference leaves, want 8", tree.Size())
	}
}

func TestClone(t *testing.T) {
	all := leaves(20)
	var tree Tree
	tree.Extend(all[:11])
	clone := tree.Clone()
	clone.Extend(all[11:])
	if tree.Size() != 11 || tree.Root() != mth(all[:11]) {
		t.Error("growing the clone changed the tree")
	}
	tree.Append(all[0])
	if clone.Size() != 20 || clone.Root() != mth(all) {
		t.Error("growing the tree changed the clone")
	}
}

// TestExtensionIsImmutable keeps the proofs of a batch while its tree and the caller's slice change; run it
// with -race.
func TestExtensionIsImmutable(t *testing.T) {
	all := leaves(300)
	var tree Tree
	tree.Extend(all[:37])
	batch := slices.Clone(all[37:200])
	e := tree.Extend(batch)
	clear(batch)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := e.Start(); i < e.Size(); i++ {
				got, err := e.InclusionProof(i)
				if want := auditPath(int(i), all[:200]); err != nil || !slices.Equal(got, want) {
					t.Errorf("proof of %d: %v (%v), want %v", i, got, err, want)
				}
			}
		})
	}
	tree.Extend(all[200:])
	group.Wait()
	if tree.Root() != mth(all) {
		t.Error("wrong root after the next batch")
	}
}

// TestTileRoots grows logs by batches of many sizes across the borders of tiles of levels 1 and 2, and checks
// that each root is reported once, in order.
func TestTileRoots(t *testing.T) {
	all := leaves(2*TileWidth*TileWidth + 700)
	for _, step := range []int{1, 100, 255, 256, 257, 1000, 65_535, 65_537, len(all)} {
		var tree Tree
		levels := [][]Hash{all}
		for start := 0; start < len(all); start += step {
			e := tree.Extend(all[start:min(start+step, len(all))])
			e.TileRoots(func(level uint8, index uint64, h Hash) {
				if int(level) == len(levels) {
					levels = append(levels, nil)
				}
				if index != uint64(len(levels[level])) {
					t.Fatalf("step %d: level %d: hash %d after %d", step, level, index, len(levels[level]))
				}
				levels[level] = append(levels[level], h)
			})
		}
		if len(levels) != 3 || len(levels[1]) != len(all)/TileWidth || len(levels[2]) != 2 {
			t.Fatalf("step %d: %d levels", step, len(levels))
		}
		for level, hashes := range levels[1:] {
			for i, h := range hashes {
				if want := mth(levels[level][i*TileWidth : (i+1)*TileWidth]); h != want {
					t.Fatalf("step %d: level %d: hash %d is %v, want %v", step, level+1, i, h, want)
				}
			}
		}
	}
}

// TestExtendAllocations limits the allocations of 50,000 receipts per second.
func TestExtendAllocations(t *testing.T) {
	batch := leaves(1000)
	for _, start := range []int{0, 1, 129, 1000} {
		var tree Tree
		tree.Extend(batch[:start])
		for _, n := range []int{1, 2, 3, 100, 1000} {
			if allocs := testing.AllocsPerRun(5, func() {
				c := tree
				c.Extend(batch[:n])
			}); allocs > 4 {
				t.Errorf("extending %d by %d: %v allocations", start, n, allocs)
			}
		}
	}
	var tree Tree
	e := tree.Extend(batch)
	dst := make([]byte, 0, 4096)
	if allocs := testing.AllocsPerRun(5, func() {
		if _, err := e.AppendProofText(dst, 999, nil); err != nil {
			t.Error(err)
		}
	}); allocs != 0 {
		t.Errorf("receipt: %v allocations", allocs)
	}
}

package audit

import (
	"fmt"
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"golang.org/x/mod/sumdb/tlog"
)

// benchStart is the size of the log before the measured batch.
const benchStart = 1_000_003

var batches = []int{100, 1_000, 10_000}

func benchTree(b *testing.B) *Tree {
	b.Helper()
	tree := new(Tree)
	for _, leaf := range leaves(benchStart) {
		tree.Append(leaf)
	}
	return tree
}

func perLeaf(b *testing.B, n int) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "leaves/s")
}

// BenchmarkExtend appends a batch with all its receipts, without them, and with the libraries' own
// structures.
func BenchmarkExtend(b *testing.B) {
	base := benchTree(b)
	checkpoint := make([]byte, 180)
	for _, n := range batches {
		batch := leaves(n)
		b.Run(fmt.Sprintf("receipts/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				e := base.Clone().Extend(batch)
				for i := e.Start(); i < e.Size(); i++ {
					dst, _ = e.AppendProofText(dst[:0], i, checkpoint)
				}
			}
			perLeaf(b, n)
		})
		b.Run(fmt.Sprintf("proofs/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := base.Clone().Extend(batch)
				for i := e.Start(); i < e.Size(); i++ {
					_, _ = e.InclusionProof(i)
				}
			}
			perLeaf(b, n)
		})
		b.Run(fmt.Sprintf("bare/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				base.Clone().Extend(batch)
			}
			perLeaf(b, n)
		})
		b.Run(fmt.Sprintf("append/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tree := base.Clone()
				for _, leaf := range batch {
					tree.Append(leaf)
				}
			}
			perLeaf(b, n)
		})
		b.Run(fmt.Sprintf("compact/%d", n), func(b *testing.B) { benchCompact(b, base, batch) })
		b.Run(fmt.Sprintf("tlog/%d", n), func(b *testing.B) { benchTlog(b, batch) })
	}
}

// benchCompact appends to merkle/compact, visits the new nodes, and makes no proofs.
func benchCompact(b *testing.B, base *Tree, batch []Hash) {
	factory := compact.RangeFactory{Hash: func(left, right []byte) []byte {
		h := tlog.NodeHash(Hash(left), Hash(right))
		return h[:]
	}}
	var edge [][]byte
	for _, id := range compact.RangeNodes(0, benchStart, nil) {
		edge = append(edge, base.edge[id.Level][:])
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := factory.NewRange(0, benchStart, append([][]byte(nil), edge...))
		if err != nil {
			b.Fatal(err)
		}
		nodes := make(map[compact.NodeID][]byte, 2*len(batch))
		for i := range batch {
			if err := r.Append(batch[i][:], func(id compact.NodeID, h []byte) { nodes[id] = h }); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := r.GetRootHash(func(id compact.NodeID, h []byte) { nodes[id] = h }); err != nil {
			b.Fatal(err)
		}
	}
	perLeaf(b, len(batch))
}

// benchTlog appends to tlog's stored hashes in memory and proves each leaf.
func benchTlog(b *testing.B, batch []Hash) {
	var stored []Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		hashes := make([]Hash, len(indexes))
		for i, x := range indexes {
			hashes[i] = stored[x]
		}
		return hashes, nil
	})
	grow := func(start int, leaves []Hash) {
		for i, leaf := range leaves {
			hashes, err := tlog.StoredHashesForRecordHash(int64(start+i), leaf, read)
			if err != nil {
				b.Fatal(err)
			}
			stored = append(stored, hashes...)
		}
	}
	grow(0, leaves(benchStart))
	old := len(stored)
	b.ReportAllocs()
	for b.Loop() {
		stored = stored[:old]
		grow(benchStart, batch)
		for i := range batch {
			if _, err := tlog.ProveRecord(int64(benchStart+len(batch)), int64(benchStart+i), read); err != nil {
				b.Fatal(err)
			}
		}
	}
	perLeaf(b, len(batch))
}

func BenchmarkLeafHash(b *testing.B) {
	for _, n := range []int{50, 120, 1000, MaxEntrySize} {
		entry := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				LeafHash(entry)
			}
		})
	}
}

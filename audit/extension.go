package audit

// This file holds the tree of a log that grows, and proves each new entry. The auditor's program compiles without it.

import (
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Extension is one batch of leaves appended to a tree: the leaves, the interior nodes they
// completed, and the few older nodes needed for proofs. It is immutable and safe for concurrent
// use.
type Extension struct {
	start, size uint64
	// levels[l] holds the nodes of level l from the parent of the first new leaf, or its left sibling,
	// to the right edge of the tree. The last node may cover fewer than 2^l leaves. The last level
	// contains only the root.
	levels [][]Hash
}

// Start returns the size of the tree before the batch, which is the index of its first leaf.
func (e *Extension) Start() uint64 { return e.start }

// Size returns the size of the tree with the batch.
func (e *Extension) Size() uint64 { return e.size }

// Root returns the root of the tree with the batch.
func (e *Extension) Root() Hash {
	if e.size == 0 {
		return emptyRoot
	}
	return e.levels[len(e.levels)-1][0]
}

// InclusionProof returns the inclusion proof of a leaf of the batch, the leaf's sibling first. It
// fails with ErrRange unless Start() <= index < Size().
//
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1.1
func (e *Extension) InclusionProof(index uint64) ([]Hash, error) {
	return e.appendPath(make([]Hash, 0, len(e.levels)), index)
}

// AppendProofText appends the receipt for a leaf of the batch to dst. It writes the same text as
// [Proof.Append] without building the proof on the heap. The checkpoint is the signed one of this
// tree. Errors are those of InclusionProof.
func (e *Extension) AppendProofText(dst []byte, index uint64, checkpoint []byte) ([]byte, error) {
	var buf [64]Hash
	path, err := e.appendPath(buf[:0], index)
	if err != nil {
		return dst, err
	}
	return Proof{Index: index, Path: path, Checkpoint: checkpoint}.Append(dst), nil
}

// TileRoots calls visit with the root of each tile of hashes that the batch completed, lowest level
// first and from left to right. Each root is hash number index of the tiles at that level, which is
// 1 or more.
func (e *Extension) TileRoots(visit func(level uint8, index uint64, h Hash)) {
	for tileLevel := uint8(1); int(tileLevel)*tileHeight < len(e.levels); tileLevel++ {
		level := uint(tileLevel) * tileHeight
		for index := e.start >> level; index < e.size>>level; index++ {
			visit(tileLevel, index, e.node(level, index))
		}
	}
}

func (e *Extension) appendPath(dst []Hash, index uint64) ([]Hash, error) {
	if index < e.start || index >= e.size {
		return dst, fmt.Errorf("prove entry %d in batch [%d, %d): %w", index, e.start, e.size, ErrRange)
	}
	for level := range uint(len(e.levels) - 1) {
		if sibling := index>>level ^ 1; sibling < e.width(level) {
			dst = append(dst, e.node(level, sibling))
		}
	}
	return dst, nil
}

// node returns a node held in levels.
func (e *Extension) node(level uint, index uint64) Hash {
	return e.levels[level][index-e.start>>level&^1]
}

// width returns the number of nodes of the whole tree at a level, including an incomplete last one.
func (e *Extension) width(level uint) uint64 {
	return (e.size + 1<<level - 1) >> level
}

// Extend appends all leaves and returns the nodes needed to prove any of them against the new root.
// It hashes every interior node once and keeps 64 bytes per leaf; use [Tree.Append] if no proofs
// are needed.
func (t *Tree) Extend(leaves []Hash) *Extension {
	e := &Extension{start: t.size, size: t.size + uint64(len(leaves))}
	e.levels = make([][]Hash, 0, bits.Len64(e.size)+1)
	nodes := make([]Hash, 0, 2*len(leaves)+3*cap(e.levels)) // one array for all levels
	for level := uint(0); ; level++ {
		begin := len(nodes)
		if e.start>>level&1 == 1 { // the left sibling of the first new node
			nodes = append(nodes, t.edge[level])
		}
		if level == 0 {
			nodes = append(nodes, leaves...)
		} else {
			nodes = appendParents(nodes, e.levels[level-1])
		}
		e.levels = append(e.levels, nodes[begin:])
		if e.width(level) <= 1 {
			break
		}
	}
	for rest := e.size; rest != 0; rest &= rest - 1 {
		level := uint(bits.TrailingZeros64(rest))
		t.edge[level] = e.node(level, e.size>>level-1)
	}
	t.size = e.size
	return e
}

// appendParents hashes the nodes of a level in pairs; the first node must be a left sibling. A last
// node without a sibling moves up unchanged.
func appendParents(dst, nodes []Hash) []Hash {
	for ; len(nodes) >= 2; nodes = nodes[2:] {
		dst = append(dst, tlog.NodeHash(nodes[0], nodes[1]))
	}
	return append(dst, nodes...)
}

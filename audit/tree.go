package audit

import (
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Tree is the right edge of a growing log: its size and the O(log n) hashes that determine its
// root. The zero value is the empty tree. A Tree is not safe for concurrent use; the extensions it
// returns are.
type Tree struct {
	size uint64
	edge [64]Hash // edge[l] is the root of the complete subtree of 2^l leaves if bit l of size is set
}

// Size returns the number of leaves.
func (t *Tree) Size() uint64 { return t.size }

// Clone returns an independent copy.
func (t *Tree) Clone() *Tree {
	c := *t
	return &c
}

// Root returns the Merkle tree hash; for the empty tree, SHA-256 of the empty string.
//
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1
func (t *Tree) Root() Hash {
	if t.size == 0 {
		return emptyRoot
	}
	rest := t.size
	root := t.edge[bits.TrailingZeros64(rest)]
	for rest &= rest - 1; rest != 0; rest &= rest - 1 {
		root = tlog.NodeHash(t.edge[bits.TrailingZeros64(rest)], root)
	}
	return root
}

// Append adds one leaf.
func (t *Tree) Append(leaf Hash) { t.add(0, leaf) }

// AppendSubtree adds 2^level leaves at once by the root of their subtree, so that tiles can be
// hashed in parallel and appended in order (level 8 for a full tile of leaves). It fails with
// ErrRange if the size is not a multiple of 2^level or would exceed MaxSize.
func (t *Tree) AppendSubtree(level uint, root Hash) error {
	leaves := uint64(1) << level // 0 for a level of 64 or more
	if leaves-1 >= MaxSize || t.size > MaxSize-leaves || t.size&(leaves-1) != 0 {
		return fmt.Errorf("append subtree of level %d at %d: %w", level, t.size, ErrRange)
	}
	t.add(level, root)
	return nil
}

// add merges the subtree into the edge like a carry in binary addition.
func (t *Tree) add(level uint, h Hash) {
	size := t.size + 1<<level
	for ; t.size>>level&1 == 1; level++ {
		h = tlog.NodeHash(t.edge[level], h)
	}
	t.edge[level] = h
	t.size = size
}

package pglog

import (
	"iter"

	"github.com/proofline/proofline/audit"
)

// Batch collects the entries of one append.
type Batch struct {
	// Now is the database's clock in milliseconds since the Unix epoch, read
	// under the room's lock, and never less than in an earlier append.
	Now int64

	text    []byte // all entries, each with its length as in a bundle
	ends    []int  // end of each entry in text
	leaves  []audit.Hash
	tree    *audit.Tree // tree before the batch, plus the first leaves of it, those already hashed
	hashed  int
	publish bool
}

// Add adds the next entry; it copies the bytes.
func (b *Batch) Add(entry []byte) (err error) {
	if b.text, err = audit.AppendBundle(b.text, entry); err != nil {
		return err
	}
	b.ends = append(b.ends, len(b.text))
	b.leaves = append(b.leaves, audit.LeafHash(entry))
	return nil
}

// Len returns the number of entries added.
func (b *Batch) Len() int { return len(b.ends) }

// Root returns the root of the tree with the entries added so far.
func (b *Batch) Root() audit.Hash {
	for ; b.hashed < len(b.leaves); b.hashed++ {
		b.tree.Append(b.leaves[b.hashed])
	}
	return b.tree.Root()
}

// Publish requests that the batch's checkpoint be published at once.
func (b *Batch) Publish() { b.publish = true }

// row is a row of log_bundles.
type row struct {
	first   uint64
	count   uint32
	entries []byte
}

// rows yields the rows that store the batch when it begins at index start. A row has entries of one tile.
func (b *Batch) rows(start uint64) iter.Seq[row] {
	return func(yield func(row) bool) {
		for from, at := 0, 0; from < b.Len(); {
			first := start + uint64(from) //nolint:gosec // never negative
			to := min(b.Len(), from+int(audit.TileWidth-first%audit.TileWidth))
			if !yield(row{first, uint32(to - from), b.text[at:b.ends[to-1]]}) { //nolint:gosec // at most a tile
				return
			}
			from, at = to, b.ends[to-1]
		}
	}
}

// Appended is a durable batch. It is safe for concurrent use.
type Appended struct {
	*audit.Extension
	Checkpoint []byte // signed checkpoint of the tree that ends with the batch
}

// AppendReceipt appends the tlog-proof of one of the batch's entries to dst.
func (a *Appended) AppendReceipt(dst []byte, index uint64) ([]byte, error) {
	return a.AppendProofText(dst, index, a.Checkpoint)
}

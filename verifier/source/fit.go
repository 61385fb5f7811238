package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

const (
	hashSize = len(audit.Hash{})
	levels   = 8 // maximum number of tile levels
)

// repair checks that the files of a directory match a checkpoint, and fetches mismatched files
// again, except those that match the earlier checkpoint old (nil: none), which may be evidence.
// After a tile is fetched again, it shows which files below it are wrong. It fails with
// ErrMismatch.
func repair(ctx context.Context, src verifier.Source, dir string, old *audit.Checkpoint, head audit.Checkpoint) error {
	stored := func(t audit.Tile) ([]byte, error) { return readFile(dir, t.Path(), bound(t)) }
	bad, err := mismatches(ctx, stored, head)
	if err == nil || !errors.Is(err, ErrMismatch) {
		return err
	}
	if old != nil {
		if _, errOld := mismatches(ctx, stored, *old); errOld != nil {
			old = nil
		}
	}
	for range levels + 1 {
		changed := false
		for _, t := range bad {
			if old != nil && t.In(old.Size) {
				continue
			}
			anew, err := storeAnew(ctx, src, dir, t)
			if err != nil {
				return err
			}
			changed = changed || anew
		}
		if !changed {
			return err
		}
		if bad, err = mismatches(ctx, stored, head); !errors.Is(err, ErrMismatch) {
			return err
		}
	}
	return err
}

// storeAnew fetches an existing tile again and reports whether it was different.
func storeAnew(ctx context.Context, src verifier.Source, dir string, t audit.Tile) (bool, error) {
	b, err := fetchTile(ctx, src, t)
	if err != nil {
		return false, err
	}
	if there, err := readFile(dir, t.Path(), bound(t)); err == nil && bytes.Equal(there, b) {
		return false, nil
	}
	return true, writeTile(dir, t, b)
}

// treeCheck hashes the entries of a copy and compares every tile of hashes with its file.
type treeCheck struct {
	read func(t audit.Tile) ([]byte, error)
	tree audit.Tree
	rows [levels][]byte // hashes of the incomplete tile at each level
	next [levels]uint64 // index of the incomplete tile at each level
	bad  []audit.Tile
}

// mismatches fails with ErrMismatch if files do not match a checkpoint, and returns those that may
// be wrong.
func mismatches(ctx context.Context, read func(t audit.Tile) ([]byte, error),
	head audit.Checkpoint) ([]audit.Tile, error) {
	f := &treeCheck{read: read}
	for t := range audit.Tiles(head.Size) {
		if t.Level >= 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := read(t)
		if err != nil {
			return nil, err
		}
		if err := audit.SplitBundle(b, t.Width, func(entry []byte) error {
			f.push(0, audit.LeafHash(entry))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return f.finish(head)
}

// finish compares the incomplete tile of each level, and the root.
func (f *treeCheck) finish(head audit.Checkpoint) ([]audit.Tile, error) {
	f.compareIncomplete()
	root := f.tree.Root()
	if root != head.Root && len(f.bad) == 0 { // then only the right edge is wrong, or every file
		for t := range audit.Tiles(head.Size) {
			if t.Index == (head.Size-1)>>(8*max(t.Level, 0))/audit.TileWidth {
				f.bad = append(f.bad, t)
			}
		}
	}
	switch {
	case root != head.Root:
		return f.bad, fmt.Errorf("%w: %d entries hash to %v, signed is %v", ErrMismatch, head.Size, root, head.Root)
	case len(f.bad) > 0:
		return f.bad, fmt.Errorf("%w: %s does not match the hashes of the tiles below it", ErrMismatch, f.bad[0].Path())
	}
	return nil, nil
}

func (f *treeCheck) compareIncomplete() {
	for level := range f.rows {
		if len(f.rows[level]) > 0 {
			f.compare(int8(level))
		}
	}
}

// push adds the next hash of a level.
func (f *treeCheck) push(level int8, h audit.Hash) {
	f.rows[level] = append(f.rows[level], h[:]...)
	if len(f.rows[level]) == audit.TileWidth*hashSize {
		f.compare(level)
	}
}

// compare adds the tile of the hashes pushed to a level, and compares it with its file.
func (f *treeCheck) compare(level int8) {
	row := f.rows[level]
	t := audit.Tile{Level: level, Index: f.next[level], Width: len(row) / hashSize}
	there, err := f.read(t)
	if err != nil || !bytes.Equal(there, row) {
		f.suspect(t)
	}
	f.rows[level] = row[:0]
	f.add(t, row, there)
}

// add adds a tile with the given hashes to the tree, and the root of a full one to the level above.
// Below a hash that differs from the tile's file, files may be wrong too.
func (f *treeCheck) add(t audit.Tile, row, there []byte) {
	var sub audit.Tree
	for i := range t.Width {
		h := audit.Hash(row[i*hashSize:])
		sub.Append(h)
		if t.Level == 0 && t.Width < audit.TileWidth {
			f.tree.Append(h)
		} else if t.Level > 0 && len(there) == len(row) && audit.Hash(there[i*hashSize:]) != h {
			f.suspect(audit.Tile{Level: t.Level - 1, Index: t.Index*audit.TileWidth + uint64(i),
				Width: audit.TileWidth})
		}
	}
	if t.Width < audit.TileWidth {
		return
	}
	root := sub.Root()
	if t.Level == 0 {
		_ = f.tree.AppendSubtree(8, root) // all earlier tiles are full
	}
	f.next[t.Level]++
	f.push(t.Level+1, root)
}

// suspect records that a tile may be wrong, and so may its entries.
func (f *treeCheck) suspect(t audit.Tile) {
	f.bad = append(f.bad, t)
	if t.Level == 0 {
		f.bad = append(f.bad, audit.Tile{Level: -1, Index: t.Index, Width: t.Width})
	}
}

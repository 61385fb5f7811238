package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

const (
	hashSize = len(audit.Hash{})
	levels   = 8 // of tiles, at most
)

// repair checks that the files of a directory are those of a checkpoint, and
// fetches anew those that are not, except what an earlier checkpoint needs and
// fits, nil for none: that may be evidence. A tile fetched anew shows which of
// those below it are wrong. It fails with ErrMisfit.
func repair(ctx context.Context, src verifier.Source, dir string, old *audit.Checkpoint, head audit.Checkpoint) error {
	stored := func(t audit.Tile) ([]byte, error) { return readFile(dir, t.Path(), bound(t)) }
	bad, err := misfits(ctx, stored, head)
	if err == nil || !errors.Is(err, ErrMisfit) {
		return err
	}
	if old != nil {
		if _, errOld := misfits(ctx, stored, *old); errOld != nil {
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
		if bad, err = misfits(ctx, stored, head); !errors.Is(err, ErrMisfit) {
			return err
		}
	}
	return err
}

// storeAnew fetches a tile that is there, and tells whether it was another one.
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

// fitting hashes the entries of a copy, and compares every tile of hashes with
// what is there.
type fitting struct {
	read func(t audit.Tile) ([]byte, error)
	tree audit.Tree
	rows [levels][]byte // hashes of the tile that is being filled at each level
	next [levels]uint64 // its index
	bad  []audit.Tile
}

// misfits fails with ErrMisfit if files are not those of a checkpoint, and
// returns those that may be wrong.
func misfits(ctx context.Context, read func(t audit.Tile) ([]byte, error), head audit.Checkpoint) ([]audit.Tile, error) {
	f := &fitting{read: read}
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

// misfitTiles is misfits without the entries, of which an audit has shown that
// they are those of the checkpoint.
func misfitTiles(ctx context.Context, read func(t audit.Tile) ([]byte, error), head audit.Checkpoint) ([]audit.Tile, error) {
	f := &fitting{read: read}
	for t := range audit.Tiles(head.Size) {
		if t.Level != 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := read(t)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) != t.Width*hashSize {
			return []audit.Tile{t}, fmt.Errorf("%w: %s is missing, or has another length", ErrMisfit, t.Path())
		}
		if err != nil {
			return nil, err
		}
		for i := range t.Width {
			f.push(0, audit.Hash(b[i*hashSize:]))
		}
	}
	return f.finish(head)
}

// finish compares what is left of each level, and the root.
func (f *fitting) finish(head audit.Checkpoint) ([]audit.Tile, error) {
	for level := range f.rows {
		if len(f.rows[level]) > 0 {
			f.compare(int8(level))
		}
	}
	root := f.tree.Root()
	if root != head.Root && len(f.bad) == 0 { // then the edge is wrong, or all
		for t := range audit.Tiles(head.Size) {
			if t.Index == (head.Size-1)>>(8*max(t.Level, 0))/audit.TileWidth {
				f.bad = append(f.bad, t)
			}
		}
	}
	switch {
	case root != head.Root:
		return f.bad, fmt.Errorf("%w: %d entries hash to %v, signed is %v", ErrMisfit, head.Size, root, head.Root)
	case len(f.bad) > 0:
		return f.bad, fmt.Errorf("%w: %s does not have the hashes of what is below it", ErrMisfit, f.bad[0].Path())
	}
	return nil, nil
}

// push adds the next hash of a level.
func (f *fitting) push(level int8, h audit.Hash) {
	f.rows[level] = append(f.rows[level], h[:]...)
	if len(f.rows[level]) < audit.TileWidth*hashSize {
		return
	}
	root := f.compare(level)
	f.rows[level] = f.rows[level][:0]
	f.next[level]++
	f.push(level+1, root)
}

// compare compares a tile with the file, and returns its root. What is below a
// hash that differs may be wrong as well.
func (f *fitting) compare(level int8) audit.Hash {
	row := f.rows[level]
	t := audit.Tile{Level: level, Index: f.next[level], Width: len(row) / hashSize}
	there, err := f.read(t)
	if err != nil || !bytes.Equal(there, row) {
		f.doubt(t)
	}
	var sub audit.Tree
	for i := range t.Width {
		h := audit.Hash(row[i*hashSize:])
		sub.Append(h)
		if level == 0 && t.Width < audit.TileWidth {
			f.tree.Append(h)
		} else if level > 0 && len(there) == len(row) && audit.Hash(there[i*hashSize:]) != h {
			f.doubt(audit.Tile{Level: level - 1, Index: t.Index*audit.TileWidth + uint64(i), Width: audit.TileWidth})
		}
	}
	root := sub.Root()
	if level == 0 && t.Width == audit.TileWidth {
		_ = f.tree.AppendSubtree(8, root) // all before it were full
	}
	return root
}

// doubt says that a tile may be wrong, and so may the entries it is of.
func (f *fitting) doubt(t audit.Tile) {
	f.bad = append(f.bad, t)
	if t.Level == 0 {
		f.bad = append(f.bad, audit.Tile{Level: -1, Index: t.Index, Width: t.Width})
	}
}

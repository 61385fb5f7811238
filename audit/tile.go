package audit

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// Tile identifies a resource below the log's prefix: up to 256 consecutive hashes of the tree, or a
// bundle of as many entries.
//
// https://c2sp.org/tlog-tiles
type Tile struct {
	Level int8   // -1 entries, 0 leaf hashes, L the roots of full tiles of level L-1
	Index uint64 // number of the tile within its level
	Width int    // number of hashes or entries, 1 to TileWidth; fewer than TileWidth is a partial tile
}

// Path returns the tile's path relative to the log's prefix, such as
// "tile/0/x001/067" or "tile/entries/000.p/12".
func (t Tile) Path() string {
	path := tlog.Tile{H: tileHeight, L: int(t.Level), N: int64(t.Index), W: t.Width}.Path()
	if t.Level < 0 {
		return "tile/entries/" + strings.TrimPrefix(path, "tile/8/data/")
	}
	return "tile/" + strings.TrimPrefix(path, "tile/8/")
}

// In reports whether a tree of the given size has all hashes or entries of the tile.
func (t Tile) In(size uint64) bool {
	if t.Level < -1 || t.Width < 1 || t.Width > TileWidth {
		return false
	}
	hashes := size >> t.shift()
	first := t.Index * TileWidth
	return first/TileWidth == t.Index && first < hashes && uint64(t.Width) <= hashes-first
}

// shift returns log2 of the number of entries under each hash of the tile.
func (t Tile) shift() int { return tileHeight * int(max(t.Level, 0)) }

// Tiles returns every bundle and tile of a tree: the entries first, then each level upwards, from
// left to right.
func Tiles(size uint64) iter.Seq[Tile] { return TilesFrom(0, size) }

// TilesFrom returns those of [Tiles] that a copy of the tree at size old lacks, including partial
// tiles that have grown, with their new width.
//
// https://c2sp.org/tlog-tiles#partial-tiles
func TilesFrom(old, size uint64) iter.Seq[Tile] {
	return func(yield func(Tile) bool) {
		for tile := (Tile{Level: -1}); ; tile.Level++ {
			from, to := old>>tile.shift(), size>>tile.shift()
			if from >= to {
				return
			}
			for tile.Index = from / TileWidth; tile.Index*TileWidth < to; tile.Index++ {
				tile.Width = int(min(TileWidth, to-tile.Index*TileWidth))
				if !yield(tile) {
					return
				}
			}
		}
	}
}

// SplitBundle calls yield with each of the width entries of a bundle, as slices of it, and stops at
// the first error of yield. It fails with ErrBundle if the bundle ends early or has trailing bytes,
// after yielding the entries before the error.
func SplitBundle(bundle []byte, width int, yield func(entry []byte) error) error {
	rest := bundle
	for i := range width {
		if len(rest) < 2 {
			return fmt.Errorf("%w: %d entries, not %d", ErrBundle, i, width)
		}
		end := 2 + int(binary.BigEndian.Uint16(rest))
		if len(rest) < end {
			return fmt.Errorf("%w: entry %d truncated", ErrBundle, i)
		}
		if err := yield(rest[2:end:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	if len(rest) != 0 {
		return fmt.Errorf("%w: %d bytes after entry %d", ErrBundle, len(rest), width)
	}
	return nil
}

package audit

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

var tilePaths = []struct {
	tile Tile
	path string
}{
	{Tile{0, 0, 256}, "tile/0/000"},
	{Tile{0, 0, 1}, "tile/0/000.p/1"},
	{Tile{0, 273, 112}, "tile/0/273.p/112"},
	{Tile{1, 999, 255}, "tile/1/999.p/255"},
	{Tile{2, 1000, 256}, "tile/2/x001/000"},
	{Tile{0, 1_234_067, 256}, "tile/0/x001/x234/067"},
	{Tile{0, 1_234_067, 8}, "tile/0/x001/x234/067.p/8"},
	{Tile{0, MaxSize/256 - 1, 256}, "tile/0/x004/x503/x599/x627/x370/495"},
	{Tile{7, 0, 16}, "tile/7/000.p/16"},
	{Tile{-1, 0, 256}, "tile/entries/000"},
	{Tile{-1, 67_001, 12}, "tile/entries/x067/001.p/12"},
}

func TestTilePath(t *testing.T) {
	for _, c := range tilePaths {
		if got := c.tile.Path(); got != c.path {
			t.Errorf("%+v: %q, want %q", c.tile, got, c.path)
		}
		if got, err := ParseTilePath(c.path); err != nil || got != c.tile {
			t.Errorf("%q: %+v, %v, want %+v", c.path, got, err, c.tile)
		}
		mangle([]byte(c.path), func(mangled []byte) {
			if tile, err := ParseTilePath(string(mangled)); err == nil && tile.Path() != string(mangled) {
				t.Errorf("%q reads as %+v", mangled, tile)
			}
		})
	}
}

func TestParseTilePathRefusals(t *testing.T) {
	for _, path := range []string{
		"", "tile", "tile/", "tile/0", "tile/0/", "checkpoint", "0/000", "/tile/0/000", "tile/0/000/",
		"tile/8/0/000", // sumdb's tile height
		"tile/data/000", "tile/-1/000", "tile/entries", "tile/entries/", "tile/entries/0/000",
		"tile/00/000", "tile/+0/000", "tile/64/000", "tile/255/000", "tile/256/000", "tile/8/000.p/1", "tile/63/000.p/1",
		"tile/7/000", "tile/7/000.p/17", "tile/7/001.p/1", // beyond MaxSize
		"tile/0/0", "tile/0/00", "tile/0/0000", "tile/0/1000", // digits
		"tile/0/x000/000", "tile/0/x000/001", "tile/0/001/000", "tile/0/x001", "tile/0/x001/x000", "tile/0/X001/000",
		"tile/0/-01", "tile/0/+01", "tile/0/ 01", "tile/0/\u0660\u0660\u0660",
		"tile/0/000.p", "tile/0/000.p/", "tile/0/000.p/0", "tile/0/000.p/00", "tile/0/000.p/01", "tile/0/000.p/256", "tile/0/000.p/-1",
		"tile/0/000.p/+1", "tile/0/000.p/1/", "tile/0/000.p/1.p/1", "tile/0/000.q/1", "tile/0/x000.p/000.p/1",
		"tile/0/x004/x503/x599/x627/x370/496",      // first tile after MaxSize
		"tile/0/x018/x446/x744/x073/x709/x551/616", // 2^64
		"tile/0/x018/x446/x744/x073/x709/x551/617",
		"tile/0/" + strings.Repeat("x001/", 1000) + "000",
		"tile/0/../../etc", "tile/0/..%2f000", "tile/0/000?", "tile/0/000\x00", "tile/0/000\n",
	} {
		if tile, err := ParseTilePath(path); !errors.Is(err, ErrTilePath) {
			t.Errorf("%q: %+v, %v", path, tile, err)
		}
	}
}

// TestTilesFrom compares with tlog for all growths up to 600 entries, and with the numbers in the
// specification.
func TestTilesFrom(t *testing.T) {
	sizes := []uint64{0, 1, 2, 100, 255, 256, 257, 511, 512, 513, 600, 65_535, 65_536, 65_537, 70_000, 131_072}
	for n := range uint64(600) {
		sizes = append(sizes, n)
	}
	for _, old := range sizes {
		for _, size := range sizes {
			var want []Tile
			for _, tile := range tlog.NewTiles(tileHeight, int64(old), int64(size)) {
				if tile.L == 0 {
					want = append(want, Tile{-1, uint64(tile.N), tile.W})
				}
			}
			for _, tile := range tlog.NewTiles(tileHeight, int64(old), int64(size)) {
				want = append(want, Tile{int8(tile.L), uint64(tile.N), tile.W})
			}
			if old > size {
				want = nil
			}
			if got := slices.Collect(TilesFrom(old, size)); !slices.Equal(got, want) {
				t.Fatalf("from %d to %d: %v, want %v", old, size, got, want)
			}
		}
	}
	// https://c2sp.org/tlog-tiles#partial-tiles
	count := map[[2]int]int{} // by level, width
	for tile := range Tiles(70_000) {
		count[[2]int{int(tile.Level), tile.Width}]++
	}
	want := map[[2]int]int{{-1, 256}: 273, {-1, 112}: 1, {0, 256}: 273, {0, 112}: 1, {1, 256}: 1, {1, 17}: 1, {2, 1}: 1}
	if len(count) != len(want) {
		t.Errorf("tiles of 70,000 entries: %v", count)
	}
	for key, n := range want {
		if count[key] != n {
			t.Errorf("%d tiles of level and width %v, want %d", count[key], key, n)
		}
	}
}

// TestTilesIsLazy reads the first names of the largest tree and then stops.
func TestTilesIsLazy(t *testing.T) {
	seen := 0
	for range Tiles(math.MaxUint64) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("saw %d tiles", seen)
	}
	var last Tile
	for last = range TilesFrom(MaxSize-1, MaxSize) {
	}
	if want := (Tile{7, 0, 16}); last != want {
		t.Errorf("last tile of MaxSize is %+v, want %+v", last, want)
	}
}

func TestTileIn(t *testing.T) {
	for _, c := range []struct {
		tile        Tile
		first, none uint64 // smallest size that has the tile, a size without it
	}{
		{Tile{0, 0, 1}, 1, 0},
		{Tile{-1, 0, 256}, 256, 255},
		{Tile{0, 3, 17}, 3*256 + 17, 3*256 + 16},
		{Tile{1, 0, 1}, 256, 255},
		{Tile{1, 2, 256}, 3 * 65_536, 3*65_536 - 1},
		{Tile{2, 0, 1}, 65_536, 65_535},
		{Tile{7, 0, 16}, MaxSize, MaxSize - 1},
	} {
		if !c.tile.In(c.first) || !c.tile.In(MaxSize) || c.tile.In(c.none) {
			t.Errorf("%+v: In(%d) %v, In(%d) %v", c.tile, c.first, c.tile.In(c.first), c.none, c.tile.In(c.none))
		}
	}
	for _, tile := range []Tile{{0, 0, 0}, {0, 0, 257}, {0, 0, -1}, {-2, 0, 1}, {127, 0, 1}, {0, math.MaxUint64, 1}, {0, 1 << 56, 1}} {
		if tile.In(math.MaxUint64) {
			t.Errorf("%+v is in a tree", tile)
		}
	}
}

func bundle(t testing.TB, entries ...[]byte) []byte {
	t.Helper()
	var b []byte
	for _, entry := range entries {
		var err error
		if b, err = AppendBundle(b, entry); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func splitAll(b []byte, width int) (entries [][]byte, err error) {
	err = SplitBundle(b, width, func(entry []byte) error {
		entries = append(entries, entry)
		return nil
	})
	return entries, err
}

func TestBundle(t *testing.T) {
	entries := [][]byte{[]byte("first"), {}, []byte("\x00\x01"), bytes.Repeat([]byte{7}, MaxEntrySize)}
	b := bundle(t, entries...)
	got, err := splitAll(b, len(entries))
	if err != nil || !slices.EqualFunc(got, entries, bytes.Equal) {
		t.Errorf("%d entries, %v", len(got), err)
	}
	for cut := range b {
		if cut > 200 && cut < len(b)-200 {
			continue
		}
		if _, err := splitAll(b[:cut], len(entries)); !errors.Is(err, ErrBundle) {
			t.Errorf("cut to %d bytes: %v", cut, err)
		}
	}
	for _, width := range []int{0, 1, len(entries) - 1, len(entries) + 1, 256} {
		if _, err := splitAll(b, width); !errors.Is(err, ErrBundle) {
			t.Errorf("width %d: %v", width, err)
		}
	}
	if got, err := splitAll(nil, 0); err != nil || got != nil {
		t.Errorf("no entries: %v, %v", got, err)
	}
	if got, err := AppendBundle([]byte("kept"), make([]byte, MaxEntrySize+1)); !errors.Is(err, ErrEntrySize) || string(got) != "kept" {
		t.Errorf("entry too large: %q, %v", got, err)
	}
	// Appending to an entry in yield must not overwrite the next one.
	err = SplitBundle(b, len(entries), func(entry []byte) error {
		_ = append(entry, "overwritten"...)
		return nil
	})
	if err != nil || !bytes.Equal(b, bundle(t, entries...)) {
		t.Errorf("appending to an entry changed the bundle: %v", err)
	}
	stop := errors.New("stop")
	seen := 0
	if err := SplitBundle(b, len(entries), func([]byte) error { seen++; return stop }); !errors.Is(err, stop) || seen != 1 {
		t.Errorf("stopped after %d entries: %v", seen, err)
	}
}

// TestBundleMangled: a changed bundle cannot be split, or not into entries with the same leaves.
func TestBundleMangled(t *testing.T) {
	entries := [][]byte{[]byte("one"), []byte("two"), {}, []byte("three")}
	root := func(entries [][]byte) Hash {
		var tree Tree
		for _, entry := range entries {
			tree.Append(LeafHash(entry))
		}
		return tree.Root()
	}
	b := bundle(t, entries...)
	mangle(b, func(mangled []byte) {
		got, err := splitAll(mangled, len(entries))
		if bytes.Equal(mangled, b) { // such as one of two equal neighbours doubled or removed
			t.Fatal("not mangled")
		}
		if err == nil && root(got) == root(entries) {
			t.Errorf("%x splits into the same entries", mangled)
		}
		if err != nil && !errors.Is(err, ErrBundle) {
			t.Errorf("%x: %v", mangled, err)
		}
	})
}

func FuzzParseTilePath(f *testing.F) {
	for _, c := range tilePaths {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		tile, err := ParseTilePath(path)
		if err == nil && (tile.Path() != path || !tile.In(MaxSize)) {
			t.Errorf("%q reads as %+v, %q", path, tile, tile.Path())
		}
		if err != nil && (!errors.Is(err, ErrTilePath) || tile != Tile{}) {
			t.Errorf("%q: %+v, %v", path, tile, err)
		}
	})
}

func FuzzSplitBundle(f *testing.F) {
	f.Add(bundle(f, []byte("one"), nil, []byte("three")), 3)
	f.Add([]byte{}, 0)
	f.Add([]byte{0xff, 0xff}, 1)
	f.Fuzz(func(t *testing.T, b []byte, width int) {
		width &= 0x1ff
		entries, err := splitAll(b, width)
		if err != nil {
			if !errors.Is(err, ErrBundle) {
				t.Error(err)
			}
			return
		}
		if again := bundle(t, entries...); len(entries) != width || !bytes.Equal(again, b) {
			t.Errorf("%x splits into %x", b, entries)
		}
	})
}

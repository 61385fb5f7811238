package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func raw(path []Hash) [][]byte {
	b := make([][]byte, len(path))
	for i := range path {
		b[i] = path[i][:]
	}
	return b
}

// TestVerifyInclusion verifies each entry of each tree of up to 100 entries, with this package and with
// merkle/proof, and tries each proof with wrong indexes, sizes, leaves and hashes.
func TestVerifyInclusion(t *testing.T) {
	all := leaves(101)
	for size := 1; size <= 100; size++ {
		c, larger := testCheckpoint(size), testCheckpoint(size+1)
		for m := range size {
			path := auditPath(m, all[:size])
			if err := VerifyInclusion(c, uint64(m), all[m], path); err != nil {
				t.Fatalf("%d of %d: %v", m, size, err)
			}
			if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(m), c.Size, all[m][:], raw(path), c.Root[:]); err != nil {
				t.Fatalf("%d of %d: reference: %v", m, size, err)
			}
			refuse := func(what string, c Checkpoint, index int, leaf Hash, path []Hash) {
				t.Helper()
				if err := VerifyInclusion(c, uint64(index), leaf, path); !errors.Is(err, ErrInclusion) && !errors.Is(err, ErrRange) {
					t.Errorf("%d of %d: %s: %v", m, size, what, err)
				}
			}
			for other := range size + 1 {
				if other != m && (size <= 33 || other%32 == m%32 || other == size) {
					refuse("another index", c, other, all[m], path)
					refuse("another leaf", c, m, all[other], path)
				}
			}
			for i := range path {
				changed := slices.Clone(path)
				changed[i][31] ^= 1
				refuse("changed hash", c, m, all[m], changed)
				refuse("missing hash", c, m, all[m], slices.Delete(slices.Clone(path), i, i+1))
			}
			refuse("one hash more", c, m, all[m], append(slices.Clone(path), c.Root))
			refuse("another root", Checkpoint{testOrigin, c.Size, Hash{1}}, m, all[m], path)
			// A larger tree can have a path of the same shape, but not the same root.
			refuse("root of a larger tree", larger, m, all[m], path)
		}
	}
}

// TestVerifyConsistency does the same for all pairs of trees of up to 100 entries.
func TestVerifyConsistency(t *testing.T) {
	all := leaves(101)
	for size := range 101 {
		head := testCheckpoint(size)
		for m := range size + 1 {
			old := testCheckpoint(m)
			var path []Hash
			if m > 0 {
				path = consistency(m, all[:size])
			}
			if err := VerifyConsistency(old, head, path); err != nil {
				t.Fatalf("%d to %d: %v", m, size, err)
			}
			if err := proof.VerifyConsistency(rfc6962.DefaultHasher, old.Size, head.Size, raw(path), old.Root[:], head.Root[:]); err != nil {
				t.Fatalf("%d to %d: reference: %v", m, size, err)
			}
			refuse := func(what string, old, head Checkpoint, path []Hash) {
				t.Helper()
				if err := VerifyConsistency(old, head, path); !errors.Is(err, ErrConsistency) && !errors.Is(err, ErrRange) {
					t.Errorf("%d to %d: %s: %v", m, size, what, err)
				}
			}
			for i := range path {
				changed := slices.Clone(path)
				changed[i][0] ^= 1
				refuse("changed hash", old, head, changed)
				refuse("missing hash", old, head, slices.Delete(slices.Clone(path), i, i+1))
			}
			refuse("one hash more", old, head, append(slices.Clone(path), head.Root))
			refuse("another old root", Checkpoint{testOrigin, old.Size, Hash{1}}, head, path)
			refuse("another origin", Checkpoint{"example.com/r/other", old.Size, old.Root}, head, path)
			if m > 0 || size == 0 {
				refuse("another root", old, Checkpoint{testOrigin, head.Size, Hash{1}}, path)
			}
			if m < size {
				refuse("backwards", head, old, path)
			}
		}
	}
}

func TestVerifyBounds(t *testing.T) {
	for _, size := range []uint64{MaxSize + 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		c := Checkpoint{Origin: testOrigin, Size: size}
		if err := VerifyInclusion(c, size-1, Hash{}, nil); !errors.Is(err, ErrRange) {
			t.Errorf("inclusion, size %d: %v", size, err)
		}
		if err := VerifyConsistency(Checkpoint{Origin: testOrigin, Size: 1}, c, nil); !errors.Is(err, ErrRange) {
			t.Errorf("consistency, size %d: %v", size, err)
		}
		if _, err := ProveInclusion(t.Context(), nil, c, 0); !errors.Is(err, ErrRange) {
			t.Errorf("prove inclusion, size %d: %v", size, err)
		}
		if _, err := ProveConsistency(t.Context(), nil, Checkpoint{Origin: testOrigin, Size: 1}, c); !errors.Is(err, ErrRange) {
			t.Errorf("prove consistency, size %d: %v", size, err)
		}
	}
	// The largest tree is within reach of all of them.
	c := Checkpoint{Origin: testOrigin, Size: MaxSize}
	if err := VerifyInclusion(c, MaxSize-1, Hash{}, make([]Hash, 60)); !errors.Is(err, ErrInclusion) {
		t.Errorf("inclusion, MaxSize: %v", err)
	}
	if err := VerifyConsistency(Checkpoint{Origin: testOrigin, Size: MaxSize - 1}, c, make([]Hash, 61)); !errors.Is(err, ErrConsistency) {
		t.Errorf("consistency, MaxSize: %v", err)
	}
	zeros := func(_ context.Context, tile Tile) ([]byte, error) {
		if !tile.In(MaxSize) {
			t.Errorf("fetched %+v", tile)
		}
		return make([]byte, 32*tile.Width), nil
	}
	for _, index := range []uint64{0, 12_345, MaxSize - 1} {
		if _, err := ProveInclusion(t.Context(), zeros, c, index); !errors.Is(err, ErrTile) {
			t.Errorf("prove inclusion of %d, MaxSize: %v", index, err)
		}
	}
	for _, old := range []uint64{1, MaxSize / 3, MaxSize - 1} {
		if _, err := ProveConsistency(t.Context(), zeros, Checkpoint{Origin: testOrigin, Size: old}, c); !errors.Is(err, ErrTile) {
			t.Errorf("prove growth from %d, MaxSize: %v", old, err)
		}
	}
}

func testProof(t testing.TB, size, index int) Proof {
	t.Helper()
	return Proof{Index: uint64(index), Path: auditPath(index, leaves(size)), Checkpoint: testSigned(t, size)}
}

func TestProof(t *testing.T) {
	_, verifier := testKey(t, testOrigin, testSeed)
	all := leaves(40)
	var tree Tree
	tree.Extend(all[:13])
	e := tree.Extend(all[13:])
	for i := 13; i < 40; i++ {
		p := testProof(t, 40, i)
		text, err := e.AppendProofText([]byte("before"), uint64(i), p.Checkpoint)
		if err != nil || string(text) != "before"+string(p.Marshal()) {
			t.Errorf("receipt of %d: %q (%v), want %q", i, text, err, p.Marshal())
		}
		text = p.Marshal()
		got, err := ParseProof(text)
		clear(text) // the proof is a copy
		if err != nil || got.Index != p.Index || !slices.Equal(got.Path, p.Path) || !bytes.Equal(got.Checkpoint, p.Checkpoint) || got.Extra != nil {
			t.Errorf("proof of %d: %+v, %v", i, got, err)
		}
		if c, err := got.Verify(all[i], verifier); err != nil || c != testCheckpoint(40) {
			t.Errorf("proof of %d: %+v, %v", i, c, err)
		}
		if _, err := got.Verify(all[i-1], verifier); !errors.Is(err, ErrInclusion) {
			t.Errorf("proof of %d for another entry: %v", i, err)
		}
	}
	for _, i := range []uint64{0, 12, 40} {
		if text, err := e.AppendProofText([]byte("kept"), i, nil); !errors.Is(err, ErrRange) || string(text) != "kept" {
			t.Errorf("receipt of %d: %q, %v", i, text, err)
		}
	}
	_, other := testKey(t, testOrigin, bytes.Repeat([]byte{9}, 32))
	if _, err := testProof(t, 40, 20).Verify(all[20], other); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
}

func TestProofExtra(t *testing.T) {
	for _, extra := range []string{"x", "\x00", "\n\n", "any bytes \xff of any length", "+++///"} {
		p := testProof(t, 9, 4)
		p.Extra = []byte(extra)
		got, err := ParseProof(p.Marshal())
		if err != nil || string(got.Extra) != extra || !bytes.Equal(got.Marshal(), p.Marshal()) {
			t.Errorf("extra %q: %q, %v", extra, got.Extra, err)
		}
	}
}

// TestProofMangled changes each byte of a proof: no change verifies. With extra data, which is not
// authenticated, changed proofs may still parse, but only canonically.
func TestProofMangled(t *testing.T) {
	_, verifier := testKey(t, testOrigin, testSeed)
	leaf := LeafHash(entryData(5))
	p := testProof(t, 11, 5)
	mangle(p.Marshal(), func(mangled []byte) {
		got, err := ParseProof(mangled)
		if err != nil {
			return
		}
		if _, err := got.Verify(leaf, verifier); err == nil {
			t.Errorf("verified %q", mangled)
		}
	})
	p.Extra = []byte("extra")
	mangle(p.Marshal(), func(mangled []byte) {
		got, err := ParseProof(mangled)
		if err == nil && !bytes.Equal(got.Marshal(), mangled) {
			t.Errorf("%q reads as %+v", mangled, got)
		}
	})
}

func TestParseProofRefusals(t *testing.T) {
	const hash = "gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=\n"
	const header = "c2sp.org/tlog-proof@v1\n"
	for name, text := range map[string]string{
		"empty":                  "",
		"header only":            header,
		"no index":               header + "\nc",
		"no empty line":          header + "index 1\n" + hash,
		"no newline before end":  header + "index 1",
		"version 2":              "c2sp.org/tlog-proof@v2\nindex 1\n\nc",
		"carriage returns":       "c2sp.org/tlog-proof@v1\r\nindex 1\r\n\r\nc",
		"empty index":            header + "index \n\nc",
		"bare number":            header + "1\n\nc",
		"index with zero":        header + "index 01\n\nc",
		"negative index":         header + "index -1\n\nc",
		"index with sign":        header + "index +1\n\nc",
		"two spaces":             header + "index  1\n\nc",
		"tab":                    header + "index\t1\n\nc",
		"upper case":             header + "Index 1\n\nc",
		"index twice":            header + "index 1\nindex 1\n\nc",
		"index of MaxSize":       header + "index 1152921504606846976\n\nc",
		"index above 64 bits":    header + "index 18446744073709551616\n\nc",
		"extra without data":     header + "extra \nindex 1\n\nc",
		"extra without space":    header + "extra\nindex 1\n\nc",
		"extra after index":      header + "index 1\nextra eA==\n\nc",
		"extra twice":            header + "extra eA==\nextra eA==\nindex 1\n\nc",
		"extra unpadded":         header + "extra eA\nindex 1\n\nc",
		"extra with stray bits":  header + "extra eB==\nindex 1\n\nc",
		"extra url-safe":         header + "extra -_-_\nindex 1\n\nc",
		"extra carriage return":  header + "extra eA==\r\nindex 1\n\nc",
		"hash short":             header + "index 1\ngSKy\n\nc",
		"hash with stray bits":   header + "index 1\ngSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlR=\n\nc",
		"hash with space":        header + "index 1\n " + hash + "\nc",
		"hashes in one line":     header + "index 1\n" + hash[:44] + hash + "\nc",
		"hash in carriage":       header + "index 1\n" + hash[:44] + "\r\n\nc",
		"text before the header": "\n" + header + "index 1\n\nc",
	} {
		if p, err := ParseProof([]byte(text)); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := ParseProof([]byte(header + "index 1\n" + hash + "\nc\n\nd")); err != nil || string(p.Checkpoint) != "c\n\nd" || len(p.Path) != 1 {
		t.Errorf("checkpoint is not verbatim: %+v, %v", p, err)
	}
}

// published returns the tiles of a log with these leaves, built batch by batch from an Extension, like on a
// server.
func published(t testing.TB, all []Hash, batch int) map[string][]byte {
	t.Helper()
	levels := [][]byte{nil}
	var tree Tree
	for start := 0; start < len(all); start += batch {
		e := tree.Extend(all[start:min(start+batch, len(all))])
		e.TileRoots(func(level uint8, index uint64, h Hash) {
			if int(level) == len(levels) {
				levels = append(levels, nil)
			}
			if index != uint64(len(levels[level])/len(h)) {
				t.Fatalf("level %d: hash %d out of order", level, index)
			}
			levels[level] = append(levels[level], h[:]...)
		})
	}
	for i := range all {
		levels[0] = append(levels[0], all[i][:]...)
	}
	tiles := make(map[string][]byte)
	for tile := range Tiles(uint64(len(all))) {
		if tile.Level >= 0 {
			first := 32 * TileWidth * int(tile.Index)
			tiles[tile.Path()] = levels[tile.Level][first : first+32*tile.Width]
		}
	}
	return tiles
}

func fetcher(tiles map[string][]byte) TileFetcher {
	return func(_ context.Context, tile Tile) ([]byte, error) {
		data, ok := tiles[tile.Path()]
		if !ok {
			return nil, errNoTile
		}
		return data, nil
	}
}

var errNoTile = errors.New("no such tile")

// TestProveFromTiles proves entries and growth from published tiles, in trees around the borders of tiles of
// three levels.
func TestProveFromTiles(t *testing.T) {
	all := leaves(66_000)
	for _, size := range []int{1, 2, 7, 100, 255, 256, 257, 300, 511, 512, 513, 1000, 65_535, 65_536, 65_537, 66_000} {
		e := new(Tree).Extend(all[:size])
		head := Checkpoint{testOrigin, uint64(size), e.Root()}
		fetch := fetcher(published(t, all[:size], 1000))
		for _, i := range []int{0, 1, 2, 6, 99, 100, 254, 255, 256, 257, 299, 512, 999, 65_535, 65_536, 65_999} {
			path, err := ProveInclusion(t.Context(), fetch, head, uint64(i))
			if i >= size {
				if !errors.Is(err, ErrRange) {
					t.Errorf("%d of %d: %v", i, size, err)
				}
				continue
			}
			if want, errWant := e.InclusionProof(uint64(i)); err != nil || errWant != nil || !slices.Equal(path, want) {
				t.Errorf("%d of %d: %v (%v), want %v", i, size, path, err, want)
			}
		}
		for _, m := range []int{0, 1, 3, 64, 255, 256, 257, 300, 512, 1000, 65_535, 65_536, 65_537, 66_000} {
			old := Checkpoint{testOrigin, uint64(m), new(Tree).Extend(all[:m]).Root()}
			path, err := ProveConsistency(t.Context(), fetch, old, head)
			if m > size {
				if !errors.Is(err, ErrRange) {
					t.Errorf("%d to %d: %v", m, size, err)
				}
				continue
			}
			if err == nil {
				err = VerifyConsistency(old, head, path)
			}
			if err != nil {
				t.Errorf("%d to %d: %v: %v", m, size, path, err)
			}
			old.Root[5] ^= 1
			if _, err := ProveConsistency(t.Context(), fetch, old, head); !errors.Is(err, ErrConsistency) {
				t.Errorf("%d to %d: forked: %v", m, size, err)
			}
		}
	}
}

// TestProveFromBadTiles changes, truncates and removes each tile that a proof reads.
func TestProveFromBadTiles(t *testing.T) {
	const size = 66_000
	all := leaves(size)
	head := Checkpoint{testOrigin, size, mth(all)}
	old := Checkpoint{testOrigin, 40_001, mth(all[:40_001])}
	tiles := published(t, all, size)
	provers := map[string]func(TileFetcher) error{
		"inclusion":   func(f TileFetcher) error { _, err := ProveInclusion(t.Context(), f, head, 300); return err },
		"consistency": func(f TileFetcher) error { _, err := ProveConsistency(t.Context(), f, old, head); return err },
	}
	for name, prove := range provers {
		var read []Tile
		if err := prove(func(ctx context.Context, tile Tile) ([]byte, error) {
			read = append(read, tile)
			return fetcher(tiles)(ctx, tile)
		}); err != nil || len(read) < 4 {
			t.Fatalf("%s: read %v: %v", name, read, err)
		}
		for _, bad := range read {
			for what, change := range map[string]struct {
				data func([]byte) ([]byte, error)
				want error
			}{
				"changed":  {func(b []byte) ([]byte, error) { b[len(b)-1] ^= 1; return b, nil }, ErrTile},
				"first":    {func(b []byte) ([]byte, error) { b[0] ^= 0x80; return b, nil }, ErrTile},
				"cut":      {func(b []byte) ([]byte, error) { return b[:len(b)-1], nil }, ErrTile},
				"longer":   {func(b []byte) ([]byte, error) { return append(b, b[:32]...), nil }, ErrTile},
				"empty":    {func([]byte) ([]byte, error) { return nil, nil }, ErrTile},
				"withheld": {func([]byte) ([]byte, error) { return nil, errNoTile }, errNoTile},
				"canceled": {func([]byte) ([]byte, error) { return nil, context.Canceled }, context.Canceled},
			} {
				err := prove(func(ctx context.Context, tile Tile) ([]byte, error) {
					data, err := fetcher(tiles)(ctx, tile)
					if tile == bad && err == nil {
						return change.data(bytes.Clone(data))
					}
					return data, err
				})
				if !errors.Is(err, change.want) || errors.Is(err, ErrTile) != errors.Is(change.want, ErrTile) {
					t.Errorf("%s: %s %s: %v, want %v", name, what, bad.Path(), err, change.want)
				}
			}
		}
	}
}

func FuzzParseProof(f *testing.F) {
	signer, vkey, err := NewSigner(testOrigin, testSeed)
	if err != nil {
		f.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil || signer.KeyHash() != verifier.KeyHash() {
		f.Fatal(err)
	}
	leaf := LeafHash(entryData(3))
	p := testProof(f, 10, 3)
	f.Add(p.Marshal())
	p.Extra = []byte("extra")
	f.Add(p.Marshal())
	f.Add(testProof(f, 1, 0).Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseProof(b)
		if err != nil {
			if !errors.Is(err, ErrProof) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(got.Marshal(), b) {
			t.Errorf("%q reads as %+v", b, got)
		}
		if _, err := got.Verify(leaf, verifier); err == nil && (got.Index != p.Index || !slices.Equal(got.Path, p.Path)) {
			t.Errorf("verified %q", b)
		}
	})
}

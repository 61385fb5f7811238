package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/transparency-dev/merkle/compact"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/api/layout"
	tessera "github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A reader reads a whole log and checks it against the signed checkpoint with foreign code. It returns the
// entries, or an error that says why the log is wrong.
type reader struct {
	name string
	read func(context.Context, published) ([][]byte, error)
}

var readers = []reader{
	{"tessera client", readClient},
	{"tessera fsck", readFsck},
	{"sumdb tlog", readSumDB},
}

// stride is the distance between the entries of a large log whose inclusion is proven. In a small log all
// entries are proven.
func stride(size uint64) uint64 { return 1 + size/1000 }

// fetcher returns tessera's own fetcher for the log.
func fetcher(p published) (f fsck.Fetcher, err error) {
	f = tessera.FileFetcher{Root: p.prefix.Path}
	if p.prefix.Scheme != "file" {
		f, err = tessera.NewHTTPFetcher(p.prefix, client)
	}
	if p.head != nil {
		f = pinned{f, p.head}
	}
	return f, err
}

// pinned is a fetcher with a fixed earlier checkpoint.
type pinned struct {
	fsck.Fetcher
	head []byte
}

func (p pinned) ReadCheckpoint(context.Context) ([]byte, error) { return p.head, nil }

// readClient reads every bundle and every hash with tessera's client.
func readClient(ctx context.Context, p published) ([][]byte, error) {
	f, err := fetcher(p)
	if err != nil {
		return nil, err
	}
	head, _, _, err := tessera.FetchCheckpoint(ctx, f.ReadCheckpoint, p.key, p.key.Name())
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	for n := uint64(0); uint64(len(entries)) < head.Size; n++ {
		bundle, err := tessera.GetEntryBundle(ctx, f.ReadEntryBundle, n, head.Size)
		if err != nil {
			return nil, err
		}
		if want := min(layout.EntryBundleWidth, head.Size-uint64(len(entries))); uint64(len(bundle.Entries)) != want {
			return nil, fmt.Errorf("bundle %d has %d entries, not %d", n, len(bundle.Entries), want)
		}
		entries = append(entries, bundle.Entries...)
	}
	leaves, err := tessera.FetchLeafHashes(ctx, f.ReadTile, 0, head.Size, head.Size)
	if err != nil {
		return nil, err
	}
	if err := checkLeaves(entries, leaves, head.Hash); err != nil {
		return nil, err
	}
	return entries, checkNodes(ctx, f.ReadTile, leaves, head.Hash)
}

// checkLeaves compares the entries with the leaf hashes, and those with the root.
func checkLeaves(entries, leaves [][]byte, root []byte) error {
	tree := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	for i, leaf := range leaves {
		if !bytes.Equal(leaf, rfc6962.DefaultHasher.HashLeaf(entries[i])) {
			return fmt.Errorf("entry %d is not what its leaf hash says", i)
		}
		if err := tree.Append(leaf, nil); err != nil {
			return err
		}
	}
	return checkRoot(tree, root)
}

// checkNodes compares the tiles above the leaves with the root: along its right
// edge, and along inclusion proofs.
func checkNodes(ctx context.Context, tiles tessera.TileFetcherFunc, leaves [][]byte, root []byte) error {
	size := uint64(len(leaves))
	edge, err := tessera.FetchRangeNodes(ctx, size, tiles)
	if err != nil {
		return err
	}
	tree, err := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewRange(0, size, edge)
	if err != nil {
		return err
	}
	if err := checkRoot(tree, root); err != nil {
		return err
	}
	builder, err := tessera.NewProofBuilder(ctx, size, tiles)
	if err != nil {
		return err
	}
	for i := uint64(0); i < size; i += stride(size) {
		path, err := builder.InclusionProof(ctx, i)
		if err != nil {
			return err
		}
		if err := merkle.VerifyInclusion(rfc6962.DefaultHasher, i, size, leaves[i], path, root); err != nil {
			return fmt.Errorf("inclusion of entry %d: %w", i, err)
		}
	}
	return nil
}

func checkRoot(tree *compact.Range, root []byte) error {
	got, err := tree.GetRootHash(nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, root) {
		return fmt.Errorf("root %x, not the signed %x", got, root)
	}
	return nil
}

// fsckWorkers is larger than the number of tiles from a leaf to the root. A worker of fsck that finds a fault
// ends, and without workers fsck hangs.
const fsckWorkers = 8

// readFsck does the same as tessera's fsck command, with its leaf hasher. The command itself exits
// 0 on a bad log, so this reads its error. Check has a time limit, because it does not end with its
// context, and a bundle with missing entries makes it panic.
func readFsck(ctx context.Context, p published) ([][]byte, error) {
	f, err := fetcher(p)
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	hasher := func(bundle []byte) ([][]byte, error) {
		var b api.EntryBundle
		if err := b.UnmarshalText(bundle); err != nil {
			return nil, err
		}
		entries = append(entries, b.Entries...)
		hashes := make([][]byte, 0, len(b.Entries))
		for _, e := range b.Entries {
			hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(e))
		}
		return hashes, nil
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("fsck panicked: %v", r)
			}
		}()
		done <- fsck.New(p.key.Name(), p.key, f, hasher, fsck.Opts{N: fsckWorkers}).Check(ctx)
	}()
	select {
	case err := <-done:
		return entries, err
	case <-ctx.Done():
		return nil, fmt.Errorf("fsck hangs: %w", ctx.Err())
	}
}

// readSumDB reads the log as the clients of Go's checksum database would. They
// know no bundles, so these are split with cryptobyte.
func readSumDB(ctx context.Context, p published) ([][]byte, error) {
	signed, err := p.get(ctx, "checkpoint")
	if err != nil {
		return nil, err
	}
	tree, err := openTree(signed, p.key)
	if err != nil {
		return nil, err
	}
	hashes := tlog.TileHashReader(tree, &tileReader{ctx, p})
	indexes := make([]int64, tree.N)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, int64(i))
	}
	leaves, err := hashes.ReadHashes(indexes)
	if err != nil {
		return nil, err
	}
	entries, err := readBundles(ctx, p, uint64(tree.N))
	if err != nil {
		return nil, err
	}
	for i, entry := range entries {
		if tlog.RecordHash(entry) != leaves[i] {
			return nil, fmt.Errorf("entry %d is not what its leaf hash says", i)
		}
	}
	return entries, checkRecords(hashes, tree, leaves)
}

// openTree opens a checkpoint with note.Open. tlog.ParseTree expects its three lines after the name of a Go
// module database.
func openTree(signed []byte, key note.Verifier) (tlog.Tree, error) {
	n, err := note.Open(signed, note.VerifierList(key))
	if err != nil {
		return tlog.Tree{}, err
	}
	rest, ok := strings.CutPrefix(n.Text, key.Name()+"\n")
	if !ok {
		return tlog.Tree{}, fmt.Errorf("origin is not %q", key.Name())
	}
	return tlog.ParseTree([]byte("go.sum database tree\n" + rest))
}

// checkRecords proves entries to be in the tree.
func checkRecords(hashes tlog.HashReader, tree tlog.Tree, leaves []tlog.Hash) error {
	for i := int64(0); i < tree.N; i += int64(stride(uint64(tree.N))) {
		p, err := tlog.ProveRecord(tree.N, i, hashes)
		if err != nil {
			return err
		}
		if err := tlog.CheckRecord(p, tree.N, tree.Hash, i, leaves[i]); err != nil {
			return fmt.Errorf("inclusion of entry %d: %w", i, err)
		}
	}
	return nil
}

// tileReader gives sumdb the tiles of height 8, under their C2SP paths, which leave the height out.
type tileReader struct {
	ctx context.Context
	log published
}

// Height implements tlog.TileReader.
func (*tileReader) Height() int { return 8 }

// ReadTiles implements tlog.TileReader.
func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, t := range tiles {
		var err error
		path := "tile/" + strings.TrimPrefix(t.Path(), "tile/8/")
		if data[i], err = r.log.getPartial(r.ctx, path); err != nil {
			return nil, err
		}
		data[i] = data[i][:min(len(data[i]), t.W*tlog.HashSize)]
	}
	return data, nil
}

// SaveTiles implements tlog.TileReader.
func (*tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// getPartial gets a tile or bundle, or the full one in place of a partial one
// that is gone.
//
// https://c2sp.org/tlog-tiles#partial-tiles
func (p published) getPartial(ctx context.Context, path string) ([]byte, error) {
	data, err := p.get(ctx, path)
	if full, _, partial := strings.Cut(path, ".p/"); partial && errors.Is(err, fs.ErrNotExist) {
		return p.get(ctx, full)
	}
	return data, err
}

// readBundles returns the first size entries.
func readBundles(ctx context.Context, p published, size uint64) ([][]byte, error) {
	var entries [][]byte
	for n := uint64(0); uint64(len(entries)) < size; n++ {
		width := min(256, int(size)-len(entries))
		t := tlog.Tile{H: 8, L: -1, N: int64(n), W: width}
		bundle, err := p.getPartial(ctx, "tile/entries/"+strings.TrimPrefix(t.Path(), "tile/8/data/"))
		if err != nil {
			return nil, err
		}
		rest := cryptobyte.String(bundle)
		for range width {
			var entry cryptobyte.String
			if !rest.ReadUint16LengthPrefixed(&entry) {
				return nil, fmt.Errorf("bundle %d is truncated", n)
			}
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

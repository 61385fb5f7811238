package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"
)

// proofHeader is the first line of a proof.
//
// https://c2sp.org/tlog-proof#format
const proofHeader = "c2sp.org/tlog-proof@v1\n"

// Proof is a receipt: with the log's key, it shows offline that an entry is in the log.
//
// https://c2sp.org/tlog-proof
type Proof struct {
	Extra      []byte // application data, not authenticated
	Index      uint64 // index of the entry
	Path       []Hash // inclusion proof, the leaf's sibling first
	Checkpoint []byte // signed checkpoint, verbatim
}

// Marshal returns the text of the proof.
func (p Proof) Marshal() []byte { return p.Append(nil) }

// Append appends the text of the proof to dst.
func (p Proof) Append(dst []byte) []byte {
	dst = append(dst, proofHeader...)
	if len(p.Extra) > 0 {
		dst = append(dst, "extra "...)
		dst = base64.StdEncoding.AppendEncode(dst, p.Extra)
		dst = append(dst, '\n')
	}
	dst = append(dst, "index "...)
	dst = strconv.AppendUint(dst, p.Index, 10)
	dst = append(dst, '\n')
	for i := range p.Path {
		dst = base64.StdEncoding.AppendEncode(dst, p.Path[i][:])
		dst = append(dst, '\n')
	}
	dst = append(dst, '\n')
	return append(dst, p.Checkpoint...)
}

// ParseProof reads the output of [Proof.Marshal] and fails with ErrProof on anything else. It does
// not look into the checkpoint; [Proof.Verify] does.
func ParseProof(b []byte) (Proof, error) {
	head, checkpoint, ok := bytes.Cut(b, []byte("\n\n"))
	rest, isProof := strings.CutPrefix(string(head), proofHeader)
	if !ok || !isProof || !utf8.Valid(b) {
		return Proof{}, fmt.Errorf("%w: not a tlog-proof", ErrProof)
	}
	p := Proof{Checkpoint: bytes.Clone(checkpoint)}
	line, rest, _ := strings.Cut(rest, "\n")
	var err error
	if extra, ok := strings.CutPrefix(line, "extra "); ok {
		if p.Extra, err = base64.StdEncoding.DecodeString(extra); err != nil {
			return Proof{}, fmt.Errorf("%w: extra", ErrProof)
		}
		line, rest, _ = strings.Cut(rest, "\n")
	}
	p.Index, err = strconv.ParseUint(strings.TrimPrefix(line, "index "), 10, 64)
	if err != nil || p.Index >= MaxSize {
		return Proof{}, fmt.Errorf("%w: index %q", ErrProof, line)
	}
	for rest != "" {
		line, rest, _ = strings.Cut(rest, "\n")
		h, err := tlog.ParseHash(line)
		if err != nil {
			return Proof{}, fmt.Errorf("%w: hash %q", ErrProof, line)
		}
		p.Path = append(p.Path, h)
	}
	if !bytes.Equal(p.Marshal(), b) {
		return Proof{}, fmt.Errorf("%w: not canonical", ErrProof)
	}
	return p, nil
}

// VerifyInclusion checks an inclusion proof: that the path leads from the leaf at index to the root
// of the checkpoint. Errors are ErrRange and ErrInclusion.
//
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1.1
func VerifyInclusion(c Checkpoint, index uint64, leaf Hash, path []Hash) error {
	if c.Size > MaxSize || index >= c.Size {
		return fmt.Errorf("verify entry %d of %d: %w", index, c.Size, ErrRange)
	}
	if tlog.CheckRecord(path, int64(c.Size), c.Root, int64(index), leaf) != nil {
		return fmt.Errorf("verify entry %d of %d: %w", index, c.Size, ErrInclusion)
	}
	return nil
}

// VerifyConsistency checks that the log of the old checkpoint is a prefix of that of the new one,
// with the same origin. The proof is empty if the old tree is empty or both have the same size.
// Errors are ErrRange (the old tree is larger) and ErrConsistency.
//
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1.2
func VerifyConsistency(old, head Checkpoint, proof []Hash) error {
	if head.Size > MaxSize || old.Size > head.Size {
		return fmt.Errorf("verify growth from %d to %d: %w", old.Size, head.Size, ErrRange)
	}
	ok := old.Origin == head.Origin
	if old.Size == 0 {
		ok = ok && old.Root == emptyRoot && len(proof) == 0 && (head.Size > 0 || head.Root == emptyRoot)
	} else {
		ok = ok && tlog.CheckTree(proof, int64(head.Size), head.Root, int64(old.Size), old.Root) == nil
	}
	if !ok {
		return fmt.Errorf("verify growth from %d to %d: %w", old.Size, head.Size, ErrConsistency)
	}
	return nil
}

// TileFetcher returns the bytes of a tile of hashes, exactly 32*t.Width. If only the full tile
// still exists, it returns its beginning.
type TileFetcher func(ctx context.Context, t Tile) ([]byte, error)

// ProveInclusion builds the inclusion proof of an entry from tiles and checks each tile against the
// checkpoint. It fails with ErrRange if the entry is not in the tree, with ErrTile if the tiles
// belong to another tree, and with the error of fetch.
func ProveInclusion(ctx context.Context, fetch TileFetcher, c Checkpoint, index uint64) ([]Hash, error) {
	if c.Size > MaxSize || index >= c.Size {
		return nil, fmt.Errorf("prove entry %d of %d: %w", index, c.Size, ErrRange)
	}
	tiles := &tileReader{ctx: ctx, fetch: fetch}
	path, err := tlog.ProveRecord(int64(c.Size), int64(index), tiles.reader(c))
	if err != nil {
		return nil, fmt.Errorf("prove entry %d of %d: %w", index, c.Size, tiles.fault(err))
	}
	return path, nil
}

// ProveConsistency builds the consistency proof between two checkpoints of a log from tiles of the
// new one. Errors are those of [ProveInclusion], and ErrConsistency if the old checkpoint belongs
// to a different history: the two signed checkpoints are then evidence of it.
func ProveConsistency(ctx context.Context, fetch TileFetcher, old, head Checkpoint) ([]Hash, error) {
	if head.Size > MaxSize || old.Size > head.Size {
		return nil, fmt.Errorf("prove growth from %d to %d: %w", old.Size, head.Size, ErrRange)
	}
	var proof []Hash
	if old.Size > 0 {
		tiles := &tileReader{ctx: ctx, fetch: fetch}
		var err error
		proof, err = tlog.ProveTree(int64(head.Size), int64(old.Size), tiles.reader(head))
		if err != nil {
			return nil, fmt.Errorf("prove growth from %d to %d: %w", old.Size, head.Size, tiles.fault(err))
		}
	}
	if err := VerifyConsistency(old, head, proof); err != nil {
		return nil, err
	}
	return proof, nil
}

// tileReader adapts a TileFetcher to tlog.TileReader, for one proof.
type tileReader struct {
	ctx   context.Context
	fetch TileFetcher
	err   error // error of fetch; nil: an error of tlog concerns the content
}

func (r *tileReader) reader(c Checkpoint) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: int64(c.Size), Hash: c.Root}, r)
}

func (r *tileReader) fault(err error) error {
	if r.err != nil {
		return r.err
	}
	return fmt.Errorf("%w: %w", ErrTile, err)
}

// Height implements tlog.TileReader.
func (r *tileReader) Height() int { return tileHeight }

// ReadTiles implements tlog.TileReader.
func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, t := range tiles {
		tile := Tile{Level: int8(t.L), Index: uint64(t.N), Width: t.W}
		if data[i], r.err = r.fetch(r.ctx, tile); r.err != nil {
			r.err = fmt.Errorf("fetch %s: %w", tile.Path(), r.err)
			return nil, r.err
		}
	}
	return data, nil
}

// SaveTiles implements tlog.TileReader; a caching fetcher saves tiles itself.
func (r *tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

package evidence

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier/ticket"
)

// Contradict compares two checkpoints signed by the key vkey. It returns the proof that they belong
// to two histories, or nil if the smaller is a prefix of the larger. For different sizes it reads
// tiles of the larger tree and verifies them. Its errors are those of [audit.ProveConsistency], and
// of [audit.OpenCheckpoint] for a checkpoint that the key did not sign.
func Contradict(ctx context.Context, fetch audit.TileFetcher, vkey string, first, second []byte) (*Evidence, error) {
	p, err := open(vkey, first, second)
	if err != nil {
		return nil, err
	}
	e := &Evidence{Version: version, Kind: Fork, VKey: ticket.Text(vkey), First: first, Second: second}
	if p.small.Size == p.large.Size {
		if p.small.Root == p.large.Root {
			return nil, nil
		}
		return e, nil
	}
	_, err = audit.ProveConsistency(ctx, fetch, p.small, p.large)
	if err == nil {
		return nil, nil
	}
	if !errors.Is(err, audit.ErrConsistency) {
		return nil, err
	}
	root, growth, err := rootAt(ctx, fetch, p.large, p.small.Size)
	if err != nil {
		return nil, err
	}
	e.Root, e.Growth = &root, growth
	if _, err := e.Check(""); err != nil {
		return nil, err
	}
	return e, nil
}

// Dropped returns evidence that a proven entry of the first checkpoint is not in the second, which
// has a different entry in its place. It returns nil if the entries are the same or the second tree
// is too small to tell.
func Dropped(ctx context.Context, fetch audit.TileFetcher, vkey string, first []byte, entry *ticket.Proven,
	second []byte) (*Evidence, error) {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfounded, err)
	}
	head, _, err := audit.OpenCheckpoint(second, key)
	if err != nil {
		return nil, err
	}
	index := uint64(entry.Index)
	if index >= head.Size {
		return nil, nil
	}
	path, err := audit.ProveInclusion(ctx, fetch, head, index)
	if err != nil {
		return nil, err
	}
	t := audit.Tile{Level: -1, Index: index / audit.TileWidth}
	t.Width = int(min(audit.TileWidth, head.Size-t.Index*audit.TileWidth))
	bundle, err := fetch(ctx, t)
	if err != nil {
		return nil, err
	}
	instead := &ticket.Proven{Index: entry.Index, Path: path}
	n := uint64(0)
	err = audit.SplitBundle(bundle, t.Width, func(text []byte) error {
		if n == index%audit.TileWidth {
			instead.Entry = ticket.Bytes(text)
		}
		n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if string(instead.Entry) == string(entry.Entry) {
		return nil, nil
	}
	e := &Evidence{Version: version, Kind: Receipt, VKey: ticket.Text(vkey), First: first, Second: second, Entry: entry,
		Instead: instead}
	if _, err := e.Check(""); err != nil {
		return nil, err
	}
	return e, nil
}

// pair holds two opened checkpoints.
type pair struct{ first, second, small, large audit.Checkpoint }

func open(vkey string, first, second []byte) (p pair, err error) {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return p, fmt.Errorf("%w: key %.200q: %w", ErrUnfounded, vkey, err)
	}
	if p.first, _, err = audit.OpenCheckpoint(first, key); err != nil {
		return p, err
	}
	if p.second, _, err = audit.OpenCheckpoint(second, key); err != nil {
		return p, err
	}
	p.small, p.large = p.first, p.second
	if p.small.Size > p.large.Size {
		p.small, p.large = p.large, p.small
	}
	return p, nil
}

// rootAt returns the root of the first size entries of a tree, 0 < size < head.Size, with its
// consistency proof.
func rootAt(ctx context.Context, fetch audit.TileFetcher, head audit.Checkpoint,
	size uint64) (audit.Hash, []audit.Hash, error) {
	reader := tlog.TileHashReader(tlog.Tree{N: int64(head.Size), Hash: head.Root}, tiles{ctx, fetch})
	root, err := tlog.TreeHash(int64(size), reader)
	if err != nil {
		return root, nil, fmt.Errorf("compute the root of %d entries: %w", size, err)
	}
	growth, err := tlog.ProveTree(int64(head.Size), int64(size), reader)
	if err != nil {
		return root, nil, fmt.Errorf("prove the root of %d entries: %w", size, err)
	}
	return root, growth, nil
}

// tiles adapts a fetcher to tlog.TileReader.
type tiles struct {
	ctx   context.Context
	fetch audit.TileFetcher
}

// Height implements [tlog.TileReader].
func (tiles) Height() int { return 8 }

// ReadTiles implements [tlog.TileReader].
func (t tiles) ReadTiles(list []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(list))
	for i, one := range list {
		var err error
		if data[i], err = t.fetch(t.ctx, audit.Tile{Level: int8(one.L), Index: uint64(one.N),
			Width: one.W}); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// SaveTiles implements [tlog.TileReader].
func (tiles) SaveTiles([]tlog.Tile, [][]byte) {}

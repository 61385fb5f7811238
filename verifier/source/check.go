package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// copied is a file-based source: a directory or an archive.
type copied interface {
	verifier.Source
	file(path string, bound int64) ([]byte, error)
}

// CopyCheck checks the parts of a copy that an audit does not read: the tiles of hashes, the file
// vkey, and the witnesses' lines in the checkpoint. An audit passes it every bundle with its
// hashes.
type CopyCheck struct {
	src copied

	mu    sync.Mutex
	roots map[uint64]audit.Hash // roots of the full bundles, by index
	bad   []badTile
}

type badTile struct {
	tile audit.Tile
	err  error // read error; nil: the hashes differ
}

// NewCopyCheck returns a check of src; nil if src is not a directory or an archive.
func NewCopyCheck(src verifier.Source) *CopyCheck {
	c, ok := src.(copied)
	if !ok {
		return nil
	}
	return &CopyCheck{src: c, roots: map[uint64]audit.Hash{}}
}

// OnBundle compares the hashes of a bundle with the copy's tile of them. It is a
// [verifier.OnBundle].
func (c *CopyCheck) OnBundle(ctx context.Context, bundle audit.Tile, leaves []audit.Hash, root audit.Hash) {
	t := audit.Tile{Level: 0, Index: bundle.Index, Width: bundle.Width}
	stored, err := c.src.Tile(ctx, t)
	matches := err == nil && len(stored) == len(leaves)*hashSize
	for i := 0; matches && i < len(leaves); i++ {
		matches = audit.Hash(stored[i*hashSize:]) == leaves[i]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !matches {
		c.bad = append(c.bad, badTile{t, err})
	}
	if t.Width == audit.TileWidth {
		c.roots[t.Index] = root
	}
}

// Finish checks the rest after an audit that passed. It returns the number of matching files and, in
// plain words, what is not checked. It fails with ErrMismatch on a file that is missing or wrong.
func (c *CopyCheck) Finish(ctx context.Context) (fit uint64, unchecked []string, err error) {
	signed, err := c.src.Checkpoint(ctx)
	if err != nil {
		return 0, nil, err
	}
	head, err := verifier.Unverified(signed)
	if err != nil {
		return 0, nil, err
	}
	read := func(t audit.Tile) ([]byte, error) { return c.src.Tile(ctx, t) }
	if err := c.checkTiles(read); err != nil {
		return 0, nil, err
	}
	policy, err := policyOf(read, head.Size)
	if err != nil || policy == nil {
		return 0, nil, err
	}
	fit = 1 + tiles(head.Size)
	switch vkey, err := c.src.file(VKeyPath, maxCheckpoint); {
	case errors.Is(err, fs.ErrNotExist):
		unchecked = append(unchecked, "there is no file vkey")
	case err != nil:
		return 0, nil, err
	case string(vkey) != policy.LogKey+"\n":
		return 0, nil, fmt.Errorf("%w: the file vkey has a different key than the room entry", ErrMismatch)
	default:
		fit++
	}
	others, err := checkLines(signed, policy.LogKey, policy.Witnesses)
	if others > 0 {
		unchecked = append(unchecked,
			fmt.Sprintf("%d signature lines of the checkpoint are by keys that the room does not name", others))
	}
	return fit, unchecked, err
}

// checkTiles checks the tiles above those of the bundles, and returns an error about the first wrong one.
func (c *CopyCheck) checkTiles(read func(t audit.Tile) ([]byte, error)) error {
	f := &treeCheck{read: read}
	for i := range uint64(len(c.roots)) {
		f.push(1, c.roots[i])
	}
	f.compareIncomplete()
	for _, t := range f.bad {
		_, err := read(t)
		c.bad = append(c.bad, badTile{t, err})
	}
	if len(c.bad) == 0 {
		return nil
	}
	first := slices.MinFunc(c.bad, func(a, b badTile) int {
		return cmp.Or(cmp.Compare(a.tile.Level, b.tile.Level), cmp.Compare(a.tile.Index, b.tile.Index))
	})
	switch {
	case errors.Is(first.err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is missing", ErrMismatch, first.tile.Path())
	case first.err != nil:
		return first.err
	}
	return fmt.Errorf("%w: %s does not match the hashes of the tiles below it", ErrMismatch, first.tile.Path())
}

// checkLines checks the signature lines of the log and of the policy's witnesses in a checkpoint,
// and counts the other lines.
func checkLines(signed []byte, vkey string, witnesses []string) (others int, err error) {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	var known []note.Verifier
	for _, text := range witnesses {
		w, err := audit.ParseWitness(text)
		if err != nil {
			continue // not an Ed25519 witness; the audit reports it where it matters
		}
		if !slices.ContainsFunc(known, func(k note.Verifier) bool {
			return k.Name() == w.Name() && k.KeyHash() == w.KeyHash()
		}) {
			known = append(known, w)
		}
	}
	_, n, err := audit.OpenCheckpoint(signed, key, known...)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	return len(n.UnverifiedSigs), nil
}

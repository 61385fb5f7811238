package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
)

// storers is how many tiles are fetched at once.
const storers = 32

// VKeyPath is where [Store] writes the key that the transcript names. It
// proves nothing by itself: whoever made the transcript chose it.
const VKeyPath = "vkey"

// Store copies a log into a directory, in the paths it is published under,
// so that any tlog-tiles reader can use the copy. Tiles that are there already
// in their size are kept, so a broken copy is resumed and a grown log only
// adds. Then all are compared with the checkpoint, and what does not fit is
// fetched anew. The checkpoint comes last. ErrMisfit says that the copy is not
// what the checkpoint signs, though it is as the source has it; one that was
// there is kept then. Whether the transcript is right is for [verifier.Audit]
// to say. The progress, nil for none, is told in tiles.
func Store(ctx context.Context, src verifier.Source, dir string, progress func(done, total uint64)) (audit.Checkpoint, error) {
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return audit.Checkpoint{}, fmt.Errorf("store transcript: %w", err)
	}
	head, err := verifier.Unverified(signed)
	if err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	old, err := fits(dir, head)
	if err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	if err := storeTiles(ctx, src, dir, head.Size, progress); err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	misfit := repair(ctx, src, dir, old, head)
	if misfit != nil && (old != nil || !errors.Is(misfit, ErrMisfit)) {
		return head, fmt.Errorf("store transcript: %w", misfit)
	}
	if err := storeKey(dir, head.Size); err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	if err := WriteFile(filepath.Join(dir, checkpointPath), signed); err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	if misfit != nil {
		return head, fmt.Errorf("store transcript: %w", misfit)
	}
	return head, nil
}

// fits refuses a directory with another log, or with more of the same one:
// what was signed once is evidence, not to be overwritten. It returns the
// checkpoint that is there, nil for none.
func fits(dir string, head audit.Checkpoint) (*audit.Checkpoint, error) {
	signed, err := readFile(dir, checkpointPath, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stored, err := verifier.Unverified(signed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, checkpointPath), err)
	case stored.Origin != head.Origin:
		return nil, fmt.Errorf("%w: %q, not %q", ErrOtherLog, stored.Origin, head.Origin)
	case stored.Size > head.Size:
		return nil, fmt.Errorf("%w: of %d entries, and the source has only %d", ErrOtherLog, stored.Size, head.Size)
	}
	return &stored, nil
}

func storeTiles(ctx context.Context, src verifier.Source, dir string, size uint64, progress func(done, total uint64)) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(storers)
	total := tiles(size)
	var done atomic.Uint64
	for t := range audit.Tiles(size) {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := storeTile(groupCtx, src, dir, t)
			if n := done.Add(1); progress != nil {
				progress(n, total)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// tiles counts what [audit.Tiles] yields.
func tiles(size uint64) (n uint64) {
	n = (size + audit.TileWidth - 1) / audit.TileWidth // bundles
	for ; size > 0; size /= audit.TileWidth {
		n += (size + audit.TileWidth - 1) / audit.TileWidth
	}
	return n
}

func storeTile(ctx context.Context, src verifier.Source, dir string, t audit.Tile) error {
	if b, err := readFile(dir, t.Path(), bound(t)); err == nil && complete(t, b) == nil {
		return nil
	}
	b, err := fetchTile(ctx, src, t)
	if err != nil {
		return err
	}
	return writeTile(dir, t, b)
}

func fetchTile(ctx context.Context, src verifier.Source, t audit.Tile) ([]byte, error) {
	b, err := src.Tile(ctx, t)
	if err != nil {
		return nil, err
	}
	return b, complete(t, b)
}

func writeTile(dir string, t audit.Tile, b []byte) error {
	return WriteFile(filepath.Join(dir, filepath.FromSlash(t.Path())), b)
}

// complete checks that a tile has as many hashes, or a bundle as many
// entries, as it should.
func complete(t audit.Tile, b []byte) error {
	if t.Level < 0 {
		if err := audit.SplitBundle(b, t.Width, func([]byte) error { return nil }); err != nil {
			return fmt.Errorf("%s: %w: %w", t.Path(), ErrIncomplete, err)
		}
		return nil
	}
	if want := t.Width * len(audit.Hash{}); len(b) != want {
		return fmt.Errorf("%s: %w: %d bytes, not %d", t.Path(), ErrIncomplete, len(b), want)
	}
	return nil
}

// storeKey writes the key that the room entry names, if there is one.
func storeKey(dir string, size uint64) error {
	policy, err := policyOf(func(t audit.Tile) ([]byte, error) { return readFile(dir, t.Path(), maxBundle) }, size)
	if policy == nil || err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, VKeyPath), []byte(policy.LogKey+"\n"))
}

// policyOf reads the room entry of a log, nil for none: a transcript that does
// not begin with a room is for the audit to judge.
func policyOf(read func(t audit.Tile) ([]byte, error), size uint64) (*fairness.Policy, error) {
	if size == 0 {
		return nil, nil
	}
	first := audit.Tile{Level: -1, Width: int(min(audit.TileWidth, size))}
	bundle, err := read(first)
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	err = audit.SplitBundle(bundle, first.Width, func(entry []byte) error {
		entries = append(entries, entry)
		return nil
	})
	if err != nil {
		return nil, err
	}
	e, err := fairness.ParseEntry(entries[0])
	room, ok := e.(*fairness.Room)
	if err != nil || !ok {
		return nil, nil //nolint:nilerr // see above
	}
	return &room.Policy, nil
}

// WriteFile writes a file as a whole or not at all, and its directory.
func WriteFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // published data
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".incomplete-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

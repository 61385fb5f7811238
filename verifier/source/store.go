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
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
)

// storers is the number of tiles fetched in parallel.
const storers = 32

// VKeyPath is the file in which [Store] writes the key from the transcript. It proves nothing by
// itself, because the transcript's author chose it.
const VKeyPath = "vkey"

// Store copies a log into a directory, under the same paths as published, so that any tlog-tiles
// reader can use the copy. It keeps existing tiles of the right size, so it can resume a broken
// copy or update an old one. It then compares all files with the checkpoint and fetches mismatched
// ones again. The checkpoint is written last. ErrMismatch means that the source's own files do not
// match its checkpoint; an earlier checkpoint is then kept. Whether the transcript follows the
// rules is for [verifier.Audit] to decide. The progress counts tiles and may be nil.
func Store(ctx context.Context, src verifier.Source, dir string,
	progress func(done, total uint64)) (audit.Checkpoint, error) {
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return audit.Checkpoint{}, fmt.Errorf("store transcript: %w", err)
	}
	head, err := verifier.Unverified(signed)
	if err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	old, err := checkStored(dir, head)
	if err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	if err := storeTiles(ctx, src, dir, head.Size, progress); err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	mismatch := repair(ctx, src, dir, old, head)
	if mismatch != nil && (old != nil || !errors.Is(mismatch, ErrMismatch)) {
		return head, fmt.Errorf("store transcript: %w", mismatch)
	}
	if err := storeKey(dir, head.Size); err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	if err := WriteFile(filepath.Join(dir, CheckpointPath), signed); err != nil {
		return head, fmt.Errorf("store transcript: %w", err)
	}
	if mismatch != nil {
		return head, fmt.Errorf("store transcript: %w", mismatch)
	}
	return head, nil
}

// checkStored rejects a directory with another log, or with a longer state of the same log, which
// is evidence that must not be overwritten. It returns the stored checkpoint; nil if there is none.
func checkStored(dir string, head audit.Checkpoint) (*audit.Checkpoint, error) {
	signed, err := readFile(dir, CheckpointPath, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stored, err := verifier.Unverified(signed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, CheckpointPath), err)
	case stored.Origin != head.Origin:
		return nil, fmt.Errorf("%w: %q, not %q", ErrOtherLog, stored.Origin, head.Origin)
	case stored.Size > head.Size:
		return nil, fmt.Errorf("%w: it has %d entries, but the source has only %d", ErrOtherLog, stored.Size, head.Size)
	}
	return &stored, nil
}

func storeTiles(ctx context.Context, src verifier.Source, dir string, size uint64,
	progress func(done, total uint64)) error {
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

// tiles returns the number of tiles that [audit.Tiles] yields.
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

// complete checks that a tile or bundle has the right number of hashes or entries.
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

// storeKey writes the key from the first entry of a room or of a log of rooms, if there is one.
func storeKey(dir string, size uint64) error {
	read := func(t audit.Tile) ([]byte, error) { return readFile(dir, t.Path(), maxBundle) }
	first, err := firstEntry(read, size)
	if err != nil {
		return err
	}
	vkey, err := roomlog.VKeyOf(first)
	if err != nil {
		policy, err := policyOf(read, size)
		if policy == nil || err != nil {
			return err
		}
		vkey = policy.LogKey
	}
	return WriteFile(filepath.Join(dir, VKeyPath), []byte(vkey+"\n"))
}

// policyOf returns the policy in the room entry of a log; nil if the log does not begin with a
// room, which the audit reports.
func policyOf(read func(t audit.Tile) ([]byte, error), size uint64) (*fairness.Policy, error) {
	first, err := firstEntry(read, size)
	if err != nil {
		return nil, err
	}
	e, err := fairness.ParseEntry(first)
	room, ok := e.(*fairness.Room)
	if err != nil || !ok {
		return nil, nil //nolint:nilerr // see above
	}
	return &room.Policy, nil
}

// firstEntry returns the first entry of a log; nil if it is empty.
func firstEntry(read func(t audit.Tile) ([]byte, error), size uint64) (first []byte, err error) {
	if size == 0 {
		return nil, nil
	}
	t := audit.Tile{Level: -1, Width: int(min(audit.TileWidth, size))}
	bundle, err := read(t)
	if err != nil {
		return nil, err
	}
	isFirst := true
	err = audit.SplitBundle(bundle, t.Width, func(entry []byte) error {
		if isFirst {
			first, isFirst = entry, false
		}
		return nil
	})
	return first, err
}

// WriteFile writes a file atomically and creates its directory.
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

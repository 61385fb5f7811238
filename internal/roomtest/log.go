package roomtest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/proofline/proofline/audit"
)

// CheckpointPath is the path of a log's checkpoint.
const CheckpointPath = "checkpoint"

// Store stores the files of a log by path.
type Store interface {
	Put(path string, content []byte) error
}

// Files is a published log in memory, by path. It is a source to audit, and tests may modify it.
type Files map[string][]byte

// Put implements [Store].
func (f Files) Put(path string, content []byte) error {
	f[path] = append([]byte(nil), content...)
	return nil
}

// Clone returns a copy that can be modified. It shares the contents, which must be replaced, not
// changed.
func (f Files) Clone() Files { return maps.Clone(f) }

// Checkpoint returns the signed checkpoint.
func (f Files) Checkpoint(context.Context) ([]byte, error) { return f.Get(CheckpointPath) }

// Tile returns a tile or bundle.
func (f Files) Tile(_ context.Context, t audit.Tile) ([]byte, error) { return f.Get(t.Path()) }

// Get returns the file at a path.
func (f Files) Get(path string) ([]byte, error) {
	b, ok := f[path]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", path, fs.ErrNotExist)
	}
	return b, nil
}

// Write writes the files to a directory.
func (f Files) Write(dir string) error {
	for path, content := range f {
		if err := Dir(dir).Put(path, content); err != nil {
			return err
		}
	}
	return nil
}

// Dir is a store in a directory.
type Dir string

// Put implements [Store].
func (d Dir) Put(path string, content []byte) error {
	name := filepath.Join(string(d), filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}

// Log writes the tiles of a growing log to a store. In memory it keeps only the partial tile of
// each level.
type Log struct {
	store  Store
	tree   audit.Tree
	bundle []byte
	levels [][]audit.Hash
}

// NewLog returns an empty log.
func NewLog(store Store) *Log { return &Log{store: store} }

// Root returns the root of the entries so far.
func (l *Log) Root() audit.Hash { return l.tree.Root() }

// Append adds an entry, and writes the tiles that become full.
func (l *Log) Append(entry []byte) error {
	var err error
	if l.bundle, err = audit.AppendBundle(l.bundle, entry); err != nil {
		return err
	}
	leaf := audit.LeafHash(entry)
	l.tree.Append(leaf)
	return l.add(0, leaf)
}

func (l *Log) add(level int, h audit.Hash) error {
	if level == len(l.levels) {
		l.levels = append(l.levels, nil)
	}
	l.levels[level] = append(l.levels[level], h)
	if len(l.levels[level]) < audit.TileWidth {
		return nil
	}
	if err := l.put(level); err != nil {
		return err
	}
	var root audit.Tree
	for _, h := range l.levels[level] {
		root.Append(h)
	}
	l.levels[level] = l.levels[level][:0]
	return l.add(level+1, root.Root())
}

// put writes the last tile of a level, and for level 0 also the entry bundle.
func (l *Log) put(level int) error {
	tile := l.levels[level]
	t := audit.Tile{Level: int8(level), Width: len(tile)}
	t.Index = (l.tree.Size()>>(8*level) - 1) / audit.TileWidth
	var content []byte
	for _, h := range tile {
		content = append(content, h[:]...)
	}
	if err := l.store.Put(t.Path(), content); err != nil || level > 0 {
		return err
	}
	t.Level = -1
	err := l.store.Put(t.Path(), l.bundle)
	l.bundle = l.bundle[:0]
	return err
}

// Close writes the partial tiles and the signed checkpoint.
func (l *Log) Close(keys *Keys) error {
	for level, tile := range l.levels {
		if len(tile) == 0 {
			continue
		}
		if err := l.put(level); err != nil {
			return err
		}
	}
	head := audit.Checkpoint{Origin: keys.Origin, Size: l.tree.Size(), Root: l.tree.Root()}
	signed, err := audit.SignCheckpoint(head, keys.Signer)
	if err != nil {
		return err
	}
	return l.store.Put(CheckpointPath, signed)
}

// Publish returns the log of arbitrary entries, valid or not, signed by the operator.
func Publish(keys *Keys, entries [][]byte) (Files, error) {
	files := Files{}
	l := NewLog(files)
	for _, e := range entries {
		if err := l.Append(e); err != nil {
			return nil, err
		}
	}
	return files, l.Close(keys)
}

package source

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// maxDepth is the maximum depth at which a transcript is searched below a directory: an origin such
// as host/r/room has three parts.
const maxDepth = 5

type dirSource string

// Dir returns the log published in a directory, or in the only directory below it that has a
// checkpoint. The log may grow while it is read.
func Dir(path string) (verifier.Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open transcript: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open transcript: %s: %w: not a directory", path, ErrNoTranscript)
	}
	found, err := findLogs(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open transcript: %w", err)
	case len(found) == 0:
		return nil, fmt.Errorf("open transcript: %s: %w: no checkpoint in it", path, ErrNoTranscript)
	case len(found) > 1:
		return nil, fmt.Errorf("open transcript: %s: %w: there are several, choose one: %s", path, ErrNoTranscript,
			strings.Join(found, ", "))
	}
	return dirSource(found[0]), nil
}

// findLogs returns the directories with a checkpoint; it does not search below them.
func findLogs(path string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if info, err := os.Stat(filepath.Join(name, CheckpointPath)); err == nil && info.Mode().IsRegular() {
			found = append(found, name)
			return fs.SkipDir
		}
		below, err := filepath.Rel(path, name)
		if err == nil && strings.Count(below, string(filepath.Separator)) >= maxDepth-1 {
			return fs.SkipDir
		}
		return err
	})
	return found, err
}

// Checkpoint implements [verifier.Source].
func (d dirSource) Checkpoint(context.Context) ([]byte, error) {
	return readFile(string(d), CheckpointPath, maxCheckpoint)
}

// Tile implements [verifier.Source].
func (d dirSource) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return tile(t, func(path string, bound int64) ([]byte, error) { return readFile(string(d), path, bound) })
}

// file implements copied.
func (d dirSource) file(path string, bound int64) ([]byte, error) {
	return readFile(string(d), path, bound)
}

// readFile reads a regular file of at most bound bytes. It checks the type before opening, because
// opening a pipe would wait for a writer.
func readFile(dir, path string, bound int64) ([]byte, error) {
	name := filepath.Join(dir, filepath.FromSlash(path))
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: not a file", name)
	case info.Size() > bound:
		return nil, fmt.Errorf("read %s: %w: %d bytes, at most %d", name, ErrTooLarge, info.Size(), bound)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

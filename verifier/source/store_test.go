package source

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// counting counts the tiles read from a source, and fails from a given one on.
type counting struct {
	verifier.Source
	tiles    atomic.Int64
	failFrom int64 // 0: never
}

var errLine = errors.New("the line is dead")

func (c *counting) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	if n := c.tiles.Add(1); c.failFrom > 0 && n >= c.failFrom {
		return nil, errLine
	}
	return c.Source.Tile(ctx, t)
}

func store(t *testing.T, src verifier.Source, dir string) (tiles int64, err error) {
	t.Helper()
	c := &counting{Source: src}
	_, err = Store(t.Context(), c, dir, nil)
	return c.tiles.Load(), err
}

// stored returns the files below a directory.
func stored(t *testing.T, dir string) roomtest.Files {
	t.Helper()
	files := roomtest.Files{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		path, err := filepath.Rel(dir, name)
		files[filepath.ToSlash(path)] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wantStored compares the files below a directory, and names those that differ.
func wantStored(t *testing.T, dir string, want roomtest.Files) {
	t.Helper()
	got := stored(t, dir)
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(got[path], want[path]) {
			t.Errorf("%s: %d bytes stored, want %d others", path, len(got[path]), len(want[path]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

func TestStore(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 256*257+5)
	dir := filepath.Join(t.TempDir(), "a", "b")
	var last [2]uint64
	var calls atomic.Int64
	files := publish(t, keys, entries)
	head, err := Store(t.Context(), files, dir, func(done, total uint64) {
		calls.Add(1)
		if done == total {
			last = [2]uint64{done, total}
		}
	})
	if err != nil || head.Size != uint64(len(entries)) || head.Origin != origin {
		t.Fatalf("%+v, %v", head, err)
	}
	if want := uint64(len(files) - 1); last != [2]uint64{want, want} || calls.Load() != int64(want) {
		t.Errorf("progress ended at %v after %d calls, want %d", last, calls.Load(), want)
	}
	files[VKeyPath] = []byte(keys.VKey + "\n")
	wantStored(t, dir, files)
	src, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	wantVerified(t, src, uint64(len(entries)))
	if n, err := store(t, files, dir); n != 0 || err != nil {
		t.Errorf("again: %d tiles, error %v", n, err)
	}
}

func TestStoreGrowing(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 900)
	dir := t.TempDir()
	for _, c := range []struct {
		size  int
		tiles int64
	}{
		{0, 0}, {1, 2}, {255, 2}, {256, 3}, {257, 2}, {700, 5}, {900, 5},
	} {
		n, err := store(t, publish(t, keys, entries[:c.size]), dir)
		if err != nil || n != c.tiles {
			t.Fatalf("size %d: %d tiles, want %d, error %v", c.size, n, c.tiles, err)
		}
		if c.size == 0 {
			continue
		}
		src, err := Dir(dir)
		if err != nil {
			t.Fatal(err)
		}
		wantVerified(t, src, uint64(c.size))
	}
}

// An interrupted copy has no checkpoint, and the next one resumes it.
func TestStoreResumes(t *testing.T) {
	dir := t.TempDir()
	files := logOf(t, 256*20)
	c := &counting{Source: files, failFrom: 15}
	if _, err := Store(t.Context(), c, dir, nil); !errors.Is(err, errLine) {
		t.Fatalf("error %v", err)
	}
	have := stored(t, dir)
	if _, ok := have[CheckpointPath]; ok {
		t.Error("there is a checkpoint already")
	}
	if n, err := store(t, files, dir); err != nil || n != int64(len(files)-1-len(have)) {
		t.Errorf("%d tiles fetched, error %v; %d of %d were there", n, err, len(have), len(files)-1)
	}
}

// Incomplete files, and files that are not regular, are fetched again.
func TestStoreRepairs(t *testing.T) {
	dir := t.TempDir()
	files := logOf(t, 600)
	if _, err := store(t, files, dir); err != nil {
		t.Fatal(err)
	}
	want := stored(t, dir)
	damaged := []string{"tile/entries/000", "tile/entries/001", "tile/0/000", "tile/0/001"}
	for i, path := range damaged {
		if err := os.Truncate(filepath.Join(dir, path), int64(i*50)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := store(t, files, dir); err != nil || n != int64(len(damaged)) {
		t.Errorf("%d tiles, error %v", n, err)
	}
	wantStored(t, dir, want)
}

func TestStoreRefusesIncomplete(t *testing.T) {
	honest := logOf(t, 600)
	for _, path := range []string{"tile/entries/001", "tile/entries/002.p/88", "tile/0/001", "tile/0/002.p/88", "tile/1/000.p/2"} {
		for _, change := range []func([]byte) []byte{
			func(b []byte) []byte { return b[:len(b)-1] },
			func(b []byte) []byte { return append(slices.Clone(b), 0) },
			func([]byte) []byte { return nil },
		} {
			dir := t.TempDir()
			files := honest.Clone()
			files[path] = change(files[path])
			_, err := store(t, files, dir)
			if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", path, err)
			}
			have := stored(t, dir)
			if _, ok := have[CheckpointPath]; ok {
				t.Errorf("%s: the checkpoint was stored", path)
			}
			for name := range have {
				if strings.Contains(name, "incomplete") {
					t.Errorf("%s: %s is left behind", path, name)
				}
			}
		}
	}
}

// Existing files may be evidence.
func TestStoreKeepsExistingFiles(t *testing.T) {
	dir := t.TempDir()
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 10)
	if _, err := store(t, publish(t, keys, entries), dir); err != nil {
		t.Fatal(err)
	}
	want := stored(t, dir)
	other := newKeys(t, "queue.example.com/r/other")
	for name, files := range map[string]roomtest.Files{
		"another room": publish(t, other, entriesOf(t, other, 20)),
		"rolled back":  publish(t, keys, entries[:9]),
		"no log":       {CheckpointPath: []byte("<!doctype html>")},
	} {
		if _, err := store(t, files, dir); err == nil || name != "no log" && !errors.Is(err, ErrOtherLog) {
			t.Errorf("%s: error %v", name, err)
		}
		wantStored(t, dir, want)
	}
}

func TestStoreCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	_, err := Store(ctx, logOf(t, 256*50), dir, func(done, _ uint64) {
		if done == 10 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, ok := stored(t, dir)[CheckpointPath]; ok {
		t.Error("the checkpoint was stored")
	}
}

// A transcript that does not begin with a room is stored without a key.
func TestStoreWithoutKey(t *testing.T) {
	keys := newKeys(t, origin)
	dir := t.TempDir()
	if _, err := store(t, publish(t, keys, [][]byte{[]byte("hello")}), dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := stored(t, dir)[VKeyPath]; ok {
		t.Error("there is a key")
	}
}

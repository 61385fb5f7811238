package source

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// change flips a bit in the last byte of files, which keeps their size.
func change(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		name := filepath.Join(dir, path)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Files that were changed on disk but kept their size are fetched again, and others are not.
func TestStoreRepairsChanged(t *testing.T) {
	dir := t.TempDir()
	files := logOf(t, 256*257+5)
	if _, err := store(t, files, dir); err != nil {
		t.Fatal(err)
	}
	want := stored(t, dir)
	for _, paths := range [][]string{
		{"tile/entries/000"}, {"tile/entries/257.p/5"}, {"tile/0/000"}, {"tile/0/257.p/5"},
		{"tile/1/000"}, {"tile/1/001.p/1"}, {"tile/2/000.p/1"},
		{"tile/entries/010", "tile/entries/011", "tile/0/012", "tile/1/000"},
	} {
		change(t, dir, paths...)
		n, err := store(t, files, dir)
		if err != nil || n == 0 || n > 20 {
			t.Errorf("%v: %d tiles, error %v", paths, n, err)
		}
		wantStored(t, dir, want)
	}
}

// Entries and all hashes above them were changed consistently: only the signed root shows it.
func TestStoreRepairsForged(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 256*257+5)
	files := publish(t, keys, entries)
	for _, index := range []int{3, 256 * 256, len(entries) - 1} {
		forged := slices.Clone(entries)
		forged[index] = []byte("forged")
		dir := t.TempDir()
		if err := publish(t, keys, forged).Write(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, CheckpointPath), files[CheckpointPath], 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := store(t, files, dir); err != nil || n > 20 {
			t.Errorf("entry %d: %d tiles, error %v", index, n, err)
		}
		src, err := Dir(dir)
		if err != nil {
			t.Fatal(err)
		}
		wantVerified(t, src, uint64(len(entries)))
	}
}

// A wrong source is copied as it is, for an audit.
func TestStoreMisfit(t *testing.T) {
	files := logOf(t, 600)
	bundle := slices.Clone(files["tile/entries/000"])
	bundle[len(bundle)-1] ^= 1
	files["tile/entries/000"] = bundle
	dir := t.TempDir()
	for range 2 {
		if _, err := store(t, files, dir); !errors.Is(err, ErrMismatch) {
			t.Errorf("error %v", err)
		}
		if got := stored(t, dir); !bytes.Equal(got["tile/entries/000"], bundle) || got[CheckpointPath] == nil {
			t.Error("not stored as it is")
		}
	}
}

// A source with a different history does not replace the stored one.
func TestStoreKeepsHistory(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 700)
	other := slices.Clone(entries)
	other[3] = []byte("another")
	for _, size := range []int{600, 650, 700} {
		dir := t.TempDir()
		if _, err := store(t, publish(t, keys, entries[:600]), dir); err != nil {
			t.Fatal(err)
		}
		want := stored(t, dir)
		if _, err := store(t, publish(t, keys, other[:size]), dir); !errors.Is(err, ErrMismatch) {
			t.Errorf("%d entries: error %v", size, err)
		}
		got := stored(t, dir)
		for path := range want {
			if !bytes.Equal(got[path], want[path]) {
				t.Errorf("%d entries: %s was replaced", size, path)
			}
		}
	}
}

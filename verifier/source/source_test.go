package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

const origin = "queue.example.com/r/sale"

func newKeys(t testing.TB, origin string) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, "honest")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// entriesOf returns the entries of a room with n of them, at least 1.
func entriesOf(t testing.TB, keys *roomtest.Keys, n int) [][]byte {
	t.Helper()
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, n-1)
	if room.Err() != nil {
		t.Fatal(room.Err())
	}
	return room.Entries()
}

func publish(t testing.TB, keys *roomtest.Keys, entries [][]byte) roomtest.Files {
	t.Helper()
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// logOf publishes a log of n entries.
func logOf(t testing.TB, n int) roomtest.Files {
	t.Helper()
	keys := newKeys(t, origin)
	return publish(t, keys, entriesOf(t, keys, n))
}

func write(t testing.TB, files roomtest.Files, dir string) {
	t.Helper()
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
}

func wantVerified(t testing.TB, src verifier.Source, entries uint64) {
	t.Helper()
	r, err := verifier.Audit(t.Context(), src, verifier.Trust{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || r.Entries != entries {
		t.Errorf("report: %+v", r)
	}
}

func TestDir(t *testing.T) {
	dir := t.TempDir()
	write(t, logOf(t, 700), filepath.Join(dir, "queue.example.com", "r", "sale"))
	for _, below := range []string{"", "queue.example.com", "queue.example.com/r", "queue.example.com/r/sale"} {
		src, err := Open(filepath.Join(dir, below))
		if err != nil {
			t.Fatal(err)
		}
		wantVerified(t, src, 700)
	}
}

func TestDirRefuses(t *testing.T) {
	dir := t.TempDir()
	files := logOf(t, 3)
	write(t, files, filepath.Join(dir, "two", "a"))
	write(t, files, filepath.Join(dir, "two", "b"))
	write(t, files, filepath.Join(dir, "deep/1/2/3/4/5/6"))
	for _, name := range []string{"none", "wrong/checkpoint"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path  string
		want  error
		words string
	}{
		{"absent", fs.ErrNotExist, "absent"},
		{"none", ErrNoTranscript, "no checkpoint"},
		{"wrong", ErrNoTranscript, "no checkpoint"},
		{"deep", ErrNoTranscript, "no checkpoint"},
		{"two", ErrNoTranscript, filepath.Join(dir, "two", "a") + ", " + filepath.Join(dir, "two", "b")},
		{"two/a/checkpoint", ErrNoTranscript, "not a directory"},
	} {
		if _, err := Dir(filepath.Join(dir, c.path)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: error %v, want %v with %q", c.path, err, c.want, c.words)
		}
	}
}

// A log may have replaced a partial tile by the full one since its checkpoint.
func TestPartialTileFromFull(t *testing.T) {
	const old, size = 300, 600
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, size)
	files := publish(t, keys, entries)
	past := publish(t, keys, entries[:old])
	files[CheckpointPath] = past[CheckpointPath]
	files["tile/1/000.p/1"] = past["tile/1/000.p/1"] // there is no full one yet
	dir := t.TempDir()
	write(t, files, dir)
	src, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	wantVerified(t, src, old)
	for tile := range audit.Tiles(old) {
		b, err := src.Tile(t.Context(), tile)
		if err != nil || !slices.Equal(b, past[tile.Path()]) {
			t.Errorf("%s: %d bytes, error %v", tile.Path(), len(b), err)
		}
	}
	_, err = src.Tile(t.Context(), audit.Tile{Level: 0, Index: 7, Width: 3})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "007.p/3") || !strings.Contains(err.Error(), "no full tile") {
		t.Errorf("error %v", err)
	}
}

// Malformed files are passed on, so that the verifier reports them.
func TestPartialOfMalformedFull(t *testing.T) {
	bundle := audit.Tile{Level: -1, Width: 3}
	hashes := audit.Tile{Level: 0, Width: 3}
	for _, c := range []struct {
		tile audit.Tile
		full string
		want int
	}{
		{bundle, "", 0},
		{bundle, "\x00", 1},
		{bundle, "\x00\x01a\x00\x00\x00", 6},
		{bundle, "\x00\x01a\x00\x00\x00\x05b", 8},
		{bundle, "\x00\x01a\x00\x00\x00\x01b", 8},
		{bundle, "\x00\x01a\x00\x00\x00\x01bcd", 8},
		{hashes, strings.Repeat("h", 95), 95},
		{hashes, strings.Repeat("h", 8192), 96},
	} {
		if got := length(c.tile, []byte(c.full)); got != c.want {
			t.Errorf("%q: %d, want %d", c.full, got, c.want)
		}
	}
}

func TestDirBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, logOf(t, 3), dir)
	src, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tile := audit.Tile{Level: -1, Width: 3}
	large := audit.TileWidth*(2+audit.MaxEntrySize) + 1
	if err := os.Truncate(filepath.Join(dir, tile.Path()), int64(large)); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Tile(t.Context(), tile); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large file: %v", err)
	}
}

func TestDirOfGeneratedRoom(t *testing.T) {
	keys := newKeys(t, origin)
	dir := t.TempDir()
	if err := roomtest.Generate(keys, roomtest.Dir(dir), roomtest.Size{Visitors: 1000, Windows: 4}); err != nil {
		t.Fatal(err)
	}
	src, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := verifier.Audit(t.Context(), src, verifier.Trust{VKey: keys.VKey})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || r.Arrivals != 1000 || r.Windows != 4 || r.Assignments != 1000 || r.Admissions != 1000 {
		t.Errorf("report: %+v", r)
	}
}

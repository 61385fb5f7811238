package source

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/roomtest"
)

// packed is a file to add to an archive.
type packed struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// pack writes an archive.
func pack(t testing.TB, list ...packed) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, p := range list {
		h := &zip.FileHeader{Name: p.name, Method: zip.Deflate}
		h.SetMode(p.mode | 0o600)
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write(p.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive(t, b.Bytes())
}

func archive(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "room.zip")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// below lists the files of a log in a directory of an archive.
func below(dir string, files roomtest.Files) (list []packed) {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		list = append(list, packed{name: dir + path, content: files[path]})
	}
	return list
}

func TestZip(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 700)
	files := publish(t, keys, entries)
	for _, dir := range []string{"", "transcript/", "queue.example.com/r/sale/x/"} {
		list := append(below(dir, files), packed{name: "README.txt", content: []byte("read me")}, packed{name: "empty/", mode: fs.ModeDir})
		src, err := Open(pack(t, list...))
		if err != nil {
			t.Fatalf("%q: %v", dir, err)
		}
		wantVerified(t, src, uint64(len(entries)))
		for tile := range audit.Tiles(300) { // an older tree, from full tiles
			if _, err := src.Tile(t.Context(), tile); tile.Level < 1 && tile.Index == 0 && err != nil {
				t.Errorf("%s: %v", tile.Path(), err)
			}
		}
		if _, err := src.Tile(t.Context(), audit.Tile{Level: 0, Index: 9, Width: 3}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a tile that is not there: %v", err)
		}
	}
}

// An archive with a malicious structure is refused before anything is unpacked.
func TestZipRefuses(t *testing.T) {
	good := below("", logOf(t, 300))
	huge := packed{name: "tile/0/001.p/44", content: make([]byte, 10_000_000)}
	for name, c := range map[string]struct {
		list []packed
		want error
	}{
		"above":         {append(slices.Clone(good), packed{name: "../checkpoint"}), ErrArchive},
		"above, within": {append(slices.Clone(good), packed{name: "a/../../checkpoint"}), ErrArchive},
		"absolute":      {append(slices.Clone(good), packed{name: "/etc/passwd"}), ErrArchive},
		"backslash":     {append(slices.Clone(good), packed{name: `..\checkpoint`}), ErrArchive},
		"twice":         {append(slices.Clone(good), packed{name: "checkpoint", content: []byte("another")}), ErrArchive},
		"a link":        {append(slices.Clone(good), packed{name: "tile/link", content: []byte("/etc/passwd"), mode: fs.ModeSymlink}), ErrArchive},
		"a bomb":        {append(slices.Clone(good), huge), ErrArchive},
		"two logs":      {append(below("a/", logOf(t, 3)), below("b/", logOf(t, 3))...), ErrNoTranscript},
		"no log":        {[]packed{{name: "README.txt"}}, ErrNoTranscript},
		"too deep":      {below("a/b/c/d/e/", logOf(t, 3)), ErrNoTranscript},
		"nothing":       {nil, ErrNoTranscript},
	} {
		if _, err := Open(pack(t, c.list...)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, content := range map[string]string{"text": "hello", "empty": "", "cut": "PK\x03\x04"} {
		if _, err := Open(archive(t, []byte(content))); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Wrong sizes and checksums are found when the file is read, and so are files that are too large for their
// kind.
func TestZipLies(t *testing.T) {
	hashes := bytes.Repeat([]byte{7}, 32*3)
	for name, change := range map[string]func(*zip.FileHeader){
		"sum":     func(h *zip.FileHeader) { h.CRC32++ },
		"shorter": func(h *zip.FileHeader) { h.UncompressedSize64-- },
		"longer":  func(h *zip.FileHeader) { h.UncompressedSize64++ },
		"method":  func(h *zip.FileHeader) { h.Method = 99 },
		"large":   func(*zip.FileHeader) {},
	} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		content := hashes
		if name == "large" {
			content = make([]byte, 32*256+1)
			for i := range content {
				content[i] = byte(i * i >> 3)
			}
		}
		for path, body := range map[string][]byte{"checkpoint": []byte("x"), "tile/0/000.p/3": content} {
			h := &zip.FileHeader{Name: path, CRC32: crc32.ChecksumIEEE(body), CompressedSize64: uint64(len(body)), UncompressedSize64: uint64(len(body))}
			if path != "checkpoint" {
				change(h)
			}
			f, err := w.CreateRaw(h)
			if err == nil {
				_, err = f.Write(body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		src, err := Open(archive(t, b.Bytes()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := src.Tile(t.Context(), audit.Tile{Level: 0, Width: 3})
		if err == nil || got != nil || name == "large" && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q has several lines", name, err)
		}
	}
}

func FuzzZip(f *testing.F) {
	for _, list := range [][]packed{below("a/", logOf(f, 3)), {{name: "../checkpoint"}}} {
		content, err := os.ReadFile(pack(f, list...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		src, err := Zip(archive(t, content))
		if err != nil {
			return
		}
		signed, err := src.Checkpoint(t.Context())
		if err == nil && len(signed) > maxCheckpoint {
			t.Errorf("a checkpoint of %d bytes", len(signed))
		}
		for tile := range audit.Tiles(1000) {
			if b, err := src.Tile(t.Context(), tile); err == nil && int64(len(b)) > bound(tile) {
				t.Errorf("%s: %d bytes", tile.Path(), len(b))
			}
		}
	})
}

package source

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/proofline/proofline/audit"
)

// tarOf writes a tar archive; change adapts the headers.
func tarOf(t testing.TB, list []packed, change func(*tar.Header)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range list {
		h := &tar.Header{Name: p.name, Size: int64(len(p.content)), Mode: 0o644}
		change(h)
		err := w.WriteHeader(h)
		if err == nil {
			_, err = w.Write(p.content[:h.Size])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func same(*tar.Header) {}

func tarFile(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "room.tar")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTar(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 700)
	list := append(below(TranscriptDir, publish(t, keys, entries)), below("rooms/", logOf(t, 3))...)
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		src, err := Open(tarFile(t, tarOf(t, list, func(h *tar.Header) { h.Format = format })))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		wantVerified(t, src, uint64(len(entries)))
	}
}

func TestTarRefused(t *testing.T) {
	good := below(TranscriptDir, logOf(t, 3))
	with := func(name string) []byte {
		return tarOf(t, append(slices.Clone(good), packed{name: name, content: []byte("x")}), same)
	}
	odd := func(flag byte) []byte {
		return tarOf(t, append(slices.Clone(good), packed{name: "odd"}), func(h *tar.Header) {
			if h.Name == "odd" {
				h.Typeflag, h.Linkname = flag, "/etc/passwd"
			}
		})
	}
	huge := tarOf(t, good[:1], same)
	copy(huge[124:136], "77777777777\x00") // 8 GiB, with the sum of the header below
	sum := 0
	copy(huge[148:156], "        ")
	for _, b := range huge[:512] {
		sum += int(b)
	}
	copy(huge[148:156], []byte{byte('0' + sum>>15&7), byte('0' + sum>>12&7), byte('0' + sum>>9&7), byte('0' + sum>>6&7), byte('0' + sum>>3&7), byte('0' + sum&7), 0, ' '})
	for name, content := range map[string][]byte{
		"a path outside": with("../evil"), "an absolute path": with("/etc/passwd"), "a path through itself": with("a/../b"),
		"a backslash": with(`a\b`), "twice": with(TranscriptDir + CheckpointPath),
		"a symbolic link": odd(tar.TypeSymlink), "a hard link": odd(tar.TypeLink), "a device": odd(tar.TypeChar),
		"a pipe": odd(tar.TypeFifo), "a huge file": huge, "cut off": with("x")[:600], "text": bytes.Repeat([]byte("hello"), 200),
	} {
		if _, err := Open(tarFile(t, content)); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, content := range map[string][]byte{"empty": nil, "no log": tarOf(t, []packed{{name: "README.txt"}}, same)} {
		if _, err := Open(tarFile(t, content)); !errors.Is(err, ErrNoTranscript) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := tarOf(t, append(slices.Clone(good[:1]), packed{name: TranscriptDir + "tile/0/000.p/3", content: make([]byte, 32*256+1)}), same)
	src, err := Open(tarFile(t, large))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Tile(t.Context(), audit.Tile{Level: 0, Width: 3}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a tile that is too large: %v", err)
	}
}

func FuzzTar(f *testing.F) {
	for _, list := range [][]packed{below(TranscriptDir, logOf(f, 3)), {{name: "a", content: []byte("x")}}} {
		f.Add(tarOf(f, list, same))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		archive, err := ReadTar(bytes.NewReader(content), int64(len(content)), "room.tar")
		if err != nil {
			return
		}
		for _, name := range archive.Names() {
			if b, err := archive.Read(name, 1<<20); err == nil && !bytes.Contains(content, b) {
				t.Errorf("%s is not in the archive", name)
			}
		}
	})
}

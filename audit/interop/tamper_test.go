package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
)

// TestTamper flips bits in every file of a log, that is in every bundle, every tile and the checkpoint, and
// expects every reader to refuse the log.
func TestTamper(t *testing.T) {
	files := publish(t, scripted(t, 700))
	for path, content := range files {
		// The first and last byte; a length and a text in a bundle; hashes in a tile; lines in a note.
		for _, at := range []int{0, 1, 2, len(content) / 3, len(content) / 2, len(content) - 2, len(content) - 1} {
			for _, bit := range []byte{0x01, 0x80} {
				bad := files.Clone()
				bad[path] = slices.Clone(content)
				bad[path][at] ^= bit
				dir := t.TempDir()
				write(t, bad, dir)
				log := inDirectory(t, dir)
				for _, r := range readers {
					name := fmt.Sprintf("%s/%s/byte %d/bit %#x", strings.ReplaceAll(path, "/", "-"), r.name, at, bit)
					t.Run(name, func(t *testing.T) { refuse(t, r, log) })
				}
			}
		}
	}
}

// TestShorten removes the last entry from each bundle and the last hash from each tile, which leaves them
// well-formed.
func TestShorten(t *testing.T) {
	files := publish(t, scripted(t, 700))
	for path, content := range files {
		tile, err := audit.ParseTilePath(path)
		if err != nil {
			continue // the checkpoint
		}
		short := content[:len(content)-tlog.HashSize]
		if tile.Level < 0 {
			short = shorter(t, content, tile.Width)
		}
		bad := files.Clone()
		bad[path] = short
		dir := t.TempDir()
		write(t, bad, dir)
		for _, r := range readers {
			t.Run(strings.ReplaceAll(path, "/", "-")+"/"+r.name, func(t *testing.T) { refuse(t, r, inDirectory(t, dir)) })
		}
	}
}

// shorter returns a bundle without its last entry.
func shorter(t *testing.T, bundle []byte, width int) []byte {
	t.Helper()
	var last int
	err := audit.SplitBundle(bundle, width, func(entry []byte) error {
		last = 2 + len(entry)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bundle[:len(bundle)-last]
}

// refuse expects a reader to find an error in time.
func refuse(t *testing.T, r reader, log published) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := r.read(ctx, log)
	switch {
	case err == nil:
		t.Errorf("%s reads a log that was tampered with", r.name)
	case ctx.Err() != nil:
		t.Errorf("%s: %v", r.name, err)
	default:
		t.Logf("%.160s", err)
	}
}

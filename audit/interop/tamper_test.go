package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTamper flips bits of every file of a log, of every bundle and tile and of
// the checkpoint, and expects every reader to refuse the log.
func TestTamper(t *testing.T) {
	files := publish(t, scripted(t, 700))
	for path, content := range files {
		// The ends, a length and a text of a bundle, hashes of a tile, lines of a note.
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

// refuse expects a reader to find something wrong, in time.
func refuse(t *testing.T, r reader, log published) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := r.read(ctx, log)
	switch {
	case err == nil:
		t.Errorf("%s reads a log with a flipped bit", r.name)
	case ctx.Err() != nil:
		t.Errorf("%s: %v", r.name, err)
	}
}

//go:build unix

package source

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proofline/proofline/audit"
)

// Opening a pipe without a writer would block.
func TestDirWithAPipe(t *testing.T) {
	dir := t.TempDir()
	write(t, logOf(t, 3), dir)
	src, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tile := audit.Tile{Level: -1, Width: 3}
	name := filepath.Join(dir, tile.Path())
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Tile(t.Context(), tile); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("error %v", err)
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Changed files of a copy are fetched again. Errors of the room itself are reported, and packed as they are.
func TestFetchChanged(t *testing.T) {
	_, room, _ := fork(t)
	dir := t.TempDir()
	from, to := filepath.Join(dir, "room"), filepath.Join(dir, "copy")
	if err := room.Write(from); err != nil {
		t.Fatal(err)
	}
	env := func(string) string { return "" }
	verify := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr, env); code != want {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	alter := func(dir string) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "tile", "entries", "000.p", "*"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		b, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(names[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify(exitVerified, "fetch", from, to)
	alter(to)
	verify(exitFailed, "audit", to, "--no-keep")
	verify(exitVerified, "fetch", from, to)
	verify(exitVerified, "audit", to, "--no-keep")

	alter(from)
	empty := filepath.Join(dir, "empty")
	said := verify(exitFailed, "fetch", from, empty)
	if strings.Contains(said, "stored") || !strings.Contains(said, "does not match its checkpoint") ||
		!strings.Contains(said, "hint: fetch into an empty directory") {
		t.Errorf("said %s", said)
	}
	verify(exitFailed, "audit", empty, "--no-keep")
	verify(exitFailed, "dossier", from, filepath.Join(dir, "room.zip"), "--no-keep")
	if _, err := os.Stat(filepath.Join(dir, "room.zip")); err != nil {
		t.Error(err)
	}
}

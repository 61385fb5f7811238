//go:build unix

package localpg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogIsLimited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempDir(t), "postgres.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.begin()
	line := "2026-01-01 LOG:  " + strings.Repeat("x", 1<<20) + "\n"
	for range 40 {
		if _, err := l.WriteString(line); err != nil {
			t.Fatal(err)
		}
		l.rotate()
	}
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() == 0 || info.Size() > maxLog+int64(len(line)) {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	l, err := openLog(filepath.Join(tempDir(t), "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write := func(text string) {
		t.Helper()
		if _, err := l.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("[1] FATAL:  of an earlier run\n")
	l.begin()
	if got := l.reason(); got != "" {
		t.Errorf("reason = %q before the run said anything", got)
	}
	write("[2] LOG:  starting\n[2] FATAL:  disk on fire\n[2] LOG:  shut down\n")
	if got := l.reason(); got != "disk on fire" {
		t.Errorf("reason = %q", got)
	}
}

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/proofline/proofline/internal/roomtest"
)

// fork has two histories of one room, signed by one key.
func fork(t *testing.T) (keys *roomtest.Keys, one, two roomtest.Files) {
	t.Helper()
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	r := roomtest.Open(keys, keys.Policy())
	r.Join(roomtest.Opens, 20)
	entries := r.Entries()
	for i, list := range [][][]byte{entries[:15], append(entries[:10:10], entries[11:]...)} {
		files, err := roomtest.Publish(keys, list)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			one = files
		} else {
			two = files
		}
	}
	return keys, one, two
}

// changing is a server whose room is replaced while it runs.
type changing struct {
	files atomic.Pointer[roomtest.Files]
}

func (c *changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := c.files.Load().Get(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(b)
}

// spoken collects the output of a watch, and calls do when the output contains a given word.
type spoken struct {
	bytes.Buffer
	word string
	do   func()
}

// Write implements [io.Writer].
func (t *spoken) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if t.do != nil && strings.Contains(t.String(), t.word) {
		t.do()
		t.do = nil
	}
	return n, err
}

// A room is forked while it is watched, and a third party checks the evidence file.
func TestWatchFork(t *testing.T) {
	keys, one, two := fork(t)
	room := &changing{}
	room.files.Store(&one)
	s := httptest.NewServer(room)
	defer s.Close()
	dir := t.TempDir()
	stdout := spoken{word: "read everything", do: func() { room.files.Store(&two) }}
	var stderr bytes.Buffer
	env := func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "state")}[name]
	}
	args := []string{"watch", s.URL, "--vkey", keys.VKey, "--every", "100ms", "--late", "876000h", "--evidence", dir}
	if code := run(t.Context(), args, &stdout, &stderr, env); code != exitFailed {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	for _, text := range []string{"watching queue.example.com/r/sale", "read everything: 15 entries, 14 arrivals",
		"✗ TWO HISTORIES"} {
		if !strings.Contains(stdout.String(), text) {
			t.Errorf("%q is not in %q", text, &stdout)
		}
	}
	name := filepath.Join(dir, "evidence-fork-15.json")
	if !strings.Contains(stderr.String(), name) {
		t.Errorf("%s", &stderr)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "state/proofline-verify/*.watched/000000000015.checkpoint"))
	if err != nil || len(kept) != 1 {
		t.Errorf("checkpoints kept for good: %v, %v", kept, err)
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"evidence", name, "--vkey", keys.VKey}, &stdout, &stderr,
		env); code != exitFailed || !strings.Contains(stdout.String(), "✗ PROOF: TWO HISTORIES") {
		t.Errorf("exit code %d\n%s", code, &stdout)
	}
	// The next watch finds the same violation, and does not write its file again.
	if code := run(t.Context(), append(args, "--once"), &stdout, &stderr, env); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, &stderr)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

// Temporary downtime of a server is no evidence, and the warning appears only once.
func TestWatchNetwork(t *testing.T) {
	_, one, _ := fork(t)
	room := &changing{}
	room.files.Store(&roomtest.Files{})
	s := httptest.NewServer(room)
	defer s.Close()
	env := func(string) string { return "" }
	args := []string{"watch", s.URL, "--no-keep", "--every", "100ms", "--late", "876000h", "--for"}
	var stdout, stderr spoken
	if code := run(t.Context(), append(args, "1s"), &stdout, &stderr, env); code != exitUnreadable ||
		stdout.Len() > 0 || strings.Count(stderr.String(), "warning") != 1 {
		t.Errorf("never read: exit code %d\n%s%s", code, &stdout, &stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr = spoken{word: "read everything", do: cancel}, spoken{word: "warning",
		do: func() { room.files.Store(&one) }}
	if code := run(ctx, append(args, "1h"), &stdout, &stderr, env); code != exitVerified ||
		!strings.Contains(stdout.String(), "nothing wrong up to 15 entries") {
		t.Errorf("read in the end: exit code %d\n%s%s", code, &stdout, &stderr)
	}
	stdout.Reset()
	if code := run(t.Context(), append(args, "3s"), &stdout, &stderr, env); code != exitVerified ||
		!strings.Contains(stdout.String(), "nothing wrong up to 15 entries") {
		t.Errorf("until its time is over: exit code %d\n%s%s", code, &stdout, &stderr)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	stdout = spoken{word: "read everything", do: cancel}
	if code := run(ctx, args[:len(args)-1], &stdout, &stderr, env); code != exitVerified ||
		!strings.Contains(stdout.String(), "nothing wrong") {
		t.Errorf("interrupted: exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

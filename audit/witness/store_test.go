package witness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var errCrash = errors.New("crash")

// After a crash before any step of writing, the state has the old checkpoint or the new one, and no
// cosignature that it does not know of has been sent.
func TestCrash(t *testing.T) {
	steps := []string{"write", "sync", "rename", "sync directory"}
	l := newLog(t, testOrigin, 1, 30, 30)
	forked := newLog(t, testOrigin, 1, 30, 5)
	for _, before := range []int{0, 10} {
		for i, at := range steps {
			h := newHouse(t, l)
			if before > 0 {
				h.cosigned(t, l.request(0, before))
			}
			seen := []string{}
			h.store.step = func(name string) error {
				seen = append(seen, name)
				if len(seen) > i { // and all later steps
					return errCrash
				}
				return nil
			}
			h.refused(t, l.request(before, 12), errCrash)
			if got := seen[len(seen)-1]; got != at {
				t.Errorf("crashed before %q, want %q", got, at)
			}
			if at != "sync directory" {
				h.store.step = func(string) error { return nil }
				h.conflicts(t, l.request(1, 20), uint64(before)) // also without a restart
			}

			h = h.again(t, l)
			latest, err := h.latest(testOrigin)
			want := before
			if at == "sync directory" { // a power cut may still undo that, and the client has got no response yet
				want = 12
			}
			if err != nil || latest.Size != uint64(want) {
				t.Errorf("crash before %q: size %d, %v", at, latest.Size, err)
			}
			if want > 0 {
				h.refused(t, Request{uint64(want), nil, forked.signed(want)}, ErrInconsistent)
			}
			h.cosigned(t, l.request(want, 20))
		}
	}
}

// TestOrderOfSteps: the file is synced before it gets its name, and the name before the cosignature is sent,
// so that a power cut cannot undo a cosignature.
func TestOrderOfSteps(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	h := newHouse(t, l)
	path := h.store.path(LogID(testOrigin))
	seen := []string{}
	h.store.step = func(name string) error {
		seen = append(seen, name)
		if _, err := os.Stat(path); (err == nil) != (name == "sync directory") {
			t.Errorf("before %q: %v", name, err)
		}
		return nil
	}
	h.cosigned(t, l.request(0, 10))
	if want := []string{"write", "sync", "rename", "sync directory"}; !slices.Equal(seen, want) {
		t.Errorf("steps %q, want %q", seen, want)
	}
}

// A failure to store evidence must not change the response.
func TestEvidenceFails(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	h := newHouse(t, l)
	h.cosigned(t, l.request(0, 10))
	h.store.step = func(string) error { return errCrash }
	h.refused(t, Request{10, nil, newLog(t, testOrigin, 1, 30, 5).signed(10)}, ErrInconsistent)
	if !bytes.Contains(h.logged.Bytes(), []byte("cannot store evidence")) {
		t.Errorf("logged %s", h.logged)
	}
}

func TestLock(t *testing.T) {
	h := newHouse(t)
	if _, err := OpenStore(h.dir); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	h.again(t)
}

func TestSwap(t *testing.T) {
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b := []byte("a"), []byte("b")
	for _, c := range []struct {
		old, now []byte
		want     error
	}{{a, b, ErrChanged}, {nil, a, nil}, {nil, b, ErrChanged}, {b, b, ErrChanged}, {a, b, nil}, {a, a, ErrChanged}} {
		if err := s.Swap("log", c.old, c.now); !errors.Is(err, c.want) {
			t.Errorf("from %q to %q: %v, want %v", c.old, c.now, err, c.want)
		}
	}
	if got, err := s.Latest("log"); err != nil || string(got) != "b" {
		t.Errorf("%q, %v", got, err)
	}
}

// A witness with damaged state must not cosign.
func TestDamagedState(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	other := newLog(t, "queue.example.com/r/other", 1, 30, 30)
	h := newHouse(t, l, other)
	h.cosigned(t, l.request(0, 10))
	h.cosigned(t, other.request(0, 10))
	path := h.store.path(LogID(testOrigin))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := h.store.Latest("queue.example.com/r/other")
	if err != nil {
		t.Fatal(err)
	}
	text := l.checkpoint(12).Marshal()
	namesake := testKey(t, testName, 8)
	for name, b := range map[string][]byte{
		"empty":             {},
		"truncated":         good[:len(good)-20],
		"size changed":      bytes.Replace(good, []byte("\n10\n"), []byte("\n11\n"), 1),
		"not cosigned":      l.signed(10),
		"of another log":    foreign,
		"of another key":    append(l.sign(text), namesake.cosign(text, testTime.Unix()).Line(testName)...),
		"not a checkpoint":  append(l.sign("text\n"), h.key.cosign("text\n", testTime.Unix()).Line(testName)...),
		"zeroes, as of XFS": make([]byte, len(good)),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			h.refused(t, l.request(10, 12), ErrState)
			h.refused(t, l.request(0, 12), ErrState)
		})
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	h.cosigned(t, l.request(10, 12))

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.AddCheckpoint(context.Background(), l.request(0, 12)); err == nil {
		t.Error("cosigned without being able to read the state")
	}
}

// A file that is replaced during a request must not be removed.
func TestChangedMeanwhile(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	h := newHouse(t, l)
	h.cosigned(t, l.request(0, 10))
	latest, err := h.latest(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	h.cosigned(t, l.request(10, 20))
	h.clock.add(time.Second)
	offered, err := h.open(l.signed(12))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := h.cosign(latest, offered); !errors.Is(err, ErrChanged) {
		t.Errorf("rolled back to %x, %v", c, err)
	}
}

func TestOpenStoreFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := OpenStore(file); err == nil {
		_ = s.Close()
		t.Error("opened a file")
	}
}

package watch

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/evidence"
)

const (
	origin                 = "queue.example.com/r/sale"
	late   fairness.Millis = 60_000
)

func newKeys(t testing.TB, operator string) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, operator)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// server is a room that a test changes between steps.
type server struct {
	t     *testing.T
	keys  *roomtest.Keys
	files roomtest.Files
	err   error
}

func (s *server) show(entries [][]byte) {
	s.t.Helper()
	files, err := roomtest.Publish(s.keys, entries)
	if err != nil {
		s.t.Fatal(err)
	}
	s.files = files
}

func (s *server) Checkpoint(ctx context.Context) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.files.Checkpoint(ctx)
}

func (s *server) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.files.Tile(ctx, t)
}

func at(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }

// step fails the test if there is an error.
func step(t *testing.T, w *Watcher, seconds int) *Step {
	t.Helper()
	s, err := w.Step(t.Context(), at(seconds))
	if err != nil {
		t.Fatalf("at %d: %v", seconds, err)
	}
	return s
}

// wantEvidence checks evidence as a third party would.
func wantEvidence(t *testing.T, s *Step, vkey string, kind evidence.Kind, proof bool) {
	t.Helper()
	if s.Evidence == nil {
		t.Fatalf("no evidence of %s; %v", kind, s.Events)
	}
	file, err := s.Evidence.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	e, err := evidence.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Check(vkey)
	if err != nil || f.Kind != kind || f.Proof != proof {
		t.Fatalf("%+v, %v\n%s", f, err, file)
	}
}

func wantQuiet(t *testing.T, s *Step) {
	t.Helper()
	if s.Evidence != nil {
		t.Fatalf("evidence of %s: %+v", s.Evidence.Kind, s.Evidence.Observed)
	}
}

func small(t *testing.T, keys *roomtest.Keys) [][]byte {
	t.Helper()
	r := roomtest.Small(keys, keys.Policy())
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Entries()
}

// An honest room is followed entry by entry, to its end.
func TestHonest(t *testing.T) {
	keys := newKeys(t, "honest")
	entries := small(t, keys)
	src := &server{t: t, keys: keys}
	w := New(src, Config{Late: late})
	var events []string
	for n := 1; n <= len(entries); n++ {
		src.show(entries[:n])
		s := step(t, w, 0)
		wantQuiet(t, s)
		if s.Ended != (n == len(entries)) {
			t.Errorf("%d entries: ended %t", n, s.Ended)
		}
		events = append(events, s.Events...)
		if again := step(t, w, 0); len(again.Events) > 0 {
			t.Errorf("reported twice: %v", again.Events)
		}
	}
	if w.VKey() != keys.VKey || w.Head().Size != uint64(len(entries)) || !bytes.Equal(w.Seen(), src.files[roomtest.CheckpointPath]) {
		t.Errorf("%s, %+v", w.VKey(), w.Head())
	}
	for _, line := range []string{
		"1 arrival", "window 0 is frozen with 8 arrivals", "window 0 is drawn", "1 place", "called up to place 4", "1 admission",
		"1 skipped (left)", "1 skipped (no-show)", "amended: freeze of claims: no calls, and called visitors cannot go in", "amended: outflow of 300 a minute, at most 50 at once (0 for no limit)", "the room has ended",
	} {
		if !slices.Contains(events, line) {
			t.Errorf("%q is not in %q", line, events)
		}
	}
}

// A room of several tiles, with a beacon and witnesses, in large steps.
func TestStrides(t *testing.T) {
	keys := newKeys(t, "honest")
	r := roomtest.Open(keys, keys.Witnessed())
	r.Join(at(1), 700)
	r.Settle(at(60))
	r.Join(at(70), 300)
	r.DrawBy(at(80)) // none is pending
	if r.Err() == nil {
		t.Fatal("a draw without a freeze")
	}
	entries := r.Entries()
	src := &server{t: t, keys: keys}
	w := New(src, Config{VKey: keys.VKey, Late: late})
	var last []string
	for _, n := range []int{100, 256, 300, 703, len(entries)} {
		src.show(entries[:n])
		s := step(t, w, 61)
		wantQuiet(t, s)
		last = append(last, s.Events...)
	}
	for _, line := range []string{"window 0 is frozen with 700 arrivals; its draw waits for round", "3 of 3 witnesses had signed", "300 arrivals, 700 places"} {
		if !strings.Contains(strings.Join(last, "\n"), line) {
			t.Errorf("%q is not in %q", line, last)
		}
	}
}

// Two histories, in every way that a server can show them.
func TestFork(t *testing.T) {
	keys := newKeys(t, "honest")
	r := roomtest.Open(keys, keys.Policy())
	r.Join(at(1), 600)
	one := r.Entries()
	end := fairness.AppendEntry(nil, &fairness.End{Time: at(2)})
	for name, c := range map[string]struct{ first, second [][]byte }{
		"same size":    {one[:300], append(slices.Clone(one[:299]), end)},
		"rewritten":    {one[:300], append(slices.Clone(one[:299]), one[300:]...)},
		"rolled back":  {one[:300], append(slices.Clone(one[:200]), end)},
		"dropped":      {one, append(slices.Clone(one[:400]), one[401:]...)},
		"first entry":  {one[:2], slices.Concat([][]byte{one[0][:len(one[0])-1]}, one[1:3])},
		"many entries": {one[:3], slices.Concat(one[:2], one[3:])},
	} {
		t.Run(name, func(t *testing.T) {
			src := &server{t: t, keys: keys}
			w := New(src, Config{VKey: keys.VKey, Late: late})
			src.show(c.first)
			wantQuiet(t, step(t, w, 2))
			all := src.files
			src.show(c.second)
			if len(c.second) < len(c.first) { // the tiles of the larger tree are still there
				for path, content := range all {
					if path != roomtest.CheckpointPath && (strings.HasPrefix(path, "tile/0/") || strings.HasPrefix(path, "tile/1/")) {
						src.files[path] = content
					}
				}
			}
			wantEvidence(t, step(t, w, 3), keys.VKey, evidence.Fork, true)
		})
	}
}

// The checkpoint of an earlier run counts like one of this run.
func TestKept(t *testing.T) {
	keys := newKeys(t, "honest")
	entries := small(t, keys)
	src := &server{t: t, keys: keys}
	src.show(append(slices.Clone(entries[:9]), []byte("end 1767225660000")))
	forked := src.files[roomtest.CheckpointPath]
	src.show(entries[:10])
	kept := src.files[roomtest.CheckpointPath]

	src.show(entries)
	wantQuiet(t, step(t, New(src, Config{VKey: keys.VKey, Kept: kept, Late: late}), 0))
	wantEvidence(t, step(t, New(src, Config{VKey: keys.VKey, Kept: forked, Late: late}), 0), keys.VKey, evidence.Fork, true)

	rival := newKeys(t, "rival")
	src.keys = rival
	src.show(small(t, rival))
	if _, err := New(src, Config{Kept: kept, Late: late}).Step(t.Context(), at(0)); !errors.Is(err, ErrKept) {
		t.Errorf("another key: %v", err)
	}
}

// An old copy means nothing for a while; if it stays, it is an observation.
func TestShrink(t *testing.T) {
	keys := newKeys(t, "honest")
	entries := small(t, keys)
	src := &server{t: t, keys: keys}
	w := New(src, Config{Late: late})
	src.show(entries[:30])
	wantQuiet(t, step(t, w, 0))
	for round := range 2 {
		src.show(entries[:20])
		for _, seconds := range []int{1, 30, 61} {
			if s, err := w.Step(t.Context(), at(1000*round+seconds)); !errors.Is(err, ErrMismatch) {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		src.show(entries[:31+round])
		wantQuiet(t, step(t, w, 1000*round+62))
	}
	src.show(entries[:20])
	if _, err := w.Step(t.Context(), at(2000)); !errors.Is(err, ErrMismatch) {
		t.Fatal(err)
	}
	wantEvidence(t, step(t, w, 2061), keys.VKey, evidence.Shrink, false)
}

// A failing network proves nothing, however long it fails.
func TestNetwork(t *testing.T) {
	keys := newKeys(t, "honest")
	src := &server{t: t, keys: keys, err: context.DeadlineExceeded}
	w := New(src, Config{Late: late})
	for seconds := range 300 {
		if s, err := w.Step(t.Context(), at(seconds)); err == nil || errors.Is(err, ErrMismatch) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	src.err = nil
	src.show(small(t, keys))
	wantQuiet(t, step(t, w, 301))
	for path := range src.files { // tiles are missing
		if strings.HasPrefix(path, "tile/") {
			delete(src.files, path)
		}
	}
	w = New(src, Config{VKey: keys.VKey, Late: late})
	for _, seconds := range []int{0, 100, 200} {
		if s, err := w.Step(t.Context(), at(seconds)); err == nil || errors.Is(err, ErrMismatch) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
}

// A checkpoint that is not signed, or entries that do not match it, are an observation if they stay.
func TestUnproven(t *testing.T) {
	keys := newKeys(t, "honest")
	entries := small(t, keys)
	for name, spoil := range map[string]func(f roomtest.Files, width string){
		"no checkpoint":      func(f roomtest.Files, _ string) { f[roomtest.CheckpointPath] = []byte("<!doctype html>") },
		"another's key":      func(f roomtest.Files, _ string) { f[roomtest.CheckpointPath] = rivalHead(t, entries) },
		"a changed entry":    func(f roomtest.Files, width string) { change(f, "tile/entries/000.p/"+width) },
		"a truncated bundle": func(f roomtest.Files, width string) { cut(f, "tile/entries/000.p/"+width) },
		"changed hashes":     func(f roomtest.Files, width string) { f["tile/0/000.p/"+width] = make([]byte, 960) },
		"truncated hashes":   func(f roomtest.Files, width string) { cut(f, "tile/0/000.p/"+width) },
	} {
		t.Run(name, func(t *testing.T) {
			src := &server{t: t, keys: keys}
			w := New(src, Config{VKey: keys.VKey, Late: late})
			src.show(entries[:20])
			wantQuiet(t, step(t, w, 0))
			src.show(entries[:30])
			spoil(src.files, "30")
			for _, seconds := range []int{1, 61} {
				if s, err := w.Step(t.Context(), at(seconds)); !errors.Is(err, ErrMismatch) {
					t.Fatalf("%+v, %v", s, err)
				}
			}
			src.show(entries[:31])
			wantQuiet(t, step(t, w, 62)) // it was a mistake
			src.show(entries[:32])
			spoil(src.files, "32")
			if s, err := w.Step(t.Context(), at(100)); !errors.Is(err, ErrMismatch) {
				t.Fatalf("%+v, %v", s, err)
			}
			wantEvidence(t, step(t, w, 161), keys.VKey, evidence.Unproven, false)
		})
	}
}

func rivalHead(t *testing.T, entries [][]byte) []byte {
	t.Helper()
	files, err := roomtest.Publish(newKeys(t, "rival"), entries)
	if err != nil {
		t.Fatal(err)
	}
	return files[roomtest.CheckpointPath]
}

// change flips a bit of the last entry.
func change(f roomtest.Files, path string) {
	f[path] = append(bytes.Clone(f[path][:len(f[path])-1]), f[path][len(f[path])-1]^1)
}

func cut(f roomtest.Files, path string) { f[path] = f[path][:len(f[path])-1] }

func TestLate(t *testing.T) {
	keys := newKeys(t, "honest")
	r := roomtest.Open(keys, keys.Witnessed())
	r.Join(at(1), 3)
	src := &server{t: t, keys: keys}
	w := New(src, Config{VKey: keys.VKey, Late: late})
	src.show(r.Entries())
	wantQuiet(t, step(t, w, 59))
	wantQuiet(t, step(t, w, 120))
	wantEvidence(t, step(t, w, 121), keys.VKey, evidence.LateFreeze, false)

	r.Freeze(at(121))
	src.show(r.Entries())
	wantQuiet(t, step(t, w, 122))
	due := int(r.State().Pending()[0].Due-at(0)) / 1000
	wantQuiet(t, step(t, w, due+60))
	wantEvidence(t, step(t, w, due+61), keys.VKey, evidence.MissingDraw, false)

	r.Draw(at(due + 61))
	src.show(r.Entries())
	wantQuiet(t, step(t, w, due+62))
	wantQuiet(t, step(t, w, due+100_000)) // no visitor has joined since

	r.Join(at(due+100), 1)
	r.End(at(due + 101))
	src.show(r.Entries())
	if s := step(t, w, due+200_000); s.Evidence != nil || !s.Ended {
		t.Errorf("after the end: %+v", s)
	}
}

// A signed entry that breaks a rule is found at the step that shows it.
func TestViolation(t *testing.T) {
	keys := newKeys(t, "honest")
	entries := small(t, keys)
	src := &server{t: t, keys: keys}
	for i := 1; i < len(entries)-1; i++ {
		w := New(src, Config{VKey: keys.VKey, Late: late})
		src.show(entries[:i])
		wantQuiet(t, step(t, w, 0))
		src.show(slices.Concat(entries[:i], [][]byte{[]byte("arrive 1 0 0 x general")}, entries[i:]))
		s := step(t, w, 0)
		wantEvidence(t, s, keys.VKey, evidence.Violation, false)
		if e := s.Evidence; e.Entry == nil || uint64(e.Entry.Index) != uint64(i) {
			t.Fatalf("entry %d: %+v", i, e.Entry)
		}
	}
}

// A room entry that names another key, or another room, does not belong to this room.
func TestIdentity(t *testing.T) {
	keys, rival := newKeys(t, "honest"), newKeys(t, "rival")
	policy := keys.Policy()
	policy.LogKey = rival.VKey
	src := &server{t: t, keys: keys}
	src.show([][]byte{fairness.AppendEntry(nil, &fairness.Room{Policy: policy})})
	wantEvidence(t, step(t, New(src, Config{VKey: keys.VKey, Late: late}), 0), keys.VKey, evidence.Violation, false)

	policy = keys.Policy()
	policy.Origin = "example.com"
	policy.LogKey = "example.com" + strings.TrimPrefix(keys.VKey, origin)
	src.show([][]byte{fairness.AppendEntry(nil, &fairness.Room{Policy: policy})})
	wantEvidence(t, step(t, New(src, Config{VKey: keys.VKey, Late: late}), 0), keys.VKey, evidence.Violation, false)
}

// A log that is not a room's is not evidence either.
func TestNoRoom(t *testing.T) {
	keys := newKeys(t, "honest")
	src := &server{t: t, keys: keys}
	for name, entries := range map[string][][]byte{"empty": nil, "no room": {[]byte("hello")}, "an arrival": small(t, keys)[2:4]} {
		src.show(entries)
		if s, err := New(src, Config{Late: late}).Step(t.Context(), at(0)); !errors.Is(err, ErrNoRoom) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

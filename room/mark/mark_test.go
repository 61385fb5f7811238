package mark

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
)

func at(size uint64) pglog.Mark {
	return pglog.Mark{Size: size, Root: audit.Hash(bytes.Repeat([]byte{byte(size)}, len(audit.Hash{})))}
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.lock.Close() })
	return s
}

func put(t testing.TB, s *Store, slug string, size uint64) {
	t.Helper()
	if err := s.Put(Log{slug, 7}, at(size)); err != nil {
		t.Fatal(err)
	}
}

// TestKept: the largest marks are kept, under the same name, if the process dies suddenly, and an incomplete
// line is ignored.
func TestKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "sale", 3)
	put(t, s, "other", 9)
	put(t, s, "sale", 5)
	put(t, s, "sale", 4) // not a step back
	_ = s.lock.Close()   // as at a kill: nothing is synced or closed
	file := filepath.Join(dir, "marks-1")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := AppendLine(nil, Log{"sale", 7}, at(6))
	wrong := bytes.Replace(line, []byte(" 6 "), []byte(" 8 "), 1)
	if err := os.WriteFile(file, append(append(text, wrong...), line[:len(line)-3]...), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if again.Node() != s.Node() {
		t.Error("the node has another name")
	}
	for slug, want := range map[string]uint64{"sale": 5, "other": 9, "unknown": 0} {
		if got := again.Get(Log{slug, 7}); got.Size != want || want > 0 && got != at(want) {
			t.Errorf("%s is marked %+v, want %d", slug, got, want)
		}
	}
	if again.Get(Log{"sale", 8}) != (pglog.Mark{}) || !again.Knows("sale") || again.Knows("unknown") {
		t.Error("marks of other logs")
	}
}

// TestNodes: nodes that share a directory have separate files and names, and each starts with the marks of
// all.
func TestNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := open(t, dir)
	put(t, one, "sale", 3)
	two := open(t, dir)
	if one.Node() == two.Node() || two.Get(Log{"sale", 7}) != at(3) {
		t.Errorf("the second node is %s, with the mark %+v", two.Node(), two.Get(Log{"sale", 7}))
	}
	put(t, two, "sale", 8)
	seen, err := Read(dir)
	if err != nil || seen.Get(Log{"sale", 7}) != at(8) {
		t.Errorf("read: %v, %+v", err, seen)
	}
}

// TestRewritten: a file that has grown is rewritten, with only the latest marks.
func TestRewritten(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	put(t, s, "sale", 1)
	s.written = mostBytes + 1
	put(t, s, "sale", 2)
	put(t, s, "sale", 3)
	text, err := os.ReadFile(s.path)
	if err != nil || bytes.Count(text, []byte("\n")) != 3 {
		t.Errorf("%v: %s", err, text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnwritable: a mark that could not be written counts while the process lives, and is written once the
// file is writable again.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_ = s.file.Close()
	if err := s.Put(Log{"sale", 7}, at(1)); err == nil || s.Err() == nil || s.Get(Log{"sale", 7}) != at(1) {
		t.Errorf("put: %v", err)
	}
	s.written = mostBytes + 1
	put(t, s, "sale", 2)
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

func BenchmarkPut(b *testing.B) {
	s := open(b, b.TempDir())
	for i := range b.N {
		put(b, s, "sale", uint64(i+1)) //nolint:gosec // positive
	}
}

// FuzzParseLine: a line that is accepted says the same when it is written again.
func FuzzParseLine(f *testing.F) {
	f.Add(AppendLine(nil, Log{"sale", 7}, at(5)))
	f.Add(AppendLine(nil, Log{"/rooms", 0xffffffff}, at(1)))
	f.Add([]byte("node x\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		log, m, ok := ParseLine(line)
		if !ok {
			return
		}
		if again, n, ok := ParseLine(AppendLine(nil, log, m)); !ok || again != log || n != m {
			t.Errorf("%q is %+v %+v, and then %+v %+v, %t", line, log, m, again, n, ok)
		}
	})
}

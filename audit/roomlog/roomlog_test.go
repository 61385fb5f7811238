package roomlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
)

// created is the time of the first entry.
const created = 1_767_225_600_000

// keyOf returns the key of a log with a fixed seed.
func keyOf(t testing.TB, origin string) string {
	t.Helper()
	_, vkey, err := audit.NewSigner(origin, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return vkey
}

// hash returns a hash for tests.
func hash(text string) audit.Hash { return audit.LeafHash([]byte(text)) }

// example returns the log in FORMAT.md.
func example(t testing.TB) (entries []string) {
	t.Helper()
	for _, e := range []roomlog.Entry{
		{Kind: roomlog.Begin, Time: created, VKey: keyOf(t, "example.com/rooms")},
		{Kind: roomlog.Rehearsal, Time: created, VKey: keyOf(t, "example.com/r/launch-rehearsal"), Root: hash("entry 0")},
		{Kind: roomlog.Room, Time: created + 3_600_000, VKey: keyOf(t, "example.com/r/launch"), Root: hash("entry 1")},
		{Kind: roomlog.End, Time: created + 7_200_000, Room: 1, Size: 13, Root: hash("entry 2")},
		{Kind: roomlog.Lost, Time: created + 7_300_000, Room: 2, Size: 4, Root: hash("entry 3")},
		{Kind: roomlog.Import, Time: created + 7_400_000, VKey: keyOf(t, "example.org/r/gala"), Root: hash("entry 4")},
		{Kind: roomlog.End, Time: created + 7_400_000, Room: 5, Size: 21, Root: hash("entry 5")},
	} {
		entries = append(entries, string(e.Append(nil)))
	}
	return entries
}

// TestFormat compares the example in FORMAT.md.
func TestFormat(t *testing.T) {
	doc, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, e := range example(t) {
		want.WriteString("    " + e + "\n")
	}
	if !strings.Contains(string(doc), "\n"+want.String()+"\n") {
		t.Errorf("FORMAT.md lacks\n%s", want.String())
	}
}

func TestList(t *testing.T) {
	l := &roomlog.List{}
	for _, e := range example(t) {
		if err := l.Add([]byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	rehearsal, launch := l.Of("example.com/r/launch-rehearsal"), l.Of("example.com/r/launch")
	if l.Size() != 7 || len(l.Rooms()) != 3 || l.VKey() != keyOf(t, "example.com/rooms") {
		t.Errorf("%+v", l)
	}
	if r := rehearsal; r.Index != 1 || !r.IsRehearsal || r.Ended != created+7_200_000 || r.IsLost || r.Size != 13 || r.First != hash("entry 0") || r.Root != hash("entry 2") {
		t.Errorf("%+v", r)
	}
	if r := launch; r.Index != 2 || r.IsRehearsal || r.Created != created+3_600_000 || !r.IsLost || r.VKey != keyOf(t, r.Origin) {
		t.Errorf("%+v", r)
	}
}

// TestImport: nothing comes between a room that was taken over and its end.
func TestImport(t *testing.T) {
	entries := example(t)
	l := &roomlog.List{}
	for _, e := range entries[:6] {
		if err := l.Add([]byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	root := hash("x").String()
	for _, text := range []string{
		fmt.Sprintf("room %d %s %s", int64(created+7_400_000), keyOf(t, "example.com/r/other"), root),
		fmt.Sprintf("end %d 2 13 %s", int64(created+7_400_000), root),
	} {
		if err := l.Add([]byte(text)); !errors.Is(err, roomlog.ErrEntry) || l.Size() != 6 {
			t.Errorf("%s: %v, %d entries", text, err, l.Size())
		}
	}
	if err := l.Add([]byte(entries[6])); err != nil {
		t.Fatal(err)
	}
	r := l.Of("example.org/r/gala")
	if r == nil || !r.IsImported || r.Index != 5 || r.First != hash("entry 4") || r.Size != 21 || r.Root != hash("entry 5") || r.IsLost {
		t.Errorf("%+v", r)
	}
}

// TestRefused: each of these entries is refused after the first three of the example.
func TestRefused(t *testing.T) {
	entries := example(t)
	root := hash("x").String()
	for name, text := range map[string]string{
		"a second beginning":               entries[0],
		"an address again":                 entries[2],
		"earlier":                          fmt.Sprintf("room %d %s %s", created, keyOf(t, "example.com/r/other"), root),
		"the end of nothing":               fmt.Sprintf("end %d 7 13 %s", int64(created+7_200_000), root),
		"the end of the log":               fmt.Sprintf("end %d 0 13 %s", int64(created+7_200_000), root),
		"an end of one entry":              fmt.Sprintf("end %d 1 1 %s", int64(created+7_200_000), root),
		"a bad key":                        fmt.Sprintf("room %d example.com/r/other+00000000+AAAA %s", int64(created+7_200_000), root),
		"a bad hash":                       fmt.Sprintf("end %d 1 13 %s", int64(created+7_200_000), root[:20]),
		"a zero in front":                  fmt.Sprintf("end %d 01 13 %s", int64(created+7_200_000), root),
		"a newline":                        entries[3] + "\n",
		"a field too many":                 entries[3] + " 1",
		"two spaces":                       strings.Replace(entries[3], " ", "  ", 1),
		"no time":                          "end",
		"an unknown kind":                  strings.Replace(entries[3], "end", "begin", 1),
		"a time out of bounds":             fmt.Sprintf("end %d 1 13 %s", int64(1)<<53, root),
		"no text":                          "",
		"a letter that looks like another": fmt.Sprintf("room %d %s %s", int64(created+7_200_000), keyOf(t, "example.com/r/l\u0430unch"), root),
		"a mark without a width":           fmt.Sprintf("room %d %s %s", int64(created+7_200_000), keyOf(t, "example.com/r/launch\u200b"), root),
		"a long name":                      fmt.Sprintf("room %d %s %s", int64(created+7_200_000), keyOf(t, "example.com/r/"+strings.Repeat("a", 242)), root),
	} {
		l := &roomlog.List{}
		for _, e := range entries[:3] {
			if err := l.Add([]byte(e)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Add([]byte(text)); !errors.Is(err, roomlog.ErrEntry) || l.Size() != 3 {
			t.Errorf("%s: %v, %d entries", name, err, l.Size())
		}
		if err := l.Add([]byte(entries[3])); err != nil {
			t.Errorf("%s: then the next one is refused: %v", name, err)
		}
		if err := l.Add([]byte(entries[3])); err == nil {
			t.Errorf("%s: a room ended twice", name)
		}
	}
	if err := new(roomlog.List).Add([]byte(entries[1])); !errors.Is(err, roomlog.ErrEntry) {
		t.Errorf("a log that begins with a room: %v", err)
	}
}

// published is a log in memory.
type published struct {
	signed []byte
	files  map[audit.Tile][]byte
}

func (p *published) tile(_ context.Context, t audit.Tile) ([]byte, error) {
	b, ok := p.files[t]
	if !ok {
		return nil, os.ErrNotExist
	}
	return b, nil
}

// publish signs and serves entries.
func publish(t testing.TB, entries []string) *published {
	t.Helper()
	signer, _, err := audit.NewSigner("example.com/rooms", bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	var tree audit.Tree
	p := &published{files: map[audit.Tile][]byte{}}
	levels := make([][]audit.Hash, 3)
	for _, e := range entries {
		levels[0] = append(levels[0], audit.LeafHash([]byte(e)))
		tree.Append(levels[0][len(levels[0])-1])
	}
	for level := range 2 {
		for i := 0; i+256 <= len(levels[level]); i += 256 {
			var sub audit.Tree
			for _, h := range levels[level][i : i+256] {
				sub.Append(h)
			}
			levels[level+1] = append(levels[level+1], sub.Root())
		}
	}
	for tile := range audit.Tiles(uint64(len(entries))) {
		var content []byte
		for i := range tile.Width {
			at := int(tile.Index)*256 + i
			if tile.Level < 0 {
				content, err = audit.AppendBundle(content, []byte(entries[at]))
			} else {
				content = append(content, levels[tile.Level][at][:]...)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p.files[tile] = content
	}
	head := audit.Checkpoint{Origin: "example.com/rooms", Size: tree.Size(), Root: tree.Root()}
	if p.signed, err = audit.SignCheckpoint(head, signer); err != nil {
		t.Fatal(err)
	}
	return p
}

// many returns a log of n rooms.
func many(t testing.TB, n int) []string {
	entries := example(t)[:1]
	for i := range n {
		e := roomlog.Entry{Kind: roomlog.Room, Time: created + int64(i), VKey: keyOf(t, fmt.Sprintf("example.com/r/sale-%d", i)), Root: hash(fmt.Sprint(i))}
		entries = append(entries, string(e.Append(nil)))
	}
	return entries
}

// TestRead reads logs of several tiles, and copies of which something was changed.
func TestRead(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 300, 600} {
		entries := many(t, n)
		p := publish(t, entries)
		l, err := roomlog.Read(t.Context(), p.tile, p.signed, "")
		if err != nil || len(l.Rooms()) != n || l.Head.Size != uint64(n)+1 {
			t.Errorf("%d rooms: %v", n, err)
		}
		for tile, content := range p.files {
			was := slices.Clone(content)
			p.files[tile][len(content)/2] ^= 1
			if _, err := roomlog.Read(t.Context(), p.tile, p.signed, keyOf(t, "example.com/rooms")); !errors.Is(err, roomlog.ErrWrong) {
				t.Errorf("%d rooms, %s changed: %v", n, tile.Path(), err)
			}
			p.files[tile] = was
		}
	}
	p := publish(t, many(t, 3))
	for name, vkey := range map[string]string{"another key": keyOf(t, "example.org/rooms"), "no key": "x"} {
		if _, err := roomlog.Read(t.Context(), p.tile, p.signed, vkey); !errors.Is(err, roomlog.ErrWrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := roomlog.Read(t.Context(), p.tile, []byte("checkpoint"), ""); !errors.Is(err, roomlog.ErrWrong) {
		t.Errorf("no checkpoint: %v", err)
	}
	none := func(context.Context, audit.Tile) ([]byte, error) { return nil, os.ErrDeadlineExceeded }
	if _, err := roomlog.Read(t.Context(), none, p.signed, ""); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, roomlog.ErrWrong) {
		t.Errorf("no network: %v", err)
	}
	for name, entries := range map[string][]string{"no entries": nil, "no beginning": many(t, 1)[1:]} {
		p := publish(t, entries)
		if _, err := roomlog.Read(t.Context(), p.tile, p.signed, ""); !errors.Is(err, roomlog.ErrNoLog) || errors.Is(err, roomlog.ErrWrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Signed by the log's author, but against the rules.
	for name, entries := range map[string][]string{
		"a room dropped":   append(many(t, 2)[:2], "end 1767225600009 2 4 "+hash("").String()),
		"in another order": {many(t, 3)[0], many(t, 3)[2], many(t, 3)[1]},
	} {
		p := publish(t, entries)
		if _, err := roomlog.Read(t.Context(), p.tile, p.signed, ""); !errors.Is(err, roomlog.ErrEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAlike(t *testing.T) {
	l := &roomlog.List{}
	names := []string{"sale", "sale-2", "sale2", "sale-b", "sale-new", "sales", "spring-sale", "2026", "tour-2026-b", "tour-2026", "tour"}
	if err := l.Add([]byte(example(t)[0])); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		e := roomlog.Entry{Kind: roomlog.Room, Time: created, VKey: keyOf(t, "example.com/r/"+name)}
		if err := l.Add(e.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"sale": "sale-2 sale2 sale-b sale-new", "sale-b": "sale sale-2 sale2 sale-new",
		"sales": "", "2026": "", "tour-2026": "tour-2026-b tour", "spring-sale": "", "spring-sale-3": "spring-sale"} {
		var got []string
		for _, r := range l.Alike("example.com/r/" + name) {
			got = append(got, strings.TrimPrefix(r.Origin, "example.com/r/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}

// FuzzParse: what is read is written in the same way.
func FuzzParse(f *testing.F) {
	for _, e := range example(f) {
		f.Add([]byte(e))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := roomlog.Parse(text)
		if err == nil && !bytes.Equal(e.Append(nil), text) {
			t.Errorf("%q is written as %q", text, e.Append(nil))
		}
		_ = new(roomlog.List).Add(text)
	})
}

// TestTooLarge: a log whose claimed size no reader can keep is not read.
func TestTooLarge(t *testing.T) {
	signer, _, err := audit.NewSigner("example.com/rooms", bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: "example.com/rooms", Size: roomlog.MaxEntries + 1}, signer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = roomlog.Read(t.Context(), func(context.Context, audit.Tile) ([]byte, error) {
		t.Fatal("it is read")
		return nil, nil
	}, signed, "")
	if !errors.Is(err, roomlog.ErrTooLarge) {
		t.Error(err)
	}
}

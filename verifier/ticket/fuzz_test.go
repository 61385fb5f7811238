package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// TestMangled changes each byte of a valid file, and removes and doubles some: the file is refused, or no
// longer has four good lines. With a beacon every check takes milliseconds, so only some bytes are tried.
func TestMangled(t *testing.T) {
	mangle(t, newStage(t).bundle(), 1, 1000)
	keys := newKeys(t, "honest")
	mangle(t, newPublic(t, keys, keys.Witnesses...).bundle(), 13, 100)
}

// mangle changes one byte in every n, and expects a number of files to be readable.
func mangle(t *testing.T, b *Bundle, each, least int) {
	t.Helper()
	good, want := b.file(t), reasons(Check(b, Trust{}))
	read := 0
	for i := 0; i < len(good); i += each {
		flipped := bytes.Clone(good)
		flipped[i] ^= 1
		files := [][]byte{flipped}
		if i%7 == 0 {
			files = append(files, append(bytes.Clone(good[:i]), good[i+1:]...), append(append(bytes.Clone(good[:i]), good[i]), good[i:]...))
		}
		for _, file := range files {
			b, err := Parse(file)
			if bytes.Equal(file, good) || err != nil {
				continue // unchanged, or refused
			}
			read++
			if got := reasons(Check(b, Trust{})); got == want {
				t.Fatalf("byte %d: four good lines in %s", i, file)
			}
		}
	}
	if read < least {
		t.Errorf("only %d changed files could be read", read)
	}
}

// TestLeftOut removes each part of a valid file.
func TestLeftOut(t *testing.T) {
	s := newStage(t)
	for name, c := range map[string]struct {
		leave func(*Bundle)
		want  [4]Reason
	}{
		"room":   {func(b *Bundle) { b.Room = nil }, [4]Reason{NoRoom, Unchecked, Unchecked, Unchecked}},
		"arrive": {func(b *Bundle) { b.Arrive = nil }, [4]Reason{NoArrival, Unchecked, Unchecked, Unchecked}},
		"growth": {func(b *Bundle) { b.Growth = nil }, [4]Reason{OtherHistory, Closed, NoBeacon, Exact}},
		"freeze": {func(b *Bundle) { b.Freeze = nil }, [4]Reason{Included, Pending, Unchecked, Unchecked}},
		"frozen": {func(b *Bundle) { b.Frozen = nil }, [4]Reason{Included, OtherRoot, Unchecked, Unchecked}},
		"draw":   {func(b *Bundle) { b.Draw = nil }, [4]Reason{Included, Closed, Pending, Unchecked}},
		"first":  {func(b *Bundle) { b.FirstPlace = nil }, [4]Reason{Included, Closed, NoBeacon, Pending}},
		"place":  {func(b *Bundle) { b.Place = nil }, [4]Reason{Included, Closed, NoBeacon, Pending}},
	} {
		if got := reasons(Check(s.with(c.leave), Trust{})); got != c.want {
			t.Errorf("without %s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTrust compares a given key with the one in the file.
func TestTrust(t *testing.T) {
	s := newStage(t)
	rival := newKeys(t, "rival")
	without := s.with(func(b *Bundle) { b.VKey = nil })
	theirs := s.with(func(b *Bundle) { b.VKey = text(rival.VKey) })
	for name, c := range map[string]struct {
		bundle *Bundle
		vkey   string
		want   Reason
		from   string
	}{
		"the same key":                   {s.bundle(), s.keys.VKey, Included, KeyGiven},
		"none in the file":               {without, s.keys.VKey, Included, KeyGiven},
		"none given":                     {s.bundle(), "", Included, KeyVisitor},
		"none at all":                    {without, "", Included, KeyLog},
		"another key":                    {s.bundle(), rival.VKey, WrongKey, KeyGiven},
		"another key, none in the file":  {without, rival.VKey, NoCheckpoint, KeyGiven},
		"the right key, another in file": {theirs, s.keys.VKey, WrongKey, KeyGiven},
		"another in the file, not given": {theirs, "", NoCheckpoint, KeyVisitor},
		"no key":                         {without, "x", WrongKey, KeyGiven},
	} {
		line := Check(c.bundle, Trust{VKey: c.vkey})[0]
		if line.Reason != c.want || line.Facts["key_from"] != c.from {
			t.Errorf("%s: %+v", name, line)
		}
	}
}

// TestRuns proves every run of logs of several sizes, and refuses every other beginning, other length and
// changed proof.
func TestRuns(t *testing.T) {
	keys := newKeys(t, "runs")
	for size := uint64(1); size <= 17; size++ {
		var entries [][]byte
		for i := range size {
			entries = append(entries, fmt.Appendf(nil, "entry %d", i))
		}
		log := newTree(keys, entries)
		head := audit.Checkpoint{Origin: origin, Size: size, Root: log.node(0, size)}
		for from := range size {
			for to := from + 1; to <= size; to++ {
				run := log.run(from, to)
				if !run.verify(head) {
					t.Fatalf("[%d, %d) of %d is refused", from, to, size)
				}
				for i := range run.Proof {
					run.Proof[i][7] ^= 1
					if run.verify(head) {
						t.Fatalf("[%d, %d) of %d with hash %d changed", from, to, size, i)
					}
					run.Proof[i][7] ^= 1
				}
				for _, wrong := range []*Run{
					{Number(from + 1), run.Entries, run.Proof},
					{Number(from), run.Entries[1:], run.Proof},
					{Number(from), append(List[Bytes]{}, append(run.Entries, run.Entries[0])...), run.Proof},
					{Number(from), run.Entries, append(Hashes{}, append(run.Proof, audit.Hash{})...)},
					{1<<63 - 1, run.Entries, run.Proof},
				} {
					if wrong.verify(head) {
						t.Fatalf("[%d, %d) of %d passes as %d entries from %d", from, to, size, len(wrong.Entries), wrong.First)
					}
				}
			}
		}
	}
}

// FuzzCheck parses and checks arbitrary files. The fuzzer does not have the operator's key, so with that key
// no ticket gets four good lines for a place that is not its own.
func FuzzCheck(f *testing.F) {
	for _, v := range readVectors(f).Files {
		f.Add([]byte(v.File))
	}
	keys := newKeys(f, "honest")
	places := map[string]bool{}
	for _, v := range readVectors(f).Files {
		if v.Lines[3].Reason == Exact {
			places[placeOf(v.Lines, ticketIn(f, v.File))] = true
		}
	}
	for _, r := range []*roomtest.Room{scripted(f, keys), roomtest.Small(keys, keys.Policy())} {
		for _, e := range newTree(keys, r.Entries()).parsed(f) {
			if a, ok := e.(*fairness.Assign); ok {
				places[fmt.Sprintf("%s %d", a.Ticket, a.Position)] = true
			}
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := Parse(file)
		if err != nil {
			if !errors.Is(err, ErrBundle) {
				t.Fatal(err)
			}
			return
		}
		if again, err := b.Marshal(); err != nil || !bytes.Equal(again, file) {
			t.Fatalf("written again: %v, %s", err, again)
		}
		for _, vkey := range []string{"", keys.VKey} {
			lines := Check(b, Trust{VKey: vkey})
			for _, line := range lines {
				if Verdicts[line.ID][line.Reason] == "" {
					t.Fatalf("%s %s is in no table", line.ID, line.Reason)
				}
			}
			place := placeOf(lines, string(b.Ticket))
			isGood := lines[0].Reason == Included && lines[1].Reason == Closed && lines[3].Reason == Exact
			if vkey != "" && isGood && !places[place] {
				t.Fatalf("four good lines for place %s", place)
			}
		}
	})
}

func placeOf(lines [4]Line, ticket string) string { return ticket + " " + lines[3].Facts["position"] }

func ticketIn(t testing.TB, file string) string {
	t.Helper()
	b, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b.Ticket)
}

package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/ticket"
)

const origin = "queue.example.com/r/sale"

func newKeys(t testing.TB, operator string) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, operator)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func publish(t testing.TB, keys *roomtest.Keys, entries [][]byte) roomtest.Files {
	t.Helper()
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// history returns a room in which numbered tickets arrive, except those that are left out.
func history(keys *roomtest.Keys, n int, without ...int) [][]byte {
	entries := [][]byte{fairness.AppendEntry(nil, &fairness.Room{Policy: keys.Policy()})}
	for i := range n {
		if !slices.Contains(without, i) {
			e := fairness.Arrive{Time: roomtest.Opens, Seq: uint32(len(entries) - 1), Ticket: roomtest.Ticket(origin, uint64(i)), Lane: fairness.General}
			entries = append(entries, fairness.AppendEntry(nil, &e))
		}
	}
	return entries
}

// Two histories with the same beginning contradict each other exactly if both are longer than it.
func TestContradict(t *testing.T) {
	keys := newKeys(t, "honest")
	const prefix = 7
	one, two := history(keys, 14), history(keys, 15, prefix-1)
	for a := 1; a <= len(one); a++ {
		first := publish(t, keys, one[:a])
		for b := 1; b <= len(two); b++ {
			second := publish(t, keys, two[:b])
			larger := first
			if b > a {
				larger = second
			}
			e, err := Contradict(t.Context(), larger.Tile, keys.VKey, first[roomtest.CheckpointPath], second[roomtest.CheckpointPath])
			if err != nil {
				t.Fatalf("%d, %d: %v", a, b, err)
			}
			if want := a > prefix && b > prefix; (e != nil) != want {
				t.Fatalf("%d, %d: fork %t, want %t", a, b, e != nil, want)
			}
			if e != nil {
				wantProof(t, again(t, e), keys.VKey, Fork)
			}
		}
	}
}

// again encodes and parses evidence.
func again(t testing.TB, e *Evidence) *Evidence {
	t.Helper()
	file, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Parse(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	return read
}

func wantProof(t testing.TB, e *Evidence, vkey string, kind Kind) {
	t.Helper()
	f, err := e.Check(vkey)
	if err != nil || !f.Proof || f.Kind != kind || f.Origin != origin || len(f.Shown) < 3 {
		t.Errorf("%+v, %v", f, err)
	}
}

// fork returns evidence of two histories of different sizes over several tiles.
func fork(t testing.TB, keys *roomtest.Keys) *Evidence {
	t.Helper()
	first, second := publish(t, keys, history(keys, 300)), publish(t, keys, history(keys, 700, 250))
	e, err := Contradict(t.Context(), second.Tile, keys.VKey, first[roomtest.CheckpointPath], second[roomtest.CheckpointPath])
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	return e
}

// dropped returns evidence of an arrival that was dropped.
func dropped(t testing.TB, keys *roomtest.Keys) *Evidence {
	t.Helper()
	entries := history(keys, 300)
	first, second := publish(t, keys, entries), publish(t, keys, history(keys, 700, 250))
	head, err := verifier.Unverified(first[roomtest.CheckpointPath])
	if err != nil {
		t.Fatal(err)
	}
	path, err := audit.ProveInclusion(t.Context(), first.Tile, head, 251)
	if err != nil {
		t.Fatal(err)
	}
	entry := &ticket.Proven{Index: 251, Entry: entries[251], Path: path}
	e, err := Dropped(t.Context(), second.Tile, keys.VKey, first[roomtest.CheckpointPath], entry, second[roomtest.CheckpointPath])
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	return e
}

func TestDropped(t *testing.T) {
	keys := newKeys(t, "honest")
	e := again(t, dropped(t, keys))
	wantProof(t, e, keys.VKey, Receipt)
	f, err := e.Check("")
	if err != nil || !strings.Contains(fmt.Sprint(f.Shown), roomtest.Ticket(origin, 250).String()) || len(f.NotShown) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	whole := publish(t, keys, history(keys, 700))
	if e, err := Dropped(t.Context(), whole.Tile, keys.VKey, e.First, e.Entry, whole[roomtest.CheckpointPath]); e != nil || err != nil {
		t.Errorf("the file exists: %v, %v", e, err)
	}
	small := publish(t, keys, history(keys, 20))
	if e, err := Dropped(t.Context(), small.Tile, keys.VKey, e.First, e.Entry, small[roomtest.CheckpointPath]); e != nil || err != nil {
		t.Errorf("too small to tell: %v, %v", e, err)
	}
}

// Any changed byte invalidates a proof.
func TestMangled(t *testing.T) {
	keys := newKeys(t, "honest")
	for _, e := range []*Evidence{fork(t, keys), dropped(t, keys)} {
		file, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for i := range file {
			changed := bytes.Clone(file)
			changed[i] ^= 1
			if e, err := Parse(changed); err == nil {
				if f, err := e.Check(keys.VKey); err == nil {
					t.Fatalf("%s: byte %d changed: %+v", e.Kind, i, f)
				}
			}
		}
	}
}

// Without the room's key, evidence against it cannot be forged.
func TestForged(t *testing.T) {
	keys, rival := newKeys(t, "honest"), newKeys(t, "rival")
	e := fork(t, rival)
	if _, err := e.Check(keys.VKey); !errors.Is(err, ErrKey) {
		t.Errorf("another key: %v", err)
	}
	e.VKey = ticket.Text(keys.VKey)
	if _, err := e.Check(keys.VKey); !errors.Is(err, ErrUnfounded) {
		t.Errorf("signed by another: %v", err)
	}

	// If the smaller tree is a prefix of the larger one, no root can prove otherwise.
	entries := history(keys, 300)
	small, large := publish(t, keys, entries[:100]), publish(t, keys, entries)
	heads := [2]audit.Checkpoint{}
	for i, f := range []roomtest.Files{small, large} {
		var err error
		if heads[i], err = verifier.Unverified(f[roomtest.CheckpointPath]); err != nil {
			t.Fatal(err)
		}
	}
	growth, err := audit.ProveConsistency(t.Context(), large.Tile, heads[0], heads[1])
	if err != nil {
		t.Fatal(err)
	}
	honest := Evidence{Kind: Fork, VKey: ticket.Text(keys.VKey), First: small[roomtest.CheckpointPath], Second: large[roomtest.CheckpointPath]}
	for name, root := range map[string]*audit.Hash{"none": nil, "its own": &heads[0].Root, "the other's": &heads[1].Root, "made up": {1}} {
		for _, proof := range [][]audit.Hash{growth, nil, {heads[1].Root}} {
			e := honest
			e.Root, e.Growth = root, proof
			if f, err := e.Check(keys.VKey); !errors.Is(err, ErrUnfounded) {
				t.Errorf("root %s: %+v, %v", name, f, err)
			}
		}
	}
	same := honest
	same.Second = same.First
	if _, err := same.Check(""); !errors.Is(err, ErrUnfounded) {
		t.Errorf("twice the same: %v", err)
	}
}

// Members of one kind are refused in another.
func TestKinds(t *testing.T) {
	keys := newKeys(t, "honest")
	f, d := fork(t, keys), dropped(t, keys)
	window := ticket.Number(0)
	observed := &Observation{Time: 5, Since: 1, Window: &window, Detail: "seen"}
	arrival := &Evidence{VKey: f.VKey, First: d.First, Entry: d.Entry, Observed: observed}
	for _, kind := range []Kind{LateFreeze, Violation} {
		e := *arrival
		e.Kind = kind
		found, err := again(t, &e).Check(keys.VKey)
		if err != nil || found.Proof || len(found.NotShown) == 0 {
			t.Errorf("%s: %+v, %v", kind, found, err)
		}
	}
	bad := map[string]Evidence{
		"unknown":                   {Kind: "rumour", VKey: f.VKey, First: f.First},
		"a draw and no freeze":      {Kind: MissingDraw, VKey: f.VKey, First: d.First, Entry: d.Entry, Observed: observed},
		"late, without observation": {Kind: LateFreeze, VKey: f.VKey, First: d.First, Entry: d.Entry},
		"not smaller":               {Kind: Shrink, VKey: f.VKey, First: f.First, Second: f.Second, Observed: observed},
		"a part of another kind":    {Kind: Shrink, VKey: f.VKey, First: f.Second, Second: f.First, Observed: observed, Entry: d.Entry},
		"not signed":                {Kind: Shrink, VKey: f.VKey, First: f.Second, Second: []byte("x"), Observed: observed},
		"nothing seen":              {Kind: Unproven, VKey: f.VKey, First: f.First, Observed: observed},
		"a receipt of another tree": {Kind: Receipt, VKey: f.VKey, First: d.Second, Second: d.First, Entry: d.Entry, Instead: d.Instead},
		"the same entry":            {Kind: Receipt, VKey: f.VKey, First: d.First, Second: d.First, Entry: d.Entry, Instead: d.Entry},
		"nothing instead":           {Kind: Receipt, VKey: f.VKey, First: d.First, Second: d.Second, Entry: d.Entry},
	}
	for name, e := range bad {
		if found, err := e.Check(keys.VKey); !errors.Is(err, ErrUnfounded) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	good := Evidence{Kind: Shrink, VKey: f.VKey, First: f.Second, Second: f.First, Observed: observed}
	if found, err := good.Check(keys.VKey); err != nil || found.Proof {
		t.Errorf("%+v, %v", found, err)
	}
	good = Evidence{Kind: Unproven, VKey: f.VKey, First: f.First, Second: []byte("<!doctype html>"), Observed: observed}
	if found, err := good.Check(keys.VKey); err != nil || found.Proof {
		t.Errorf("%+v, %v", found, err)
	}
}

// Wrong tiles are an error, never evidence.
func TestWrongTiles(t *testing.T) {
	keys := newKeys(t, "honest")
	entries := history(keys, 700)
	small, large := publish(t, keys, entries[:300]), publish(t, keys, entries)
	for path, content := range large {
		lying := large.Clone()
		lying[path] = append([]byte{content[0] ^ 1}, content[1:]...)
		e, err := Contradict(t.Context(), lying.Tile, keys.VKey, small[roomtest.CheckpointPath], large[roomtest.CheckpointPath])
		if e != nil || err != nil && !errors.Is(err, audit.ErrTile) {
			t.Errorf("%s: %v, %v", path, e, err)
		}
	}
	failing := func(context.Context, audit.Tile) ([]byte, error) { return nil, context.DeadlineExceeded }
	if e, err := Contradict(t.Context(), failing, keys.VKey, small[roomtest.CheckpointPath], large[roomtest.CheckpointPath]); e != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", e, err)
	}
}

func TestParseRefuses(t *testing.T) {
	keys := newKeys(t, "honest")
	file, err := fork(t, keys).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"nothing":         "",
		"another version": strings.Replace(string(file), `"version": 1`, `"version": 2`, 1),
		"an addition":     strings.Replace(string(file), `"kind"`, `"by": "me", "kind"`, 1),
		"other case":      strings.Replace(string(file), `"kind"`, `"Kind"`, 1),
		"twice":           strings.Replace(string(file), ` "kind": "fork",`+"\n", ` "kind": "fork",`+"\n"+` "kind": "fork",`+"\n", 1),
		"an end":          string(file) + "{}",
		"other spaces":    strings.ReplaceAll(string(file), "\n ", "\n  "),
		"too long":        string(file) + strings.Repeat(" ", MaxSize),
	} {
		if _, err := Parse([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	keys := newKeys(f, "honest")
	for _, e := range []*Evidence{fork(f, keys), dropped(f, keys), {Kind: Unproven, VKey: "x", First: []byte{0xff}, Second: []byte("y"), Observed: &Observation{Detail: "z"}}} {
		file, err := e.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		e, err := Parse(file)
		if err != nil {
			return
		}
		again, err := e.Marshal()
		if err != nil || !bytes.Equal(again, file) {
			t.Errorf("%v: written again:\n%s", err, again)
		}
		if found, err := e.Check(keys.VKey); err == nil && string(e.VKey) != keys.VKey {
			t.Errorf("evidence against another key: %+v", found)
		}
	})
}

package verifier_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// witnessed is a room of two windows with a beacon and witnesses, and the witnesses that cosign the second
// freeze; all of them cosign the first.
func witnessed(t *testing.T, second func(*roomtest.Keys) []roomtest.Witness) (*roomtest.Keys, *roomtest.Room) {
	t.Helper()
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Witnessed())
	room.Join(roomtest.Opens, 5)
	room.Freeze(roomtest.Opens + 60_000)
	room.Join(roomtest.Opens+61_000, 2) // between the freeze and its draw
	room.Draw(roomtest.Opens + 62_000)
	room.Assign(-1)
	room.Freeze(roomtest.Opens + 70_000)
	room.DrawBy(roomtest.Opens+70_000, second(keys)...)
	room.Assign(-1)
	room.End(roomtest.Opens + 100_000)
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	return keys, room
}

func all(k *roomtest.Keys) []roomtest.Witness { return k.Witnesses }

func TestLevels(t *testing.T) {
	vkeys := func(k *roomtest.Keys, n int) (list []string) {
		for _, w := range k.Witnesses[:n] {
			list = append(list, w.String())
		}
		return list
	}
	stranger := newKeys(t, origin, "stranger")
	for name, c := range map[string]struct {
		second     func(*roomtest.Keys) []roomtest.Witness
		trust      func(*roomtest.Keys) verifier.Trust
		level      int
		witnessed  uint64
		vouched    uint64
		notProven  string
		yetNothing string
	}{
		"all that there can be": {
			all, func(k *roomtest.Keys) verifier.Trust {
				return verifier.Trust{Beacons: [][32]byte{k.Chain.Chain().Hash()}, Witnesses: vkeys(k, 3)}
			}, verifier.LevelWitnessed, 2, 2, "only one ticket", "draws were unpredictable",
		},
		"just the quorum": {
			all, func(k *roomtest.Keys) verifier.Trust {
				return verifier.Trust{Beacons: [][32]byte{k.Chain.Chain().Hash()}, Witnesses: vkeys(k, 2)}
			}, verifier.LevelWitnessed, 2, 2, "same history, up to its end", "came before its beacon round",
		},
		"too few are known": {
			all, func(k *roomtest.Keys) verifier.Trust {
				return verifier.Trust{Beacons: [][32]byte{k.Chain.Chain().Hash()}, Witnesses: append(vkeys(k, 1), vkeys(stranger, 3)...)}
			}, verifier.LevelUnpredictable, 2, 0, "for 2 of 2 draws too few witnesses", "draws were unpredictable",
		},
		"one of two cosigned the second": {
			func(k *roomtest.Keys) []roomtest.Witness { return k.Witnesses[1:2] }, func(k *roomtest.Keys) verifier.Trust {
				return verifier.Trust{Beacons: [][32]byte{k.Chain.Chain().Hash()}, Witnesses: vkeys(k, 3)}
			}, verifier.LevelUnpredictable, 1, 1, "for 1 of 2 draws too few witnesses", "draws were unpredictable",
		},
		"a beacon that is not known": {
			all, func(k *roomtest.Keys) verifier.Trust { return verifier.Trust{Witnesses: vkeys(k, 3)} },
			verifier.LevelConsistent, 2, 2, "it is not one that you trust", "without a beacon",
		},
		"another beacon": {
			all, func(k *roomtest.Keys) verifier.Trust {
				return verifier.Trust{Beacons: [][32]byte{stranger.Chain.Chain().Hash()}, Witnesses: vkeys(k, 3)}
			}, verifier.LevelConsistent, 2, 2, "it is not one that you trust", "without a beacon",
		},
	} {
		t.Run(name, func(t *testing.T) {
			keys, room := witnessed(t, c.second)
			trust := c.trust(keys)
			trust.VKey = keys.VKey
			r := auditOf(t, publish(t, keys, room.Entries()), trust)
			hash := keys.Chain.Chain().Hash()
			if !r.OK || r.Level != c.level || r.Draws != 2 || r.Witnessed != c.witnessed || r.Vouched != c.vouched || r.Beacon != hex.EncodeToString(hash[:]) {
				t.Errorf("%+v", r)
			}
			text := strings.Join(r.NotProven, "\n")
			if !strings.Contains(text, c.notProven) || strings.Contains(text, c.yetNothing) {
				t.Errorf("not proven:\n%s", text)
			}
		})
	}
}

// TestNoDraws: a room without draws is not at level 2.
func TestNoDraws(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Witnessed())
	room.Join(roomtest.Opens, 1)
	r := auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{VKey: keys.VKey, Beacons: [][32]byte{keys.Chain.Chain().Hash()}})
	if !r.OK || r.Level != verifier.LevelConsistent {
		t.Errorf("%+v", r)
	}
}

// TestWitnessedTampered changes entries that only rooms with a beacon and witnesses have.
func TestWitnessedTampered(t *testing.T) {
	keys, room := witnessed(t, all)
	const freeze, draw = fairness.KindFreeze, fairness.KindDraw
	tr := transcript(room.Entries())
	f, d, e := tr.index(freeze, 0), tr.index(draw, 0), tr.index(draw, 1)
	var sealed audit.Tree
	for _, text := range tr[:f+1] {
		sealed.Append(audit.LeafHash(text))
	}
	text := audit.Checkpoint{Origin: keys.Origin, Size: sealed.Size(), Root: sealed.Root()}.Marshal()
	endless := keys.Witnesses[0].Cosign(keys.Witnesses[0].Private, text, 1<<62) // multiplied by 1000, this is 0 in 64 bits
	for name, c := range map[string]struct {
		entries transcript
		at      int
		check   string
	}{
		"a round chosen":                    {tr.add(f, 6, 1), f, "freeze"},
		"an earlier round":                  {tr.add(f, 6, -1), f, "freeze"},
		"no round":                          {tr.set(f, 6, "0"), f, "freeze"},
		"a freeze said to be earlier":       {tr.add(f, 1, -1), f, "freeze"},
		"a freeze said to be later":         {tr.add(f, 1, 3000), f, "freeze"},
		"a signature of another round":      {tr.set(d, 3, tr.field(e, 3)), d, "beacon"},
		"no signature":                      {tr.set(d, 3, "-"), d, "beacon"},
		"a forged signature":                {tr.set(d, 3, "8"+tr.field(d, 3)[1:95]+"0"), d, "beacon"},
		"a draw before its round":           {tr.add(d, 1, -1), d, "beacon"},
		"a cosignature of another freeze":   {tr.set(d, 5, tr.field(e, 5)), d, "witness"},
		"a cosignature twice":               {tr.set(d, 6, tr.field(d, 5)), d, "witness"},
		"cosignatures in another order":     {tr.set(d, 5, tr.field(d, 6)).set(d, 6, tr.field(d, 5)), d, "witness"},
		"a cosignature said to be earlier":  {tr.set(d, 5, tr.field(d, 5)[:20]+"0"+tr.field(d, 5)[21:]), d, "witness"},
		"a cosignature after all time":      {tr.set(d, 5, hex.EncodeToString(endless[:])), d, "witness"},
		"a forged cosignature":              {tr.set(d, 7, flipped(tr.field(d, 7))), d, "witness"},
		"a seed of the proof without round": {tr.set(d, 4, tr.field(e, 4)), d, "seed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := auditOf(t, publish(t, keys, c.entries), verifier.Trust{VKey: keys.VKey})
			wantFailed(t, r, c.check)
			if r.Level != verifier.LevelNone || !strings.HasPrefix(check(t, r, c.check).Detail, "entry ") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// flipped changes the last digit of a text in hexadecimal.
func flipped(text string) string {
	last := len(text) - 1
	if text[last] == '0' {
		return text[:last] + "1"
	}
	return text[:last] + "0"
}

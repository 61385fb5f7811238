package verifier_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// TestGroups tampers with proofs, beacon signatures and credentials throughout a transcript of several groups of
// bundles. The audit must fail at that entry, with the rule's message, wherever the entry is in its group.
func TestGroups(t *testing.T) {
	t.Parallel()
	const windows, each = 90, 100
	keys := newKeys(t, origin, "honest")
	files := roomtest.Files{}
	size := roomtest.Size{Visitors: windows * each, Windows: windows, Issuer: issuertest.Signed("club", 0)}
	if err := roomtest.Generate(keys, files, size); err != nil {
		t.Fatal(err)
	}
	entries := entriesOf(t, files)
	trust := verifier.Trust{Beacons: [][32]byte{keys.Chain.Chain().Hash()}}
	if r := auditOf(t, publish(t, keys, entries), trust); !r.OK || r.Level < verifier.LevelUnpredictable {
		t.Fatalf("%+v", r)
	} else if len(r.Methods) != 1 || r.Methods[0].Shown != windows*each {
		t.Fatalf("methods: %+v", r.Methods)
	}
	for _, n := range []int{0, 1, windows / 2, windows - 2, windows - 1} {
		for kind, with := range map[fairness.Kind]struct {
			rule  fairness.Rule
			field int // in the entry's text
			each  int // entries in a window
		}{
			fairness.KindDraw:   {fairness.RuleBeacon, 3, 1},
			fairness.KindFreeze: {fairness.RuleProof, 7, 1},
			fairness.KindArrive: {fairness.RuleCredential, 8, each},
		} {
			at := entries.index(kind, n*with.each)
			other := entries.index(kind, (n+1)%windows*with.each)
			words, others := strings.Fields(string(entries[at])), strings.Fields(string(entries[other]))
			words[with.field] = others[with.field] // valid, but in another entry
			tampered := entries.replace(at, strings.Join(words, " "))
			r := auditOf(t, publish(t, keys, tampered), trust)
			c := check(t, r, string(with.rule))
			if c.Status != verifier.Fail || !strings.HasPrefix(c.Detail, fmt.Sprintf("entry %d ", at)) || r.OK {
				t.Errorf("%s %d, entry %d: %+v", kind, n, at, c)
			}
		}
	}
}

func entriesOf(t *testing.T, files roomtest.Files) (list transcript) {
	t.Helper()
	head, err := verifier.Unverified(files[roomtest.CheckpointPath])
	if err != nil {
		t.Fatal(err)
	}
	for tile := range audit.Tiles(head.Size) {
		if tile.Level < 0 {
			if err := audit.SplitBundle(files[tile.Path()], tile.Width, func(e []byte) error {
				list = append(list, slices.Clone(e))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return list
}

package pglog_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/proofline/proofline/audit"
)

// TestCosign: a witness that cosigns an idle room repeatedly has only one line. Readers of signed
// notes accept no more than 100.
func TestCosign(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	size := tr.append(tr.open(), 3).Size()
	if err := tr.store.Publish(t.Context(), []uuid.UUID{tr.room}); err != nil {
		t.Fatal(err)
	}
	text := audit.Checkpoint{Origin: origin, Size: size, Root: tr.root(int(size))}.Marshal()
	cosign := func(w audit.Witness, seed byte, size uint64, time int64) {
		t.Helper()
		c := w.Cosign(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)), text, time)
		if err := tr.store.Cosign(t.Context(), tr.room, size, c.Line(w.Name())); err != nil {
			t.Fatal(err)
		}
	}
	one, two, namesake := testWitness(t, "one.example.org", 1), testWitness(t, "one.example.org/b", 2), testWitness(t, "one.example.org", 3)
	for time := range int64(120) {
		cosign(one, 1, size, time+1)
	}
	cosign(two, 2, size, 7)
	cosign(namesake, 3, size, 7)
	cosign(two, 2, size-1, 8) // for another checkpoint
	signed, err := tr.store.Checkpoint(t.Context(), tr.room)
	if err != nil {
		t.Fatal(err)
	}
	_, n, err := audit.OpenCheckpoint(signed, tr.verifier, one, two, namesake)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []audit.Witness{one, two, namesake} {
		if _, ok := w.Cosignature(n); !ok {
			t.Errorf("without %v", w)
		}
	}
	if lines := strings.Count(string(signed), "\n— "); lines != 4 {
		t.Errorf("%d signatures, want those of the log and three witnesses", lines)
	}
}

func testWitness(t *testing.T, name string, seed byte) audit.Witness {
	t.Helper()
	public, _ := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	w, err := audit.NewWitness(name, public)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

package site

import (
	"fmt"
	"testing"
)

// TestNotes: what is kept of notes has a bound, and the latest is there.
func TestNotes(t *testing.T) {
	t.Parallel()
	text := make([]byte, 1_000_000)
	n, largest := notes{}, 0
	for i := range 200 {
		id := noteID{name: fmt.Sprint("shop-", i)}
		for range 3 { // again and again: it counts once
			n.put(id, Signed{Serial: uint64(i), Note: text})
		}
		if n[id].Serial != uint64(i) {
			t.Errorf("note %d is not kept", i)
		}
		largest = max(largest, len(n))
	}
	if most := maxNotes / len(text); largest != most {
		t.Errorf("%d notes are kept at once, want %d", largest, most)
	}
}

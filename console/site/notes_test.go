package site

import (
	"fmt"
	"testing"
)

// TestNotes checks that the cache of notes is limited, and that it has the latest note.
func TestNotes(t *testing.T) {
	t.Parallel()
	text := make([]byte, 1_000_000)
	n, largest := notes{}, 0
	for i := range 200 {
		id := noteID{name: fmt.Sprint("shop-", i)}
		for range 3 { // repeated notes count once
			n.put(id, Signed{Version: uint64(i), Note: text})
		}
		if n[id].Version != uint64(i) {
			t.Errorf("note %d is not cached", i)
		}
		largest = max(largest, len(n))
	}
	if most := maxNotes / len(text); largest != most {
		t.Errorf("%d notes are cached, want at most %d", largest, most)
	}
}

package pglog_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

// TestScan: entries of unwanted kinds are left out, and the index advances past all entries that
// were looked at, even if few are returned.
func TestScan(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	var entries [][]byte
	for i := range 30 {
		entries = append(entries, fmt.Appendf(nil, "%s %d\nline", []string{"arrive", "call", "assign", "arrival", "end"}[i%5], i))
	}
	l := tr.open()
	if _, err := l.Append(t.Context(), noEntries, add(entries)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from    uint64
		limit   int
		indexes string
		next    uint64
	}{
		{0, 100, "[1 3 4 6 8 9 11 13 14 16 18 19 21 23 24 26 28 29]", 30},
		{0, 2, "[1 3]", 4},
		{4, 1, "[4]", 5},
		{25, 100, "[26 28 29]", 30},
		{27, 3, "[28 29]", 30},
		{30, 100, "[]", 30},
		{31, 100, "[]", 31},
	} {
		found, next, err := tr.store.Scan(t.Context(), tr.room, c.from, c.limit, "arrive", "assign")
		if err != nil {
			t.Fatal(err)
		}
		indexes := []uint64{}
		for _, e := range found {
			indexes = append(indexes, e.Index)
			if want := string(entries[e.Index]); e.Text != want {
				t.Errorf("entry %d is %q, want %q", e.Index, e.Text, want)
			}
		}
		if fmt.Sprint(indexes) != c.indexes || next != c.next {
			t.Errorf("from %d, at most %d: %v, next %d, want %s, %d", c.from, c.limit, indexes, next, c.indexes, c.next)
		}
	}
	if found, next, err := tr.store.Scan(t.Context(), uuid.New(), 7, 100); err != nil || len(found) != 0 || next != 7 {
		t.Errorf("no log: %v, next %d, error %v", found, next, err)
	}
	if all, next, err := tr.store.Scan(t.Context(), tr.room, 0, 100); err != nil || len(all) != 30 || next != 30 {
		t.Errorf("everything: %d entries, next %d, error %v", len(all), next, err)
	}
}

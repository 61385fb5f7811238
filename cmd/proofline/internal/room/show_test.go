package room

import (
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/wire"
)

// TestWorkRows says whether the round that joins do work for has appeared.
func TestWorkRows(t *testing.T) {
	t.Parallel()
	if rows := workRows(nil); rows != nil {
		t.Errorf("without work: %v", rows)
	}
	signature := "0a"
	w := wire.Work{Round: 42, Due: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)}
	for want, s := range map[string]*string{"waits for beacon round 42, due at ": nil, "beacon round 42 has appeared": &signature} {
		w.Signature = s
		if rows := workRows(&w); len(rows) != 1 || rows[0][0] != "work" || !strings.HasPrefix(rows[0][1], want) {
			t.Errorf("%v, want %q", rows, want)
		}
	}
}

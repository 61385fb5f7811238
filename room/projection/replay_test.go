package projection

import (
	"errors"
	"slices"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// TestReadRun reads a room in runs of several lengths. A malformed entry and one that breaks a rule stop the run where
// they are, after the entries before them.
func TestReadRun(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/runs", "operator")
	if err != nil {
		t.Fatal(err)
	}
	r := roomtest.Small(keys, keys.Policy())
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	entries := r.Entries()
	twice := slices.IndexFunc(entries, func(e []byte) bool { return string(e[:6]) == "arrive" }) + 1
	isNil := func(err error) bool { return err == nil }
	isGrammar := func(err error) bool { return errors.Is(err, fairness.ErrGrammar) }
	isViolation := func(err error) bool { return errors.As(err, new(*fairness.Violation)) }
	for name, c := range map[string]struct {
		texts [][]byte
		read  int // entries read before the error
		is    func(error) bool
	}{
		"a room":            {entries, len(entries), isNil},
		"its first entry":   {entries[:1], 1, isNil},
		"a malformed entry": {slices.Insert(slices.Clone(entries), 20, []byte("arrive 1")), 20, isGrammar},
		"a malformed end":   {slices.Concat(entries, [][]byte{{}}), len(entries), isGrammar},
		"a ticket again":    {slices.Insert(slices.Clone(entries), twice, entries[twice-1]), twice, isViolation},
	} {
		for _, length := range []int{1, 7, audit.TileWidth} {
			replay, log := Replay{Projection: New(nil, nil)}, roomtest.NewLog(roomtest.Files{})
			var got error
			for run := range slices.Chunk(c.texts, length) {
				next := 0
				got = replay.ReadRun(run, log.Root, func() {
					if err := log.Append(run[next]); err != nil {
						t.Fatal(err)
					}
					next++
				})
				if got != nil {
					break
				}
			}
			if replay.Size() != uint64(c.read) || !c.is(got) {
				t.Errorf("%s, %d at once: %d entries are read, then %v; want %d", name, length, replay.Size(), got, c.read)
			}
		}
	}
}

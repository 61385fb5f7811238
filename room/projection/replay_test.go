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

// TestReadRunOfCredentials reads a room with credentials in runs of several lengths, the round of work among them. A
// credential that does not verify stops the run where it is.
func TestReadRunOfCredentials(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/door", "operator")
	if err != nil {
		t.Fatal(err)
	}
	policy, issuers := keys.Door()
	r := roomtest.Open(keys, policy)
	r.JoinShowing(policy.Opens, "members", issuers, 0, "club")
	r.WorkRound()
	later := policy.Opens + 4000
	for i := range 10 {
		r.JoinShowing(later, fairness.General, issuers, 0, "task")
		r.JoinShowing(later, "members", issuers, i+1, "club", "phone")
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	good := r.Entries()
	for _, wrong := range []int{0, 1, 5, 12, len(good) - 1} { // 0: none
		texts := slices.Clone(good)
		if wrong > 0 { // its last digit
			texts[wrong] = slices.Clone(good[wrong])
			last := &texts[wrong][len(texts[wrong])-1]
			*last = map[bool]byte{true: '1', false: '0'}[*last == '0']
		}
		for _, length := range []int{1, 3, 7, audit.TileWidth} {
			replay, log := Replay{Projection: New(nil, nil)}, roomtest.NewLog(roomtest.Files{})
			var got error
			for run := range slices.Chunk(texts, length) {
				if got = replay.ReadRun(run, log.Root, func() {}); got != nil {
					break
				}
			}
			want := uint64(len(texts))
			if wrong > 0 {
				want = uint64(wrong)
			}
			if isRefused := errors.As(got, new(*fairness.Violation)); replay.Size() != want || isRefused != (wrong > 0) {
				t.Errorf("entry %d is wrong, %d at once: %d entries are read, then %v", wrong, length, replay.Size(), got)
			}
		}
	}
}

// BenchmarkReadCredentials reads arrivals that an issuer vouches for.
func BenchmarkReadCredentials(b *testing.B) {
	keys, err := roomtest.NewKeys("example.com/r/door", "operator")
	if err != nil {
		b.Fatal(err)
	}
	policy, issuers := keys.Door()
	policy.Methods[1].Limit = 0
	r := roomtest.Open(keys, policy)
	for i := range 4 * audit.TileWidth {
		r.JoinShowing(policy.Opens, "members", issuers, i, "club")
	}
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
	texts := r.Entries()
	for b.Loop() {
		replay := Replay{Projection: New(nil, nil)}
		for run := range slices.Chunk(texts, audit.TileWidth) {
			if err := replay.ReadRun(run, func() audit.Hash { return audit.Hash{} }, func() {}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(texts))/b.Elapsed().Seconds(), "entries/s")
}

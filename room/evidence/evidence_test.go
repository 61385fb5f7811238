package evidence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/room/regression"
	"github.com/proofline/proofline/room/sequence"
)

// TestRoundLimiter: a flood of wrong rounds is verified one at a time, with pauses; a right round among them
// waits, but not forever.
func TestRoundLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRoundLimiter()
		var verified, now, most, busy atomic.Int32
		wrong := func() error {
			verified.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(3 * time.Millisecond)
			return errors.New("wrong")
		}
		var flood sync.WaitGroup
		for range 1000 {
			flood.Go(func() {
				switch err := l.check(t.Context(), wrong); {
				case errors.Is(err, sequence.ErrBusy):
					busy.Add(1)
				case !errors.Is(err, ErrRound):
					t.Errorf("wrong round: %v", err)
				}
			})
		}
		flood.Wait()
		if n := verified.Load(); n < 50 || n > 80 || most.Load() != 1 || n+busy.Load() != 1000 {
			t.Errorf("%d verified in a second, %d at once, %d told to retry later", n, most.Load(), busy.Load())
		}
		time.Sleep(roundRest)
		if err := l.check(t.Context(), func() error { return nil }); err != nil {
			t.Error(err)
		}
		if err := l.check(t.Context(), func() error { return nil }); err != nil {
			t.Error("a right one holds up the next: ", err)
		}
	})
}

// cosigned returns a cosignature with a time, which no witness made.
func cosigned(seconds int64) (c fairness.Cosignature) {
	binary.BigEndian.PutUint64(c[4:], uint64(seconds))
	return c
}

// TestKnown: a node that has the round does not draw without the stored cosignatures, and in the end draws
// with those that it has.
func TestKnown(t *testing.T) {
	t.Parallel()
	policy := &fairness.Policy{Witnesses: []string{"a", "b"}, Quorum: 2}
	policy.Beacon = &fairness.Beacon{Chain: beacon.Chain{Period: 5}, Margin: fairness.MinMargin}
	p := fairness.Pending{Frozen: 5000, Size: 7, Round: 4, Due: 15_000}
	grace := p.Due + fairness.Time(cosignGrace)
	for name, c := range map[string]struct {
		times  []int64 // of the cosignatures of a and b; 0: none
		looked bool
		now    fairness.Time
		want   int // number of cosignatures; -1: wait
	}{
		"just started":         {times: []int64{0, 0}, now: grace, want: -1},
		"nothing stored":       {times: []int64{0, 0}, looked: true, now: grace, want: 0},
		"may still come":       {times: []int64{12, 0}, looked: true, now: grace - 1, want: -1},
		"one":                  {times: []int64{12, 0}, looked: true, now: grace, want: 1},
		"both":                 {times: []int64{12, 3}, now: p.Due, want: 2},
		"one too late":         {times: []int64{12, 13}, looked: true, now: grace, want: 1},
		"one too early":        {times: []int64{12, 2}, looked: true, now: grace, want: 1},
		"time beyond the true": {times: []int64{12, 1<<63 - 1}, looked: true, now: grace, want: 1},
		"time that overflows":  {times: []int64{12, 1 << 61}, looked: true, now: grace, want: 1},
	} {
		e := &Known{}
		e.takeRound(p.Round, []byte("signature"))
		for i, seconds := range c.times {
			if seconds > 0 {
				e.takeCosignature(p.Size, policy.Witnesses[i], cosigned(seconds))
			}
		}
		if c.looked {
			e.noteRead([]fairness.Pending{p})
		}
		_, list, ok := e.Of(p, policy, c.now)
		if got := len(list); ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s: %d cosignatures, go on %t; want %d", name, got, ok, c.want)
		}
	}
	e := &Known{}
	e.takeCosignature(7, "a", cosigned(14))
	e.takeCosignature(7, "a", cosigned(12))
	e.takeCosignature(7, "a", cosigned(13))
	if !e.hasCosignedInTime(p, policy.Beacon, "a") {
		t.Error("the earliest cosignature does not count")
	}
}

// scripted is a witness that behaves as a test says.
type scripted func(old uint64, signed []byte) (audit.Cosignature, error)

// AddCheckpoint implements [Cosigner].
func (s scripted) AddCheckpoint(_ context.Context, old uint64, _ []audit.Hash, signed []byte) (audit.Cosignature, error) {
	return s(old, signed)
}

// memory is the log of one room, of which a node has read a part.
type memory struct {
	stored    []tlog.Hash
	size      uint64
	read      uint64
	published uint64
	lines     []string // cosignatures on the published checkpoint
}

func (m *memory) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		list[i] = m.stored[at]
	}
	return list, nil
}

// append appends an entry, which the node has read and published.
func (m *memory) append(t *testing.T, text string) {
	t.Helper()
	hashes, err := tlog.StoredHashes(int64(m.size), []byte(text), m)
	if err != nil {
		t.Fatal(err)
	}
	m.stored = append(m.stored, hashes...)
	m.size++
	m.read, m.published = m.size, m.size
}

func (m *memory) Growth(_ context.Context, _ uuid.UUID, old, size uint64) (root audit.Hash, proof []audit.Hash, err error) {
	hash, err := tlog.TreeHash(int64(size), m)
	if err != nil || old == 0 || old == size {
		return hash, nil, err
	}
	proof, err = tlog.ProveTree(int64(size), int64(old), m)
	return hash, proof, err
}

func (m *memory) State(context.Context, uuid.UUID) (pglog.Mark, pglog.Hold, error) {
	return pglog.Mark{Size: m.size}, pglog.Hold{}, nil
}

func (m *memory) Cosign(_ context.Context, _ uuid.UUID, _ uint64, line string) error {
	m.lines = append(m.lines, line)
	return nil
}

func (m *memory) Pending() []fairness.Pending                    { return nil }
func (m *memory) AwaitsWorkRound() (uint64, fairness.Time, bool) { return 0, 0, false }
func (m *memory) Size() uint64                                   { return m.read }
func (m *memory) WakeDue()                                       {}
func (m *memory) PublishedSize(context.Context) (uint64, error)  { return m.published, nil }

// holder records why a room is held.
type holder struct{ held *regression.Regression }

func (h *holder) Regression() *regression.Regression { return h.held }

func (h *holder) Hold(_ context.Context, r regression.Regression) error {
	h.held = &r
	return &r
}

func newWitness(t *testing.T, name string) *witness.Witness {
	t.Helper()
	key, err := witness.NewKey(name, bytes.Repeat([]byte{byte(len(name))}, 32))
	if err != nil {
		t.Fatal(err)
	}
	store, err := witness.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return witness.New(key, store, time.Now, slog.New(slog.DiscardHandler))
}

// alone returns the collector of a room with one entry, and a witness that only the test asks.
func alone(t *testing.T) (c *Collector, s *submitter, asked *int) {
	t.Helper()
	const origin = "example.com/r/alone"
	signer, _, err := audit.NewSigner(origin, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	log, asked := &memory{}, new(int)
	log.append(t, "first")
	target := Target{Slug: "alone", Origin: origin, Signer: signer, Logs: log, Holder: &holder{}, Forks: &Forks{},
		Log: slog.New(slog.DiscardHandler), Now: time.Now}
	c = NewCollector(target, &Known{}, nil, log, log, NewRoundLimiter())
	s = newSubmitter(&c.room, Witness{newWitness(t, "one.example.org").Key(),
		scripted(func(uint64, []byte) (audit.Cosignature, error) {
			*asked++
			return audit.Cosignature{}, nil
		})})
	return c, s, asked
}

// TestSubmitBehind: a node that has not read all entries of the published checkpoint asks no witness to
// cosign it. A freeze may be among them, and witnesses would not cosign the freeze's own checkpoint
// afterwards.
func TestSubmitBehind(t *testing.T) {
	t.Parallel()
	c, s, asked := alone(t)
	log, _ := c.view.(*memory)
	log.read-- // as if another node had appended
	if _, err := c.submit(t.Context(), s); err != nil || *asked != 0 {
		t.Errorf("asked %d times, error %v", *asked, err)
	}
	log.read++
	s.asked = time.Time{}
	if _, err := c.submit(t.Context(), s); err != nil || *asked != 1 {
		t.Errorf("asked %d times, error %v", *asked, err)
	}
}

// TestSubmitConflicts: a witness that reports a checkpoint which the log never had is asked again later, and
// the conflict is logged.
func TestSubmitConflicts(t *testing.T) {
	t.Parallel()
	c, s, _ := alone(t)
	for _, size := range []uint64{1<<64 - 1, 1 << 63, 1<<63 - 1, 1 << 60, 2} {
		s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) {
			return audit.Cosignature{}, fmt.Errorf("ask: %w", &witness.ConflictError{Size: size})
		})
		s.asked = time.Time{}
		if _, err := c.submit(t.Context(), s); err == nil || s.seen != 0 {
			t.Errorf("conflict %d: error %v, seen %d", size, err, s.seen)
		}
	}
	flaps := 0
	s.cosigner = scripted(func(old uint64, _ []byte) (audit.Cosignature, error) {
		flaps++
		return audit.Cosignature{}, &witness.ConflictError{Size: 1 - old}
	})
	s.asked = time.Time{}
	if _, err := c.submit(t.Context(), s); flaps > 3 || err == nil {
		t.Errorf("asked %d times in a row: %v", flaps, err)
	}
	s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) { return audit.Cosignature{}, nil })
	s.seen, s.asked = 0, time.Time{}
	if _, err := c.submit(t.Context(), s); err != nil || s.seen != 1 {
		t.Errorf("after it came to its senses: error %v, seen %d", err, s.seen)
	}
}

// TestSubmitTogether: if other nodes ask the same witness, its response that it already has this checkpoint
// is not a cosignature of it.
func TestSubmitTogether(t *testing.T) {
	t.Parallel()
	c, s, _ := alone(t)
	log, _ := c.view.(*memory)
	for _, text := range []string{"second", "third", "fourth"} {
		log.append(t, text)
	}
	n := uint64(0)
	s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) {
		n++
		return audit.Cosignature{}, &witness.ConflictError{Size: n + 1}
	})
	if answered, err := c.submit(t.Context(), s); err == nil || answered {
		t.Errorf("answered %t, error %v", answered, err)
	}
	honest := newWitness(t, "two.example.org")
	_, vkey, err := audit.NewSigner(c.room.Origin, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	logs, err := witness.NewLogs(vkey)
	if err != nil {
		t.Fatal(err)
	}
	honest.Follow(logs)
	server := httptest.NewServer(honest.Handler(""))
	t.Cleanup(server.Close)
	s.key, s.vkey = honest.Key(), honest.Key().String()
	s.cosigner = &witness.Client{URL: server.URL, Key: honest.Key(), Now: time.Now}
	s.seen, s.asked = 3, time.Time{}
	if answered, err := c.submit(t.Context(), s); err != nil || !answered || s.seen != 4 {
		t.Errorf("answered %t, error %v, seen %d", answered, err, s.seen)
	}
	if len(log.lines) != 1 || !strings.Contains(log.lines[0], "— two.example.org ") {
		t.Errorf("published with the cosignatures %q", log.lines)
	}
}

// TestForks: a witness that has seen a different history is recorded, and one that only fails is not.
func TestForks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		err   error
		forks int
	}{
		{"inconsistent", fmt.Errorf("ask witness: %w", witness.ErrInconsistent), 1},
		{"larger", fmt.Errorf("ask witness: %w", &witness.ConflictError{Size: 7}), 1},
		{"away", witness.ErrUnavailable, 0},
		{"wrong answer", witness.ErrAnswer, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, s, _ := alone(t)
			s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) { return audit.Cosignature{}, test.err })
			for range 2 {
				s.asked = time.Time{}
				answered, err := c.submit(t.Context(), s)
				s.note(t.Context(), answered, err)
			}
			forks := c.Forks()
			g := c.room.Holder.Regression()
			if (g != nil) != (test.forks > 0) || g != nil && g.By != regression.WitnessPrefix+s.key.Name() {
				t.Errorf("the room is held for %v", g)
			}
			if len(forks) != test.forks {
				t.Fatalf("%d forks, want %d: %+v", len(forks), test.forks, forks)
			}
			if test.forks > 0 && (forks[0].Witness != s.key.Name() || forks[0].Detail == "" ||
				time.Since(forks[0].Latest) > time.Minute) {
				t.Errorf("fork %+v", forks[0])
			}
		})
	}
}

// TestConsultSilent: a witness that does not respond is not asked about other rooms for a while.
func TestConsultSilent(t *testing.T) {
	t.Parallel()
	c, s, _ := alone(t)
	asked := 0
	witnesses := NewWitnesses([]Witness{{s.key, scripted(func(uint64, []byte) (audit.Cosignature, error) {
		asked++
		return audit.Cosignature{}, witness.ErrUnavailable
	})}})
	for range 3 {
		witnesses.Consult(t.Context(), c.room, []string{s.vkey}, 1)
	}
	if asked != 1 || c.room.Holder.Regression() != nil {
		t.Errorf("asked %d times, held for %v", asked, c.room.Holder.Regression())
	}
}

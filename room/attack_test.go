package room

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/verifier"
)

// TestStrangers: a flood of wrong rounds is verified one at a time and with
// rests; a right one among them waits, and does not wait for ever.
func TestStrangers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStrangers()
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
				switch err := s.check(t.Context(), wrong); {
				case errors.Is(err, ErrBusy):
					busy.Add(1)
				case !errors.Is(err, ErrRound):
					t.Errorf("wrong round: %v", err)
				}
			})
		}
		flood.Wait()
		if n := verified.Load(); n < 50 || n > 80 || most.Load() != 1 || n+busy.Load() != 1000 {
			t.Errorf("%d verified in a second, %d at once, %d told to come again", n, most.Load(), busy.Load())
		}
		time.Sleep(strangerRest)
		if err := s.check(t.Context(), func() error { return nil }); err != nil {
			t.Error(err)
		}
		if err := s.check(t.Context(), func() error { return nil }); err != nil {
			t.Error("a right one holds up the next: ", err)
		}
	})
}

// cosigned is a cosignature at a time, that nobody made.
func cosigned(seconds int64) (c fairness.Cosignature) {
	binary.BigEndian.PutUint64(c[4:], uint64(seconds))
	return c
}

// TestEvidenceKnown: a node that has the round does not draw without the
// cosignatures that are stored, and in the end draws with those it has.
func TestEvidenceKnown(t *testing.T) {
	t.Parallel()
	policy := &fairness.Policy{Witnesses: []string{"a", "b"}, Quorum: 2}
	p := fairness.Pending{Size: 7, Round: 3, Due: 10_000}
	grace := p.Due + fairness.Time(cosignGrace)
	for name, c := range map[string]struct {
		times  []int64 // of a's and b's cosignature, 0 for none
		looked bool
		now    fairness.Time
		want   int // cosignatures, -1 to wait
	}{
		"just started":         {times: []int64{0, 0}, now: grace, want: -1},
		"nothing stored":       {times: []int64{0, 0}, looked: true, now: grace, want: 0},
		"may still come":       {times: []int64{9, 0}, looked: true, now: grace - 1, want: -1},
		"one":                  {times: []int64{9, 0}, looked: true, now: grace, want: 1},
		"both":                 {times: []int64{9, 8}, now: p.Due, want: 2},
		"one too late":         {times: []int64{9, 10}, looked: true, now: grace, want: 1},
		"time beyond the true": {times: []int64{9, 1<<63 - 1}, looked: true, now: grace, want: 1},
		"time that overflows":  {times: []int64{9, 1 << 61}, looked: true, now: grace, want: 1},
	} {
		e := &evidence{}
		e.takeRound(p.Round, []byte("signature"))
		for i, seconds := range c.times {
			if seconds > 0 {
				e.takeCosignature(p.Size, policy.Witnesses[i], cosigned(seconds))
			}
		}
		if c.looked {
			e.look([]fairness.Pending{p})
		}
		_, list, ok := e.of(p, policy, c.now)
		if got := len(list); ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s: %d cosignatures, go on %t; want %d", name, got, ok, c.want)
		}
	}
	e := &evidence{}
	e.takeCosignature(7, "a", cosigned(11))
	e.takeCosignature(7, "a", cosigned(9))
	e.takeCosignature(7, "a", cosigned(10))
	if !e.hasCosigned(p, "a", true) {
		t.Error("the earliest cosignature does not count")
	}
}

// scripted is a witness that does what a test says.
type scripted func(old uint64, signed []byte) (audit.Cosignature, error)

// AddCheckpoint implements [Cosigner].
func (s scripted) AddCheckpoint(_ context.Context, old uint64, _ []audit.Hash, signed []byte) (audit.Cosignature, error) {
	return s(old, signed)
}

// alone makes a room that opens tomorrow and names a witness that nobody asks
// but the test.
func alone(t *testing.T) (*Room, *submitter, *int) {
	t.Helper()
	b, w := newBeacon(t), newWitness(t, "one.example.org")
	dead := Witness{w.Key(), scripted(func(uint64, []byte) (audit.Cosignature, error) { return audit.Cosignature{}, witness.ErrUnavailable })}
	rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []Chain{b.chain()}, Witnesses: []Witness{dead}})
	opens := time.Now().Add(24 * time.Hour)
	r := create(t, rs, Config{Slug: "idle", Opens: &opens})
	if err := r.publishNewest(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := new(int)
	s := &submitter{room: r, key: w.Key(), vkey: w.Key().String()}
	s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) {
		*asked++
		return audit.Cosignature{}, nil
	})
	return r, s, asked
}

// TestSubmitBehind: a node that has not read all of the published checkpoint
// asks nobody to cosign it: a freeze may end in it, whose own checkpoint no
// witness would cosign afterwards.
func TestSubmitBehind(t *testing.T) {
	t.Parallel()
	r, s, asked := alone(t)
	r.mu.Lock()
	r.stored-- // as if another node had appended
	r.mu.Unlock()
	if _, err := s.submit(t.Context()); err != nil || *asked != 0 {
		t.Errorf("asked %d times, error %v", *asked, err)
	}
	r.mu.Lock()
	r.stored++
	r.mu.Unlock()
	s.asked = time.Time{}
	if _, err := s.submit(t.Context()); err != nil || *asked != 1 {
		t.Errorf("asked %d times, error %v", *asked, err)
	}
}

// TestSubmitConflicts: a witness that claims a checkpoint which the log never
// had is asked again later, and does not rule itself out in silence.
func TestSubmitConflicts(t *testing.T) {
	t.Parallel()
	_, s, _ := alone(t)
	for _, size := range []uint64{1<<64 - 1, 1 << 63, 1<<63 - 1, 1 << 60, 2} {
		s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) {
			return audit.Cosignature{}, fmt.Errorf("ask: %w", &witness.ConflictError{Size: size})
		})
		s.asked = time.Time{}
		if _, err := s.submit(t.Context()); err == nil || s.seen != 0 {
			t.Errorf("conflict %d: error %v, seen %d", size, err, s.seen)
		}
	}
	flaps := 0
	s.cosigner = scripted(func(old uint64, _ []byte) (audit.Cosignature, error) {
		flaps++
		return audit.Cosignature{}, &witness.ConflictError{Size: 1 - old}
	})
	s.asked = time.Time{}
	if _, err := s.submit(t.Context()); flaps > 3 || err == nil {
		t.Errorf("asked %d times in a row: %v", flaps, err)
	}
	s.cosigner, s.seen, s.asked = scripted(func(uint64, []byte) (audit.Cosignature, error) { return audit.Cosignature{}, nil }), 0, time.Time{}
	if _, err := s.submit(t.Context()); err != nil || s.seen != 1 {
		t.Errorf("after it came to its senses: error %v, seen %d", err, s.seen)
	}
}

// TestSubmitTogether: while other nodes ask the same witness, its answer that it
// has just that checkpoint is no cosignature of it.
func TestSubmitTogether(t *testing.T) {
	t.Parallel()
	r, s, _ := alone(t)
	for _, do := range []func(*Room, context.Context) error{(*Room).Pause, (*Room).Resume, (*Room).Pause} {
		if err := do(r, t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.publishNewest(t.Context()); err != nil {
		t.Fatal(err)
	}
	honest, n := newWitness(t, "two.example.org"), uint64(0)
	s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) {
		n++
		return audit.Cosignature{}, &witness.ConflictError{Size: n + 1}
	})
	if answered, err := s.submit(t.Context()); err == nil || answered {
		t.Errorf("answered %t, error %v", answered, err)
	}
	honest.follow(t, r)
	s.key, s.vkey, s.cosigner, s.seen, s.asked = honest.Key(), honest.Key().String(), honest.asked().Cosigner, 3, time.Time{}
	if answered, err := s.submit(t.Context()); err != nil || !answered || s.seen != 4 {
		t.Errorf("answered %t, error %v, seen %d", answered, err, s.seen)
	}
	signed, err := r.Checkpoint(t.Context())
	if err != nil || strings.Contains(string(signed), "— one.example.org ") || !strings.Contains(string(signed), "— two.example.org ") {
		t.Errorf("published, error %v:\n%s", err, signed)
	}
}

// TestSubmitKeepsUp: a witness that takes its time falls behind no faster than
// it must where windows are short.
func TestSubmitKeepsUp(t *testing.T) {
	t.Parallel()
	steadily(t, func(t *testing.T) string {
		b, w := newBeacon(t), newWitness(t, "one.example.org")
		slow := Witness{w.Key(), delayed{w.asked().Cosigner, 20 * time.Millisecond}}
		rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []Chain{b.chain()}, Witnesses: []Witness{slow}})
		r := create(t, rs, Config{Slug: "short", Windows: []WindowRule{{Length: Duration(100 * time.Millisecond)}}, Margin: span(time.Second)})
		w.follow(t, r)
		people := uint64(0)
		for r.Snapshot().Counts.Windows < 60 {
			if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
				t.Fatal(err)
			}
			people++
			time.Sleep(30 * time.Millisecond)
		}
		eventually(t, "all are drawn", isDrawn(r, people))
		if report := audited(t, r, b, w); report.Witnessed*10 < report.Draws*8 {
			return fmt.Sprintf("%d of %d draws are witnessed", report.Witnessed, report.Draws)
		}
		return ""
	})
}

// delayed is a witness far away.
type delayed struct {
	Cosigner
	by time.Duration
}

// AddCheckpoint implements [Cosigner].
func (d delayed) AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash, signed []byte) (audit.Cosignature, error) {
	time.Sleep(d.by)
	return d.Cosigner.AddCheckpoint(ctx, old, proof, signed)
}

// TestStoredRubbish: evidence in the database that is none, as after it was
// restored or was written by somebody else, keeps no room from its draws.
func TestStoredRubbish(t *testing.T) {
	t.Parallel()
	b, w := newBeacon(t), newWitness(t, "one.example.org")
	w.server.Close()
	url := pgtest.URL(t)
	rs := start(t, connect(t, url), Options{MasterKey: newMaster(t), Chains: []Chain{b.chain()}, Witnesses: []Witness{w.asked()}})
	r := create(t, rs, Config{Slug: "rubbish", Windows: []WindowRule{{Length: Duration(300 * time.Millisecond)}}, Margin: span(time.Second)})
	joinMany(t, r, 3)
	eventually(t, "the window is frozen", func() bool { return len(r.durablePending()) > 0 })
	p, chain := r.durablePending()[0], b.Chain().Hash()
	c := cosigned(int64(p.Due)/1000 - 1)
	superuser(t, url, `insert into beacon_rounds (chain, round, signature) values ($1, $2, $3)`, chain[:], int64(p.Round), bytes.Repeat([]byte{1}, 48))
	superuser(t, url, `insert into freeze_cosignatures (room_id, size, witness, cosignature) values ($1, $2, $3, $4)`, r.ID, int64(p.Size), w.Key().String(), c[:])
	eventually(t, "the window is drawn", isDrawn(r, 3))
	if report := audited(t, r, b, w); report.Level != verifier.LevelUnpredictable {
		t.Errorf("level %d", report.Level)
	}
}

// counted counts how many rounds are waited for at once.
type counted struct {
	*testBeacon
	now, most atomic.Int32
}

// Wait implements [Rounds].
func (c *counted) Wait(ctx context.Context, round uint64) ([]byte, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return c.testBeacon.Wait(ctx, round)
}

// TestOutage: the draws of a long outage wait for few rounds at a time, and
// are all done in the end, also when they come due at once.
func TestOutage(t *testing.T) {
	t.Parallel()
	b := &counted{testBeacon: newBeacon(t)}
	b.isAway.Store(true)
	rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []Chain{{Chain: b.Chain(), Rounds: b}}})
	r := create(t, rs, Config{Slug: "outage", Windows: []WindowRule{{Length: Duration(100 * time.Millisecond)}}, Margin: span(time.Second)})
	people := uint64(0)
	for r.Snapshot().Counts.Windows < 2*maxDraws+5 {
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
			t.Fatal(err)
		}
		people++
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "the last round is out", func() bool {
		pending := r.durablePending()
		return len(pending) > 2*maxDraws && fromTime(r.Now()) > pending[len(pending)-1].Due
	})
	for _, p := range r.durablePending() { // strangers bring all but the first
		if signature, err := b.Sign(p.Round); err == nil && p.Round != r.durablePending()[0].Round {
			if err := r.TakeRound(t.Context(), p.Round, signature); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := r.Snapshot().Counts.Drawn; n != 0 {
		t.Errorf("%d drawn without the first round", n)
	}
	b.isAway.Store(false)
	eventually(t, "all are drawn", isDrawn(r, people))
	if most := b.most.Load(); most < 1 || most > gatherMost {
		t.Errorf("%d rounds waited for at once", most)
	}
	audited(t, r, b.testBeacon)
}

// TestFullInCrowd: a crowd at once does not get past the limit.
func TestFullInCrowd(t *testing.T) {
	t.Parallel()
	rs := node(t, pgtest.URL(t), newMaster(t))
	r := create(t, rs, Config{Slug: "full", Windows: []WindowRule{{Length: Duration(time.Hour)}}, Settings: Settings{MaxWaiting: 5}})
	var crowd sync.WaitGroup
	var in, full atomic.Int32
	for range 200 {
		crowd.Go(func() {
			switch _, err := r.Join(t.Context(), newVisitor(r).ticket); {
			case err == nil:
				in.Add(1)
			case errors.Is(err, ErrFull):
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if in.Load() != 5 || full.Load() != 195 {
		t.Errorf("%d got in and %d found it full", in.Load(), full.Load())
	}
}

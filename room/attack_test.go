package room

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/verifier"
)

// cosigned returns a cosignature with a time, which no witness made.
func cosigned(seconds int64) (c fairness.Cosignature) {
	binary.BigEndian.PutUint64(c[4:], uint64(seconds))
	return c
}

// scripted is a witness that behaves as a test says.
type scripted func(old uint64, signed []byte) (audit.Cosignature, error)

// AddCheckpoint implements [evidence.Cosigner].
func (s scripted) AddCheckpoint(_ context.Context, old uint64, _ []audit.Hash, signed []byte) (audit.Cosignature, error) {
	return s(old, signed)
}

// TestSubmitKeepsUp: with short windows, a slow witness lags behind by no more than its response time.
func TestSubmitKeepsUp(t *testing.T) {
	t.Parallel()
	steadily(t, func(t *testing.T) string {
		b, w := newBeacon(t), newWitness(t, "one.example.org")
		slow := evidence.Witness{Key: w.Key(), Cosigner: delayed{w.asked().Cosigner, 50 * time.Millisecond}}
		rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []evidence.Chain{b.chain()}, Witnesses: []evidence.Witness{slow}})
		r := create(t, rs, Config{Slug: "short", Windows: []WindowRule{{Length: Duration(250 * time.Millisecond)}}, Margin: span(5 * time.Second)})
		w.follow(t, r)
		people := uint64(0)
		for r.Snapshot().Counts.Windows < 24 {
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

// delayed is a witness with a long response time.
type delayed struct {
	evidence.Cosigner
	by time.Duration
}

// AddCheckpoint implements [evidence.Cosigner].
func (d delayed) AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash, signed []byte) (audit.Cosignature, error) {
	time.Sleep(d.by)
	return d.Cosigner.AddCheckpoint(ctx, old, proof, signed)
}

// TestStoredRubbish: invalid evidence in the database, left by a restore or another program, keeps no room
// from its draws.
func TestStoredRubbish(t *testing.T) {
	t.Parallel()
	b, w := newBeacon(t), newWitness(t, "one.example.org")
	w.server.Close()
	url := pgtest.URL(t)
	rs := start(t, connect(t, url), Options{MasterKey: newMaster(t), Chains: []evidence.Chain{b.chain()}, Witnesses: []evidence.Witness{w.asked()}})
	r := create(t, rs, Config{Slug: "rubbish", Windows: []WindowRule{{Length: Duration(300 * time.Millisecond)}}, Margin: span(5 * time.Second)})
	joinMany(t, r, 3)
	eventually(t, "the window is frozen", func() bool { return len(r.view.Pending()) > 0 })
	p, chain := r.view.Pending()[0], b.Chain().Hash()
	c := cosigned(int64(p.Due)/1000 - 3)
	superuser(t, url, `insert into beacon_rounds (chain, round, signature) values ($1, $2, $3)`, chain[:], int64(p.Round), bytes.Repeat([]byte{1}, 48))
	superuser(t, url, `insert into freeze_cosignatures (room_id, size, witness, cosignature) values ($1, $2, $3, $4)`, r.ID, int64(p.Size), w.Key().String(), c[:])
	eventually(t, "the window is drawn", isDrawn(r, 3))
	if report := audited(t, r, b, w); report.Level != verifier.LevelUnpredictable {
		t.Errorf("level %d", report.Level)
	}
}

// counted counts concurrent waits for rounds.
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

// TestOutage: after a long outage the draws wait for only a few rounds at a time, and all are made in the
// end, even if all become due at once.
func TestOutage(t *testing.T) {
	t.Parallel()
	b := &counted{testBeacon: newBeacon(t)}
	b.isAway.Store(true)
	rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []evidence.Chain{{Chain: b.Chain(), Rounds: b}}})
	r := create(t, rs, Config{Slug: "outage", Windows: []WindowRule{{Length: Duration(100 * time.Millisecond)}}, Margin: span(5 * time.Second)})
	people := uint64(0)
	for r.Snapshot().Counts.Windows < 2*32+5 {
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
			t.Fatal(err)
		}
		people++
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "the last round is out", func() bool {
		pending := r.view.Pending()
		return len(pending) > 2*32 && millis.Of(r.Now()) > pending[len(pending)-1].Due
	})
	for _, p := range r.view.Pending() { // strangers submit all but the first
		if signature, err := b.Sign(p.Round); err == nil && p.Round != r.view.Pending()[0].Round {
			if err := r.Evidence.TakeRound(t.Context(), p.Round, signature); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := r.Snapshot().Counts.Drawn; n != 0 {
		t.Errorf("%d drawn without the first round", n)
	}
	b.isAway.Store(false)
	eventually(t, "all are drawn", isDrawn(r, people))
	if most := b.most.Load(); most < 1 || most > 16 {
		t.Errorf("%d rounds waited for at once", most)
	}
	audited(t, r, b.testBeacon)
}

// TestFullInCrowd: concurrent joins do not exceed the limit.
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

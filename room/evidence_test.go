package room

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/revocation"
	"github.com/proofline/proofline/verifier"
)

// testBeacon is a chain with one round per second, whose relays can be unavailable.
type testBeacon struct {
	*local.Beacon
	isAway atomic.Bool
}

func newBeacon(t testing.TB) *testBeacon { return newBeaconAt(t, time.Now) }

// newBeaconAt returns a chain whose rounds appear by a clock.
func newBeaconAt(t testing.TB, now func() time.Time) *testBeacon {
	t.Helper()
	b, err := local.New(local.NewKey(), local.Config{ID: "test", Genesis: now().Unix() - 1000, Period: 1, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return &testBeacon{Beacon: b}
}

// Wait implements [Rounds].
func (b *testBeacon) Wait(ctx context.Context, round uint64) ([]byte, error) {
	for {
		if signature, err := b.Sign(round); err == nil && !b.isAway.Load() {
			return signature, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *testBeacon) chain() evidence.Chain { return evidence.Chain{Chain: b.Chain(), Rounds: b} }

// testWitness is a real witness, over HTTP.
type testWitness struct {
	*witness.Witness
	server *httptest.Server
}

func newWitness(t testing.TB, name string) *testWitness {
	t.Helper()
	key, err := witness.NewKey(name, bytes.Repeat([]byte{byte(len(name))}, 32))
	if err != nil {
		t.Fatal(err)
	}
	store, err := witness.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := witness.New(key, store, time.Now, testlog.New(t, slog.LevelInfo))
	server := httptest.NewServer(w.Handler(""))
	t.Cleanup(func() {
		server.Close()
		_ = store.Close()
	})
	return &testWitness{w, server}
}

// follow gives the witness a room's key, as its operator would.
func (w *testWitness) follow(t testing.TB, r *Room) {
	t.Helper()
	logs, err := witness.NewLogs(r.VKey)
	if err != nil {
		t.Fatal(err)
	}
	w.Follow(logs)
}

func (w *testWitness) asked() evidence.Witness {
	return evidence.Witness{Key: w.Key(), Cosigner: &witness.Client{URL: w.server.URL, Key: w.Key(), Now: time.Now}}
}

// audited returns the report on a room, by an auditor who knows its beacon and witnesses.
func audited(t *testing.T, r *Room, b *testBeacon, witnesses ...*testWitness) *verifier.Report {
	t.Helper()
	trust := verifier.Trust{VKey: r.VKey, Beacons: [][32]byte{b.Chain().Hash()}}
	for _, w := range witnesses {
		trust.Witnesses = append(trust.Witnesses, w.Key().String())
	}
	if err := r.store.Publish(t.Context(), []uuid.UUID{r.ID}); err != nil {
		t.Fatal(err)
	}
	report, err := verifier.Audit(t.Context(), r.Transcript, trust)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK {
		t.Fatalf("%+v", report)
	}
	return report
}

func quorum(n uint32) *uint32 { return &n }

// isDrawn reports whether all visitors have a place.
func isDrawn(r *Room, people uint64) func() bool {
	return func() bool { return r.Snapshot().Counts.Assigned >= people }
}

// TestWitnessed takes a room through two draws with a beacon and two
// witnesses, up to the highest level.
func TestWitnessed(t *testing.T) {
	t.Parallel()
	steadily(t, witnessed)
}

func witnessed(t *testing.T) (wrong string) {
	b, one, two := newBeacon(t), newWitness(t, "one.example.org"), newWitness(t, "another.example.org")
	rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []evidence.Chain{b.chain()}, Witnesses: []evidence.Witness{one.asked(), two.asked()}})
	r := create(t, rs, Config{Slug: "seen", Windows: []WindowRule{{Length: Duration(700 * time.Millisecond)}}, Margin: span(5 * time.Second), Quorum: quorum(2)})
	one.follow(t, r)
	two.follow(t, r)
	if c := r.Config(); c.Beacon != "drand:test" || time.Duration(*c.Margin) != 5*time.Second || *c.Quorum != 2 {
		t.Errorf("configured as %+v", c)
	}
	joinMany(t, r, 3)
	joined := r.Snapshot().Windows[0]
	if wait := joined.Draws - joined.To; wait <= 5000 || wait > 6000 {
		t.Errorf("drawn %d ms after the window, want more than 5000 and at most 6000", wait)
	}
	eventually(t, "the first window is drawn", isDrawn(r, 3))
	joinMany(t, r, 2)
	eventually(t, "all are drawn", isDrawn(r, 5))
	report := audited(t, r, b, one, two)
	if report.Level != verifier.LevelWitnessed || report.Draws < 2 || report.Witnessed != report.Draws {
		return fmt.Sprintf("level %d, %d draws, %d witnessed", report.Level, report.Draws, report.Witnessed)
	}
	eventually(t, "the published checkpoint is cosigned by both", func() bool {
		signed, err := r.Transcript.Checkpoint(t.Context())
		return err == nil && strings.Contains(string(signed), "— one.example.org ") && strings.Contains(string(signed), "— another.example.org ")
	})
	return ""
}

// TestBeaconAway: draws wait, nothing else does, and anyone may submit the round, even to a node without
// relays.
func TestBeaconAway(t *testing.T) {
	t.Parallel()
	b := newBeacon(t)
	b.isAway.Store(true)
	url, master := pgtest.URL(t), newMaster(t)
	rs := start(t, connect(t, url), Options{MasterKey: master, Chains: []evidence.Chain{b.chain()}})
	r := create(t, rs, Config{Slug: "late", Windows: []WindowRule{{Length: Duration(300 * time.Millisecond)}}, Margin: span(5 * time.Second)})
	waiting := joinMany(t, r, 2)
	pending := func() []fairness.Pending { return r.view.Pending() }
	eventually(t, "the window is frozen", func() bool { return len(pending()) > 0 })
	first := pending()[0]
	if err := r.Revoke(t.Context(), waiting[0].ticket, fairness.RevokedBot); !errors.Is(err, ErrDrawing) {
		t.Errorf("revoked between freeze and draw: %v, want ErrDrawing", err)
	}
	list := revocation.Selection{Tickets: []fairness.Ticket{waiting[0].ticket, waiting[1].ticket}}
	if tally, err := r.Lists.Check(t.Context(), list, 0); err != nil || tally.Drawing != 2 || tally.Pending() != 0 {
		t.Errorf("tickets of a list between freeze and draw: %+v, %v", tally, err)
	}
	if _, err := r.Lists.Revoke(t.Context(), list, fairness.RevokedBot); !errors.Is(err, ErrDrawing) {
		t.Errorf("revoked a list between freeze and draw: %v, want ErrDrawing", err)
	}
	eventually(t, "the round is out", func() bool { return millis.Of(time.Now()) > first.Due+1000 })
	joinMany(t, r, 2) // in a later window
	eventually(t, "that is frozen too", func() bool { return len(pending()) == 2 })
	if a := r.Evidence.Awaited(); len(a) != 2 || a[0].Round != first.Round || a[0].HasRound || !a[0].Due.Equal(millis.Time(first.Due)) {
		t.Errorf("awaited %+v", a)
	}
	if n := r.Snapshot().Counts; n.Drawn != 0 || n.Arrivals != 4 {
		t.Errorf("without the beacon: %+v", n)
	}
	signature, err := b.Sign(first.Round)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := b.Sign(first.Round - 1)
	elsewhere := get(t, node(t, url, master), "late")
	for name, err := range map[string]error{
		"forged":     elsewhere.Evidence.TakeRound(t.Context(), first.Round, other),
		"not waited": elsewhere.Evidence.TakeRound(t.Context(), first.Round-1, other),
		"empty":      elsewhere.Evidence.TakeRound(t.Context(), first.Round, nil),
	} {
		if !errors.Is(err, evidence.ErrRound) {
			t.Errorf("%s: %v, want evidence.ErrRound", name, err)
		}
	}
	if err := elsewhere.Evidence.TakeRound(t.Context(), first.Round, signature); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first window is drawn", isDrawn(r, 2))
	if err := r.Revoke(t.Context(), waiting[0].ticket, fairness.RevokedBot); err != nil {
		t.Errorf("revoked after the draw: %v", err)
	}
	b.isAway.Store(false)
	eventually(t, "so is the second", isDrawn(r, 4))
	if report := audited(t, r, b); report.Level != verifier.LevelUnpredictable {
		t.Errorf("level %d", report.Level)
	}
}

// TestWitnessAway: a dead witness delays no join, and lowers the level only if the others are not a majority.
func TestWitnessAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		alive []string
		level int
	}{{[]string{"one.example.org", "another.example.org"}, verifier.LevelWitnessed}, {[]string{"one.example.org"}, verifier.LevelUnpredictable}} {
		t.Run(fmt.Sprintf("%d alive", len(c.alive)), func(t *testing.T) {
			t.Parallel()
			steadily(t, func(t *testing.T) string {
				b, dead := newBeacon(t), newWitness(t, "dead.example.org")
				dead.server.Close()
				all, asked := []*testWitness{dead}, []evidence.Witness{dead.asked()}
				for _, name := range c.alive {
					alive := newWitness(t, name)
					all, asked = append(all, alive), append(asked, alive.asked())
				}
				rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []evidence.Chain{b.chain()}, Witnesses: asked})
				r := create(t, rs, Config{Slug: "half", Windows: []WindowRule{{Length: Duration(500 * time.Millisecond)}}, Margin: span(5 * time.Second), Quorum: quorum(2)})
				for _, w := range all[1:] {
					w.follow(t, r)
				}
				joinMany(t, r, 3)
				eventually(t, "the window is drawn", isDrawn(r, 3))
				if report := audited(t, r, b, all...); report.Level != c.level {
					return fmt.Sprintf("level %d, want %d", report.Level, c.level)
				}
				return ""
			})
		})
	}
}

// TestOthers refuses rooms that need what the server does not have.
func TestOthers(t *testing.T) {
	t.Parallel()
	b, w := newBeacon(t), newWitness(t, "one.example.org")
	rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Chains: []evidence.Chain{b.chain()}, Witnesses: []evidence.Witness{w.asked()}})
	for fields, c := range map[string]Config{
		"beacon":        {Beacon: "drand:quicknet"},
		"quorum":        {Quorum: quorum(2)},
		"quorum ":       {Beacon: "none", Quorum: quorum(1)},
		"margin":        {Beacon: "none", Margin: span(5 * time.Second)},
		"beacon.margin": {Margin: span(time.Millisecond)},
		"beacon slug":   {Slug: "-", Beacon: "drand:moon"},
	} {
		if c.Slug == "" {
			c.Slug = "a"
		}
		_, err := rs.Create(t.Context(), c)
		if got := problemFields(t, err); got != strings.TrimSpace(fields) {
			t.Errorf("%+v: problems with %s, want %s", c, got, fields)
		}
	}
	plain := create(t, rs, Config{Slug: "plain", Beacon: "none"})
	if p := plain.Policy(); p.Beacon != nil || len(p.Witnesses) > 0 {
		t.Errorf("policy %+v", p)
	}
	usual := create(t, rs, Config{Slug: "usual"})
	if p := usual.Policy(); p.Beacon == nil || p.Quorum != 1 || len(p.Witnesses) != 1 || p.Beacon.Margin != 5000 {
		t.Errorf("policy %+v", p)
	}
	alone := create(t, rs, Config{Slug: "alone", Quorum: quorum(0)})
	if p := alone.Policy(); p.Beacon == nil || p.Quorum != 0 || len(p.Witnesses) != 0 {
		t.Errorf("policy %+v", p)
	}
}

// moodyWitness refuses all requests until it serves.
type moodyWitness struct {
	evidence.Cosigner
	asked  atomic.Int32
	serves atomic.Bool
}

func (w *moodyWitness) AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash, signed []byte) (audit.Cosignature, error) {
	w.asked.Add(1)
	if !w.serves.Load() {
		return audit.Cosignature{}, witness.ErrAnswer
	}
	return w.Cosigner.AddCheckpoint(ctx, old, proof, signed)
}

// TestWitnessNews: the log says once that a witness does not cosign, and that it does again only when it has
// cosigned.
func TestWitnessNews(t *testing.T) {
	t.Parallel()
	b, w := newBeacon(t), newWitness(t, "moody.example.org")
	moody, logged := &moodyWitness{Cosigner: w.asked().Cosigner}, new(safeBuffer)
	rs := start(t, connect(t, pgtest.URL(t)), Options{
		MasterKey: newMaster(t), Chains: []evidence.Chain{b.chain()},
		Witnesses: []evidence.Witness{{Key: w.Key(), Cosigner: moody}}, Log: slog.New(slog.NewTextHandler(logged, nil)),
	})
	r := create(t, rs, Config{Slug: "moody"})
	w.follow(t, r)
	eventually(t, "the witness is asked again", func() bool { return moody.asked.Load() >= 3 })
	moody.serves.Store(true)
	again := func() int { return strings.Count(logged.String(), `"witness cosigns again" room=moody`) }
	if n := strings.Count(logged.String(), `"witness does not cosign" room=moody`); n != 1 || again() != 0 {
		t.Errorf("the log says %d times that it does not cosign, and %d times that it does:\n%s", n, again(), logged.String())
	}
	eventually(t, "it cosigns", func() bool { return again() == 1 })
}

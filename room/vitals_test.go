package room

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/projection"
)

// TestMetrics tests a room with an unreachable beacon and two witnesses, one of which never signs.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b, one, dead := newBeacon(t), newWitness(t, "one.example.org"), newWitness(t, "dead.example.org")
	b.isAway.Store(true)
	url, master := pgtest.URL(t), newMaster(t)
	options := Options{MasterKey: master, Chains: []evidence.Chain{b.chain()}, Witnesses: []evidence.Witness{one.asked(), dead.asked()}}
	rs := start(t, connect(t, url), options)
	r := create(t, rs, Config{Slug: "vitals", Windows: []WindowRule{{Length: Duration(3 * time.Second)}}, Margin: span(5 * time.Second), Quorum: quorum(2)})
	one.follow(t, r)
	if v := r.Metrics(); !v.HasBeacon || v.Pending != 0 || v.Active != 0 || v.Witnesses[0].Draws != 0 || v.Appended != 0 {
		t.Errorf("vitals of an empty room %+v", v)
	}
	joinMany(t, r, 2)
	eventually(t, "a draw waits for its round, cosigned", func() bool {
		v := r.Metrics()
		return v.Pending == 1 && len(v.Awaited) == 1 && !v.Awaited[0].HasRound && slices.Equal(v.Awaited[0].Cosigned, []string{"one.example.org"})
	})
	b.isAway.Store(false)
	eventually(t, "both are called", func() bool { return r.Metrics().Active == 2 })
	want := []WitnessMetrics{{"one.example.org", 1, 1}, {"dead.example.org", 0, 1}}
	v := r.Metrics()
	if diff := cmp.Diff(want, v.Witnesses); diff != "" || v.Pending != 0 || v.Appended <= 0 || time.Since(v.Now).Abs() > time.Minute {
		t.Errorf("vitals %+v, witnesses (-want +got)\n%s", v, diff)
	}
	var all uint64 // some of it may not be stored yet
	r.view.Read(func(p *projection.Projection, _ uint64) { all = p.Size() })
	eventually(t, "all is published", func() bool {
		v := r.Metrics()
		return v.Published.Size >= all && v.Published.Size == v.Snapshot.Size && v.Now.Sub(v.Published.At).Abs() < time.Minute
	})
	again := get(t, start(t, connect(t, url), options), "vitals")
	if diff := cmp.Diff(want, again.Metrics().Witnesses); diff != "" {
		t.Errorf("on a node that starts (-want +got)\n%s", diff)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.URL(t))
	rs := start(t, pool, Options{MasterKey: newMaster(t)})
	eventually(t, "the node is ready", rs.Ready)
	r := create(t, rs, quick("health"))
	used := r.lastUse.Load()
	h := rs.Health()
	if !h.Ready || !h.Answers || h.Took <= 0 || time.Since(h.Answered) > time.Minute || h.Rooms != 1 || h.Pool.Max < 1 || h.Ahead.Abs() > time.Minute {
		t.Errorf("health %+v", h)
	}
	r.lastUse.Store(used - 100)
	if rooms := rs.Loaded(); len(rooms) != 1 || rooms[0] != r || r.lastUse.Load() != used-100 {
		t.Errorf("loaded %v, last used at %d", rooms, r.lastUse.Load())
	}
	pool.Close()
	eventually(t, "the database is away", func() bool { h := rs.Health(); return !h.Answers && !h.Ready })
}

func TestReadEntries(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), quick("entries"))
	admit(t, r)
	kinds := map[fairness.Kind]int{}
	read := func(e fairness.Entry) error { kinds[fairness.KindOf(e)]++; return nil }
	if err := r.Transcript.ReadEntries(t.Context(), read); err != nil || kinds[fairness.KindRoom] != 1 || kinds[fairness.KindArrive] != 1 || kinds[fairness.KindAdmit] != 1 {
		t.Errorf("read %v, %v", kinds, err)
	}
	stop := errors.New("stop")
	if err := r.Transcript.ReadEntries(t.Context(), func(fairness.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped by the reader: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Transcript.ReadEntries(ctx, read); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped by the context: %v", err)
	}
}

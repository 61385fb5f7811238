package pgroom_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

func ids(n int) []uuid.UUID {
	list := make([]uuid.UUID, n)
	for i := range list {
		list[i] = uuid.New()
	}
	return list
}

// TestAddNews tries everything that can be reported about unqueued sessions; time passes by moving stored
// times back.
func TestAddNews(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, room, all, nodes := t.Context(), uuid.New(), ids(6), ids(2)
	news := func(n pgroom.Reports) pgroom.Reports { n.Length, n.MaxLength = 600_000, 900_000; return n }
	for _, step := range []struct {
		name   string
		passed time.Duration
		news   pgroom.Reports
		want   pgroom.Unqueued
	}{
		{"nothing", 0, pgroom.Reports{}, pgroom.Unqueued{}},
		{"some begin", 0, pgroom.Reports{Nodes: nodes[:1], Started: all[:4]}, pgroom.Unqueued{Started: 4, Active: 4, Nodes: 1}},
		{"reported again, with more", 0, pgroom.Reports{Nodes: nodes[:1], Started: append(all[:5:5], all[4], all[0])}, pgroom.Unqueued{Started: 5, Active: 5, Nodes: 1}},
		{"by another node too", 0, pgroom.Reports{Nodes: []uuid.UUID{nodes[1], nodes[1], nodes[0]}, Started: all[:2], Active: []uuid.UUID{all[5], uuid.New()}}, pgroom.Unqueued{Started: 5, Active: 5, Nodes: 2}},
		{"one ends", 0, pgroom.Reports{Ended: []uuid.UUID{all[0], all[0], all[5]}}, pgroom.Unqueued{Started: 5, Active: 4, Nodes: 2}},
		{"what ended does not go on", 0, pgroom.Reports{Active: all[:1], Started: all[:1]}, pgroom.Unqueued{Started: 5, Active: 4, Nodes: 2}},
		{"a node falls silent", 11 * time.Second, pgroom.Reports{Nodes: nodes[1:]}, pgroom.Unqueued{Started: 5, Active: 4, Nodes: 1}},
		{"a minute is over", 50 * time.Second, pgroom.Reports{Started: all[5:]}, pgroom.Unqueued{Started: 1, Active: 5}},
		{"some are active", 8 * time.Minute, pgroom.Reports{Active: all[1:3]}, pgroom.Unqueued{Active: 5}},
		{"other sessions expire", 59 * time.Second, pgroom.Reports{}, pgroom.Unqueued{Active: 3}},
		{"touched, up to their most", 4 * time.Minute, pgroom.Reports{Active: all[1:3]}, pgroom.Unqueued{Active: 2}},
		{"they run out", time.Minute + 2*time.Second, pgroom.Reports{Active: all[1:3]}, pgroom.Unqueued{}},
	} {
		const back = `update room_free_sessions set began_ms = began_ms - $1, until_ms = until_ms - $1`
		if _, err := pool.Exec(ctx, back, step.passed.Milliseconds()); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(ctx, `update room_connectors set seen_ms = seen_ms - $1`, step.passed.Milliseconds()); err != nil {
			t.Fatal(err)
		}
		got, err := s.Connectors.AddReports(ctx, room, news(step.news))
		if diff := cmp.Diff(step.want, got); err != nil || diff != "" {
			t.Errorf("%s (-want +got) %v:\n%s", step.name, err, diff)
		}
		all, err := s.Connectors.CountUnqueued(ctx, []uuid.UUID{room, uuid.New()})
		if diff := cmp.Diff(step.want, all[room]); err != nil || diff != "" {
			t.Errorf("%s, read (-want +got) %v:\n%s", step.name, err, diff)
		}
	}
	for _, c := range []struct {
		kept time.Duration
		want int
	}{{time.Hour, 6}, {0, 0}} {
		if err := s.Connectors.DeleteExpired(ctx, c.kept, c.kept); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := pool.QueryRow(ctx, `select count(*) from room_free_sessions`).Scan(&left); err != nil || left != c.want {
			t.Errorf("%d sessions are kept for %v, want %d: %v", left, c.kept, c.want, err)
		}
	}
}

// TestMadeUpNodes: a token can invent only a limited number of nodes, and known nodes stay known.
func TestMadeUpNodes(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, room, nodes := t.Context(), uuid.New(), ids(2)
	if _, err := s.Connectors.AddReports(ctx, room, pgroom.Reports{Nodes: nodes[:1]}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `insert into room_connectors (room_id, node, seen_ms) select $1, gen_random_uuid(), 0 from generate_series(1, 20000)`, room); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `update room_connectors set seen_ms = seen_ms - 60000`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Connectors.AddReports(ctx, room, pgroom.Reports{Nodes: nodes}); err != nil || got != (pgroom.Unqueued{Nodes: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Connectors.AddReports(ctx, uuid.New(), pgroom.Reports{Nodes: nodes}); err != nil || got != (pgroom.Unqueued{Nodes: 2}) {
		t.Errorf("of another room: %+v, %v", got, err)
	}
}

// TestAddNewsTogether sends the same reports concurrently, in every order: nothing counts twice, and no call
// waits forever.
func TestAddNewsTogether(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	room, all, nodes := uuid.New(), ids(300), ids(8)
	var tellers sync.WaitGroup
	for i := range 32 {
		tellers.Go(func() {
			list := append(append([]uuid.UUID{}, all[i*9:]...), all[:i*9]...)
			n := pgroom.Reports{Nodes: []uuid.UUID{nodes[i%8], nodes[(i+3)%8]}, Started: list, Active: list, Ended: list[:0], Length: 60_000, MaxLength: 240_000}
			if i >= 16 {
				n.Started, n.Ended = nil, list[:10]
			}
			if _, err := s.Connectors.AddReports(t.Context(), room, n); err != nil {
				t.Error(err)
			}
		})
	}
	tellers.Wait()
	got, err := s.Connectors.AddReports(t.Context(), room, pgroom.Reports{})
	if err != nil || got.Started != 300 || got.Nodes != 8 || got.Active > 300 {
		t.Errorf("in the end %+v, %v", got, err)
	}
	if got, err := s.Connectors.AddReports(t.Context(), room, pgroom.Reports{Ended: all}); err != nil || got != (pgroom.Unqueued{Started: 300, Nodes: 8}) {
		t.Errorf("all ended: %+v, %v", got, err)
	}
}

// TestClaimFailOpen: many callers claim pending intervals, each interval once. Unfinished ones can be claimed
// again, unchanged.
func TestClaimFailOpen(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, room := t.Context(), uuid.New()
	var list []pgroom.FailOpen
	for i := range 20 {
		list = append(list, pgroom.FailOpen{ID: uuid.New(), From: int64(1000 + i), Until: int64(2000 + i), Requests: int64(i)})
	}
	for range 2 {
		if recorded, err := s.Connectors.AddFailOpen(ctx, room, list); err != nil || len(recorded) > 0 {
			t.Fatalf("recorded %v, %v", recorded, err)
		}
	}
	var mu sync.Mutex
	claims := map[uuid.UUID]pgroom.Claim{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			c, err := s.Connectors.ClaimFailOpen(ctx, room, 1)
			if err != nil || len(c.Reports) > 1 || c.IsAgain {
				t.Errorf("claim %+v, %v", c, err)
			}
			mu.Lock()
			defer mu.Unlock()
			claims[c.ID] = c
		})
	}
	all.Wait()
	rest, err := s.Connectors.ClaimFailOpen(ctx, room, 100)
	if err != nil {
		t.Fatal(err)
	}
	seen := len(rest.Reports)
	for _, c := range claims {
		seen += len(c.Reports)
	}
	if seen != len(list) {
		t.Errorf("%d reports were claimed of %d", seen, len(list))
	}
	var first pgroom.Claim
	for _, c := range claims {
		if len(c.Reports) > 0 {
			first = c
		}
	}
	if _, err := pool.Exec(ctx, `update room_fail_open set claimed_at = claimed_at - interval '61 seconds' where claim = $1`, first.ID); err != nil {
		t.Fatal(err)
	}
	again, err := s.Connectors.ClaimFailOpen(ctx, room, 100)
	if diff := cmp.Diff(pgroom.Claim{ID: first.ID, IsAgain: true, Reports: first.Reports}, again); err != nil || diff != "" {
		t.Errorf("claimed again (-want +got) %v:\n%s", err, diff)
	}
	if err := s.Connectors.MarkRecorded(ctx, room, first.ID); err != nil {
		t.Fatal(err)
	}
	recorded, err := s.Connectors.AddFailOpen(ctx, room, list)
	if diff := cmp.Diff(map[uuid.UUID]bool{first.Reports[0].ID: true}, recorded); err != nil || diff != "" {
		t.Errorf("recorded (-want +got) %v:\n%s", err, diff)
	}
	if err := s.Connectors.Unclaim(ctx, room, rest.ID); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Connectors.ClaimFailOpen(ctx, room, 100); err != nil || len(c.Reports) != len(rest.Reports) || c.IsAgain {
		t.Errorf("what was given back: %+v, %v", c, err)
	}
	rooms, err := s.Connectors.WaitingFailOpen(ctx, []uuid.UUID{room, uuid.New()})
	if diff := cmp.Diff([]uuid.UUID{room}, rooms); err != nil || diff != "" {
		t.Errorf("rooms for which reports wait (-want +got) %v:\n%s", err, diff)
	}
}

// TestFailOpenAhead: intervals of a connector whose clock is ahead are moved back, and a room accepts only a
// limited number of reports.
func TestFailOpenAhead(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	room, ahead := uuid.New(), time.Now().Add(time.Hour).UnixMilli()
	if _, err := s.Connectors.AddFailOpen(t.Context(), room, []pgroom.FailOpen{{ID: uuid.New(), From: ahead - 5_000, Until: ahead, Requests: 7}}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Connectors.ClaimFailOpen(t.Context(), room, 10)
	if err != nil || len(c.Reports) != 1 {
		t.Fatalf("claim %+v, %v", c, err)
	}
	if u := c.Reports[0]; u.Until > time.Now().UnixMilli() || u.Until-u.From != 5_000 || u.Requests != 7 {
		t.Errorf("moved to %+v", u)
	}
	for range 30 {
		var list []pgroom.FailOpen
		for range 50 {
			list = append(list, pgroom.FailOpen{ID: uuid.New(), From: 1, Until: 2})
		}
		if _, err := s.Connectors.AddFailOpen(t.Context(), room, list); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.Connectors.ClaimFailOpen(t.Context(), room, 10_000); err != nil || len(c.Reports) < 900 || len(c.Reports) > 1_049 {
		t.Errorf("%d reports wait, %v", len(c.Reports), err)
	}
}

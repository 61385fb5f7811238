package pglive_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// store returns a store with the permissions of the server's role, and its pool.
func store(t *testing.T) (*pglive.Store, *pgxpool.Pool) {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	return pglive.NewStore(pool), pool
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// minute returns the row of minute n after noon.
func minute(room uuid.UUID, n int64) pglive.Minute {
	return pglive.Minute{
		Room: room, At: noon.Add(time.Duration(n) * time.Minute), Arrivals: 100 * n, Drawn: 90 * n, Called: 80 * n,
		Admitted: 70 * n, NoShows: 6 * n, Gone: n,
		Waiting: 1000 - 100*n, Active: 50 + n%3, Peak: 7 * (n % 4), PerMinute: 600 - n, MaxActive: n, Paused: n == 2,
	}
}

func TestMinutes(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx, a, b := t.Context(), uuid.New(), uuid.New()
	var all []pglive.Minute
	for n := range int64(7) {
		if n != 4 { // a gap
			all = append(all, minute(a, n))
		}
	}
	if err := s.AddMinutes(ctx, append(all[:3:3], minute(b, 1))); err != nil {
		t.Fatal(err)
	}
	late := minute(a, 1)
	late.Arrivals = 9999 // from a slower node
	if err := s.AddMinutes(ctx, append([]pglive.Minute{late}, all...)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Minutes(ctx, a, noon, noon.Add(time.Hour), time.Minute)
	if diff := cmp.Diff(all, got); err != nil || diff != "" {
		t.Errorf("by the minute (-want +got) %v\n%s", err, diff)
	}
	got, err = s.Minutes(ctx, a, noon.Add(time.Minute), noon.Add(5*time.Minute), 3*time.Minute)
	first, second := minute(a, 2), minute(a, 3)
	first.At, first.Waiting, first.Peak = noon, 900, 14
	want := []pglive.Minute{first, second}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("every three minutes, without the first (-want +got) %v\n%s", err, diff)
	}
	if pruned, err := s.Prune(ctx, noon.Add(2*time.Minute)); err != nil || pruned != 3 {
		t.Errorf("pruned %d, %v; want two of a and one of b", pruned, err)
	}
	got, err = s.Minutes(ctx, a, noon, noon.Add(time.Hour), time.Minute)
	if diff := cmp.Diff(all[2:], got); err != nil || diff != "" {
		t.Errorf("after pruning (-want +got) %v\n%s", err, diff)
	}
	if got, err := s.Minutes(ctx, b, noon, noon.Add(time.Hour), time.Minute); err != nil || len(got) != 0 {
		t.Errorf("of the other room %v, %v", got, err)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx, room := t.Context(), uuid.New()
	if _, err := s.Summary(ctx, room); !errors.Is(err, pglive.ErrNotFound) {
		t.Errorf("before: %v, want ErrNotFound", err)
	}
	for _, text := range []string{`{"a":1}`, `{"a":2}`} {
		if err := s.AddSummary(ctx, room, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := s.Summary(ctx, room)
	var got map[string]int
	if err := errors.Join(err, json.Unmarshal(text, &got)); err != nil || got["a"] != 1 {
		t.Errorf("summary %s, %v", text, err)
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx := t.Context()
	one := pglive.Node{ID: uuid.New(), Name: "one", Version: "v1", Started: noon, Healthy: true, Rooms: 3,
		Goroutines: 40, Heap: 1 << 33, Ahead: -1500 * time.Millisecond, Refused: map[string]uint64{"joins": 7,
			"pages": 0}}
	two := one
	two.ID, two.Name, two.Started = uuid.New(), "two", noon.Add(time.Hour)
	var nodes []pglive.Node
	var err error
	for _, n := range []pglive.Node{two, one, two} {
		if n.ID == two.ID && nodes != nil {
			two.Healthy, n.Healthy = false, false
		}
		if nodes, err = s.SeeNode(ctx, n, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	ignore := cmpopts.IgnoreFields(pglive.Node{}, "Seen", "Ago")
	if diff := cmp.Diff([]pglive.Node{one, two}, nodes, ignore); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
	for _, n := range nodes {
		if n.Ago < 0 || n.Ago > time.Minute || time.Since(n.Seen).Abs() > time.Minute {
			t.Errorf("%s seen at %v, %v ago", n.Name, n.Seen, n.Ago)
		}
	}
	if _, err := pool.Exec(ctx, `update nodes set seen_at = seen_at - interval '1 hour' where name = 'one'`); err != nil {
		t.Fatal(err)
	}
	if nodes, err = s.SeeNode(ctx, two, time.Minute); err != nil || len(nodes) != 1 || nodes[0].ID != two.ID {
		t.Errorf("with one gone: %v, %v", nodes, err)
	}
	if _, err := s.Prune(ctx, time.Now().Add(-30*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := s.LeaveNode(ctx, two.ID); err != nil {
		t.Fatal(err)
	}
	if nodes, err = s.SeeNode(ctx, two, 100*time.Hour); err != nil || len(nodes) != 1 {
		t.Errorf("after one was pruned, and the other left and came back: %v, %v", nodes, err)
	}
}

// TestAway checks that queries return errors, not empty results, while the database is down.
func TestAway(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	pool.Close()
	ctx, id := t.Context(), uuid.New()
	_, errMinutes := s.Minutes(ctx, id, noon, noon, time.Minute)
	_, errSummary := s.Summary(ctx, id)
	_, errNode := s.SeeNode(ctx, pglive.Node{ID: id}, time.Minute)
	_, errPrune := s.Prune(ctx, noon)
	for i, err := range []error{errMinutes, errSummary, errNode, errPrune, s.AddMinutes(ctx, []pglive.Minute{{}}),
		s.AddSummary(ctx, id, []byte("{}")), s.LeaveNode(ctx, id)} {
		if err == nil || errors.Is(err, pglive.ErrNotFound) {
			t.Errorf("question %d: %v", i, err)
		}
	}
}

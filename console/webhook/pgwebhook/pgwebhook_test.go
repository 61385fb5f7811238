package pgwebhook_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

var (
	org = uuid.New()
	now = time.Now().Truncate(time.Microsecond)
)

// store returns a store with the permissions of the server's role.
func store(t *testing.T) *pgwebhook.Store {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	return pgwebhook.NewStore(pool)
}

func endpoint(id uuid.UUID) pgwebhook.Endpoint {
	return pgwebhook.Endpoint{Org: org, ID: id, URL: "https://example.com", Events: []string{}, Rooms: []string{},
		Secret: []byte{1}, Created: now, Since: now}
}

func delivery(target uuid.UUID) pgwebhook.Delivery {
	return pgwebhook.Delivery{Org: org, ID: uuid.Must(uuid.NewV7()), Target: target, Recipient: "https://example.com",
		Type: "test.ping", Payload: "{}", Created: now}
}

// count returns the number of deliveries.
func count(t *testing.T, s *pgwebhook.Store) int {
	t.Helper()
	list, err := s.Outbox.List(t.Context(), org, pgwebhook.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestAdvance checks that of several nodes following a room from the same position only one stores
// deliveries, and that late claims find nothing to do.
func TestAdvance(t *testing.T) {
	t.Parallel()
	s, r := store(t), pgwebhook.Room{ID: uuid.New(), Org: org}
	for range 2 { // the second changes nothing
		if err := s.Cursors.Begin(t.Context(), r, pgwebhook.Cursor{Next: 3, State: []byte(`{"called":2}`)}, now); err != nil {
			t.Fatal(err)
		}
	}
	was, ok, err := s.Cursors.Claim(t.Context(), r.ID, now, now)
	if err != nil || !ok || was.Next != 3 || string(was.State) != `{"called": 2}` {
		t.Fatalf("claim: %+v, %t, %v", was, ok, err)
	}
	if _, ok, err := s.Cursors.Claim(t.Context(), r.ID, now.Add(time.Second), now.Add(-time.Millisecond)); ok || err != nil {
		t.Errorf("claimed by two within a moment: %t, %v", ok, err)
	}
	next := was
	next.Next = 7
	out := pgwebhook.Outgoing{Deliveries: []pgwebhook.Delivery{delivery(uuid.New())}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := s.Cursors.Advance(t.Context(), r.ID, was, next, out); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(t, s); n != 1 {
		t.Errorf("%d deliveries", n)
	}
	slow, _, _ := s.Cursors.Claim(t.Context(), r.ID, now.Add(time.Second), now.Add(time.Second))
	quick, ok, err := s.Cursors.Claim(t.Context(), r.ID, now.Add(2*time.Second), now.Add(2*time.Second))
	if err != nil || !ok || quick.Next != 7 {
		t.Fatalf("claim again: %+v, %t, %v", quick, ok, err)
	}
	done := quick
	done.Done = true
	another := pgwebhook.Outgoing{Deliveries: []pgwebhook.Delivery{delivery(uuid.New())}}
	if err := errors.Join(s.Cursors.Advance(t.Context(), r.ID, slow, slow, another),
		s.Cursors.Advance(t.Context(), r.ID, quick, done, pgwebhook.Outgoing{})); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s); n != 1 {
		t.Errorf("%d deliveries after an overtaken node", n)
	}
	if _, ok, err := s.Cursors.Claim(t.Context(), r.ID, now.Add(time.Hour), now.Add(time.Hour)); ok || err != nil {
		t.Errorf("claimed after the end: %t, %v", ok, err)
	}
}

// TestAlertsOnce checks that of several nodes with the same problem only one alerts.
func TestAlertsOnce(t *testing.T) {
	t.Parallel()
	s := store(t)
	send := func(kind, room string, at time.Time) {
		t.Helper()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				a := pgwebhook.Alert{Org: org, Kind: kind, About: room, At: at, Quiet: time.Minute,
					Deliveries: []pgwebhook.Delivery{delivery(pgwebhook.Mail)}}
				if err := s.Outbox.Add(t.Context(), pgwebhook.Outgoing{Alerts: []pgwebhook.Alert{a}}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	for i, c := range []struct {
		kind, room string
		at         time.Time
	}{{"a", "x", now}, {"a", "y", now}, {"b", "x", now}, {"a", "x", now.Add(time.Minute)}} {
		send(c.kind, c.room, c.at)
		if n := count(t, s); n != i+1 {
			t.Fatalf("%d deliveries after alert %d", n, i+1)
		}
	}
	send("a", "x", now.Add(2*time.Minute-time.Millisecond))
	if n := count(t, s); n != 4 {
		t.Errorf("%d deliveries, one too early", n)
	}
}

// TestSince checks that alerts cover only the time with recipients, and that following restarts
// when there are recipients again.
func TestSince(t *testing.T) {
	t.Parallel()
	s, r := store(t), pgwebhook.Room{ID: uuid.New(), Org: org}
	set := func(at time.Time, emails ...string) time.Time {
		t.Helper()
		a := pgwebhook.Alerts{Org: org, Emails: append([]string{}, emails...), Endpoints: []uuid.UUID{},
			Kinds: []string{"a"}, NoShows: 30, Since: at}
		if err := s.AlertSettings.Set(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		got, err := s.AlertSettings.Get(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		return got.Since
	}
	isFollowed := func() bool {
		t.Helper()
		_, ok, err := s.Cursors.Claim(t.Context(), r.ID, now, now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for i, c := range []struct {
		at       time.Duration
		emails   []string
		since    time.Duration
		followed bool
	}{
		{0, nil, 0, false},
		{1, []string{"a@example.com"}, 1, false},
		{2, []string{"b@example.com"}, 1, true},
		{3, nil, 1, true},
		{4, []string{"a@example.com"}, 4, false},
	} {
		if err := s.Cursors.Begin(t.Context(), r, pgwebhook.Cursor{State: []byte(`{}`)}, now); err != nil {
			t.Fatal(err)
		}
		if since := set(now.Add(c.at*time.Minute), c.emails...); !since.Equal(now.Add(c.since * time.Minute)) {
			t.Errorf("step %d: since %v, want %d min", i, since.Sub(now), c.since)
		}
		if isFollowed() != c.followed {
			t.Errorf("step %d: followed %t", i, !c.followed)
		}
	}
}

// TestMostEndpoints checks that concurrent additions do not exceed the limit of endpoints.
func TestMostEndpoints(t *testing.T) {
	t.Parallel()
	s := store(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range 8 {
		all.Go(func() {
			err := s.Endpoints.Insert(t.Context(), endpoint(uuid.New()), 3)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, pgwebhook.ErrTooManyEndpoints) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := s.Endpoints.List(t.Context(), org); err != nil || len(list) != 3 || refused != 5 {
		t.Errorf("%d endpoints, %d refused, %v", len(list), refused, err)
	}
}

// TestTakeOnce checks that each delivery is leased to one node, and that unfinished ones return
// when the lease ends.
func TestTakeOnce(t *testing.T) {
	t.Parallel()
	s, id := store(t), uuid.New()
	if err := s.Endpoints.Insert(t.Context(), endpoint(id), 3); err != nil {
		t.Fatal(err)
	}
	out := pgwebhook.Outgoing{}
	for range 20 {
		out.Deliveries = append(out.Deliveries, delivery(id), delivery(pgwebhook.Mail))
	}
	if err := s.Outbox.Add(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	limits := pgwebhook.Limits{Now: now, Until: now.Add(time.Minute), Lane: 4, Healthy: 32, Failing: 16}
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := map[uuid.UUID]pgwebhook.Taken{}
	for range 8 {
		all.Go(func() {
			list, err := s.Outbox.Take(t.Context(), limits)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			for _, d := range list {
				if _, ok := taken[d.ID]; ok {
					t.Error("taken twice")
				}
				taken[d.ID] = d
			}
		})
	}
	all.Wait()
	lanes := map[uuid.UUID]int{}
	for _, d := range taken {
		lanes[d.Target]++
		if d.Attempts != 1 || d.Tries != 1 || (d.Secret == nil) != (d.Target == pgwebhook.Mail) {
			t.Errorf("taken %+v", d)
		}
	}
	if fmt.Sprint(lanes[id], lanes[pgwebhook.Mail]) != "4 4" {
		t.Errorf("lanes %v", lanes)
	}
	for _, d := range taken { // one is finished late, while another node has it
		again, err := s.Outbox.Take(t.Context(), pgwebhook.Limits{Now: limits.Until, Until: limits.Until.Add(time.Minute),
			Lane: 40, Healthy: 80})
		if err != nil || len(again) != 40 {
			t.Fatalf("after the lease %d, %v", len(again), err)
		}
		due := now.Add(time.Hour)
		if _, err := s.Outbox.Finish(t.Context(), d.Delivery, pgwebhook.Attempt{Number: 1, At: now, Error: "late"},
			&due); err != nil {
			t.Fatal(err)
		}
		if got, log, err := s.Outbox.Get(t.Context(), org, d.ID); err != nil || !got.Due.Equal(now) || len(log) != 1 {
			t.Errorf("%+v, %v, %v", got, log, err)
		}
		break
	}
}

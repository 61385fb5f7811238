package pgroom_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

// TestOver lists sessions that were ended, and none that expired.
func TestOver(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, room, free := t.Context(), uuid.New(), ids(4)
	first, second, runsOut, goesOn := admission(room, time.Hour), admission(room, time.Hour), admission(room, -time.Second), admission(room, time.Hour)
	over := func(since time.Duration, most int) []uuid.UUID {
		t.Helper()
		list, err := s.Connectors.Ended(ctx, room, since, most)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := over(time.Minute, 10); len(got) != 0 {
		t.Errorf("nothing has ended, but %v", got)
	}
	news := func(n pgroom.Reports) {
		t.Helper()
		n.Length, n.MaxLength = 600_000, 900_000
		if _, err := s.Connectors.AddReports(ctx, room, n); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // one is later than the other
	}
	news(pgroom.Reports{Started: free})
	news(pgroom.Reports{Ended: free[:1]})
	if _, err := s.Sessions.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond)
	news(pgroom.Reports{Ended: []uuid.UUID{free[1], uuid.New()}})
	changes := pgroom.Changes{Touch: []pgroom.Admission{goesOn}, Release: []pgroom.Admission{second, runsOut}, Length: 1000, More: 1000}
	if _, err := s.Sessions.ChangeAll(ctx, room, changes); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sessions.Redeem(ctx, goesOn, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `update room_free_sessions set until_ms = until_ms - 10000000 where session_id = $1`, free[2]); err != nil {
		t.Fatal(err)
	}
	all := []uuid.UUID{second.Pass, free[1], first.Pass, free[0]}
	if got := over(time.Minute, 10); !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	if got := over(time.Minute, 3); !slices.Equal(got, all[:3]) {
		t.Errorf("at most three: %v, want %v", got, all[:3])
	}
	if _, err := s.Sessions.Release(ctx, first); err != nil { // again
		t.Fatal(err)
	}
	if got := over(time.Minute, 10); !slices.Equal(got, all) {
		t.Errorf("after one was ended again: %v, want %v", got, all)
	}
	if _, err := pool.Exec(ctx, `update room_sessions set released_at = released_at - interval '1 minute' where pass_id = $1`, first.Pass); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `update room_free_sessions set ended_ms = ended_ms - 60000 where session_id = $1`, free[0]); err != nil {
		t.Fatal(err)
	}
	if got := over(30*time.Second, 10); !slices.Equal(got, all[:2]) {
		t.Errorf("of the last 30 s: %v, want %v", got, all[:2])
	}
	if got, err := s.Connectors.Ended(ctx, uuid.New(), time.Minute, 10); err != nil || len(got) != 0 {
		t.Errorf("another room has %v, %v", got, err)
	}
}

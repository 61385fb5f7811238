package pgroom_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

// admission returns an admission whose session and pass end after given durations from now.
func admission(room uuid.UUID, left time.Duration) pgroom.Admission {
	ends := time.Now().Add(left).UnixMilli()
	return pgroom.Admission{Room: room, Pass: uuid.New(), Expires: ends, Ends: ends}
}

func TestRedeemTogether(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	a := admission(uuid.New(), time.Hour)
	var all sync.WaitGroup
	var first atomic.Int32
	for range 50 {
		all.Go(func() {
			got, err := s.Sessions.Redeem(t.Context(), a, nil)
			if err != nil || !got.Redeemed || got.Released || got.Until != a.Ends {
				t.Errorf("redeem: %+v, %v", got, err)
			}
			if got.Changed {
				first.Add(1)
			}
		})
	}
	all.Wait()
	if first.Load() != 1 {
		t.Errorf("redeemed %d times", first.Load())
	}
}

// TestSession tries the operations on a session in every order that matters.
func TestSession(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx, room := t.Context(), uuid.New()
	type step struct {
		name                        string
		changed, redeemed, released bool
	}
	for name, c := range map[string]struct {
		left  time.Duration
		steps []step
	}{
		"used": {time.Hour, []step{
			{"redeem", true, true, false}, {"redeem", false, true, false}, {"touch", true, true, false},
			{"release", true, true, true}, {"release", false, true, true}, {"touch", false, true, true}, {"redeem", false, true, true},
		}},
		"released before it is redeemed": {time.Hour, []step{{"release", true, false, true}, {"redeem", false, false, true}}},
		"touched before it is redeemed":  {time.Hour, []step{{"touch", false, false, false}, {"redeem", true, true, false}, {"touch", true, true, false}}},
		"over":                           {-time.Second, []step{{"touch", false, false, false}, {"release", false, false, false}, {"redeem", false, false, false}}},
	} {
		a := admission(room, c.left)
		for i, step := range c.steps {
			var got pgroom.Session
			var err error
			switch step.name {
			case "redeem":
				got, err = s.Sessions.Redeem(ctx, a, nil)
			case "touch":
				got, err = s.Sessions.Touch(ctx, a, 2*time.Hour.Milliseconds(), a.Ends+time.Minute.Milliseconds())
			case "release":
				got, err = s.Sessions.Release(ctx, a)
			}
			want := pgroom.Session{Until: got.Until, Changed: step.changed, Redeemed: step.redeemed, Released: step.released}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s, step %d, %s (-want +got) %v:\n%s", name, i, step.name, err, diff)
			}
			now := time.Now().UnixMilli()
			switch {
			case got.Released && (got.Until > now || got.Until < now-10_000):
				t.Errorf("%s, step %d: released, and until %d at %d", name, i, got.Until, now)
			case step.name == "touch" && step.changed && got.Until != a.Ends+time.Minute.Milliseconds():
				t.Errorf("%s, step %d: touched until %d, want the most", name, i, got.Until)
			}
		}
	}
	// A touch never makes a session shorter.
	a := admission(room, time.Hour)
	if _, err := s.Sessions.Redeem(ctx, a, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Sessions.Touch(ctx, a, 1000, a.Ends*2); err != nil || !got.Changed || got.Until != a.Ends {
		t.Errorf("short touch: %+v, %v", got, err)
	}
}

func TestControls(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx := t.Context()
	busy, quiet, other := uuid.New(), uuid.New(), uuid.New()
	do := func(_ pgroom.Session, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const hour = int64(time.Hour / time.Millisecond)
	// Redeemed and touched sessions count as before; released ones count less, and those that continue after
	// their pass has expired count more.
	do(s.Sessions.Redeem(ctx, admission(busy, time.Hour), nil))
	do(s.Sessions.Release(ctx, admission(busy, time.Hour)))
	do(s.Sessions.Release(ctx, admission(busy, time.Hour)))
	a := admission(busy, time.Hour)
	do(s.Sessions.Redeem(ctx, a, nil))
	do(s.Sessions.Touch(ctx, a, 2*hour, a.Ends+hour))
	if _, err := pool.Exec(ctx, `insert into room_sessions (room_id, pass_id, expires_ms, until_ms, redeemed_at)
		values ($1, $2, $3, $4, now())`, busy, uuid.New(), time.Now().UnixMilli()-1, a.Ends+hour); err != nil {
		t.Fatal(err)
	}
	do(s.Sessions.Release(ctx, admission(other, time.Hour)))
	for i, kid := range []string{"a", "b"} {
		if err := s.Controls.AddPassKey(ctx, busy, kid, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, pull := range []bool{true, false, true} {
		if err := s.Controls.SetPull(ctx, busy, pull); err != nil {
			t.Fatal(err)
		}
		got, err := s.Controls.Read(ctx, []uuid.UUID{busy, quiet})
		want := map[uuid.UUID]pgroom.ControlValues{busy: {PassKeys: 2, Pull: pull, Shift: -1}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("flows (-want +got) %v:\n%s", err, diff)
		}
	}
	keys, err := s.Controls.PassKeys(ctx, busy)
	if err != nil || len(keys) != 2 || keys[0].ID != "a" || keys[1].Sealed[0] != 1 || !keys[0].Created.Before(keys[1].Created) {
		t.Errorf("pass keys %+v, %v", keys, err)
	}
	if err := s.Controls.AddPassKey(ctx, busy, "a", nil); err == nil {
		t.Error("a key was stored twice")
	}
	for _, statement := range []string{
		`truncate room_sessions`, `delete from room_pass_keys`, `update room_pass_keys set created_at = now()`, `delete from room_flow`,
		`update room_sessions set expires_ms = 0, until_ms = 0`, `update room_sessions set pass_id = gen_random_uuid()`,
	} {
		if _, err := pool.Exec(ctx, statement); err == nil {
			t.Errorf("the server may %s", statement)
		}
	}
	if _, err := pool.Exec(ctx, `update room_sessions set until_ms = 0`); err != nil {
		t.Fatal(err)
	}
	if tag, err := pool.Exec(ctx, `delete from room_sessions`); err != nil || tag.RowsAffected() != 0 {
		t.Errorf("the server deleted %d sessions whose passes could be redeemed again, %v", tag.RowsAffected(), err)
	}
}

// TestRedeemAgain: the same client may redeem a pass again for half a minute.
func TestRedeemAgain(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	a := admission(uuid.New(), time.Hour)
	one, other := pgroom.Client(bytes.Repeat([]byte{1}, pgroom.ClientSize)), pgroom.Client(bytes.Repeat([]byte{2}, pgroom.ClientSize))
	for i, step := range []struct {
		by     pgroom.Client
		passed time.Duration
		want   bool
	}{{one, 0, true}, {one, 0, true}, {other, 0, false}, {nil, 0, false}, {one, 29 * time.Second, true}, {one, 2 * time.Second, false}} {
		if _, err := pool.Exec(t.Context(), `update room_sessions set redeemed_at = redeemed_at - $1::interval where room_id = $2`, step.passed, a.Room); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Sessions.Redeem(t.Context(), a, step.by); err != nil || got.Changed != step.want || !got.Redeemed {
			t.Errorf("step %d: %+v, %v, want redeemed: %t", i, got, err, step.want)
		}
	}
}

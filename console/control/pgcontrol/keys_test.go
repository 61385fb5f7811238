package pgcontrol

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// TestKeys takes a key from its claim to its expiry.
func TestKeys(t *testing.T) {
	t.Parallel()
	pool := servertest.Pool(t, pgtest.URL(t))
	s, ctx, org := NewStore(pool).Keys, t.Context(), uuid.New()
	one, other := []byte("one"), []byte("other")
	claim := func(key string, request []byte, want error) *Answer {
		t.Helper()
		a, err := s.ClaimKey(ctx, org, key, request)
		if !errors.Is(err, want) {
			t.Fatalf("claim %s: %v, want %v", key, err, want)
		}
		return a
	}
	if a := claim("k", one, nil); a != nil {
		t.Errorf("answer for a new key: %+v", a)
	}
	claim("k", one, ErrKeyUnderWay)
	claim("k", other, ErrKeyReused)
	if a, err := s.ClaimKey(ctx, uuid.New(), "k", other); a != nil || err != nil {
		t.Errorf("the key of another organization: %+v, %v", a, err)
	}
	answer := Answer{Status: 201, Headers: map[string]string{"ETag": `"1"`}, Body: []byte("{}\n")}
	if err := s.KeepAnswer(ctx, org, "k", answer); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&answer, claim("k", one, nil)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	claim("k", other, ErrKeyReused)
	if err := s.ReleaseKey(ctx, org, "k"); err != nil { // has no effect on an answered key
		t.Fatal(err)
	}
	if claim("k", one, nil) == nil {
		t.Error("an answer was released")
	}
	claim("free", one, nil)
	if err := s.ReleaseKey(ctx, org, "free"); err != nil {
		t.Fatal(err)
	}
	if a := claim("free", other, nil); a != nil {
		t.Errorf("answer for a released key: %+v", a)
	}

	// After a day a key is free again, pruned or not.
	old := func(key string) {
		t.Helper()
		if _, err := pool.Exec(ctx, `update idempotency_keys set created_at = now() - $3::interval where org_id = $1 and key = $2`, org, key, KeyLife+time.Second); err != nil {
			t.Fatal(err)
		}
	}
	old("k")
	if a := claim("k", other, nil); a != nil {
		t.Errorf("answer for an expired key: %+v", a)
	}
	old("k")
	if err := s.PruneKeys(ctx); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(ctx, `select count(*) from idempotency_keys where org_id = $1`, org).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d keys are left, %v", left, err)
	}
}

package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
)

const genesis = 1_800_000_000

// clock is a time that tests set, in seconds after the genesis.
type clock struct{ seconds float64 }

func (c *clock) now() time.Time {
	return time.UnixMilli(genesis*1000 + int64(c.seconds*1000))
}

func newBeacon(t testing.TB, key *local.Key, c *clock) *local.Beacon {
	t.Helper()
	b, err := local.New(key, local.Config{ID: "test", Genesis: genesis, Period: 3, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRounds(t *testing.T) {
	c := &clock{seconds: 29.999}
	b := newBeacon(t, local.NewKey(), c)
	if b.Latest() != 10 {
		t.Errorf("latest round %d, want 10", b.Latest())
	}
	seen := map[string]bool{}
	for round := uint64(1); round <= 10; round++ {
		signature, err := b.Sign(round)
		if err == nil {
			err = b.Chain().Verify(round, signature)
		}
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		seen[string(signature)] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d signatures of 10 rounds", len(seen))
	}
}

func TestNoRoundBeforeItsTime(t *testing.T) {
	c := &clock{}
	b := newBeacon(t, local.NewKey(), c)
	for _, step := range []struct {
		seconds float64
		latest  uint64
	}{{-1e6, 0}, {-0.001, 0}, {0, 1}, {2.999, 1}, {3, 2}, {3.001, 2}} {
		c.seconds = step.seconds
		if b.Latest() != step.latest {
			t.Errorf("after %g s: latest round %d, want %d", step.seconds, b.Latest(), step.latest)
		}
		for _, round := range []uint64{step.latest + 1, step.latest + 2, math.MaxUint64} {
			if signature, err := b.Sign(round); !errors.Is(err, local.ErrFuture) || signature != nil {
				t.Errorf("after %g s, round %d: %x, %v", step.seconds, round, signature, err)
			}
		}
	}
	if _, err := b.Sign(0); !errors.Is(err, local.ErrRound) {
		t.Errorf("round 0: %v", err)
	}
}

// TestRestart: after a restart a beacon continues the same chain.
func TestRestart(t *testing.T) {
	key, c := local.NewKey(), &clock{seconds: 100}
	again, err := local.ParseKey(key.Encode())
	if err != nil {
		t.Fatal(err)
	}
	first, second := newBeacon(t, key, c), newBeacon(t, again, c)
	if first.Chain() != second.Chain() {
		t.Errorf("%+v, then %+v", first.Chain(), second.Chain())
	}
	a, err := first.Sign(7)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := second.Sign(7); err != nil || !bytes.Equal(a, b) {
		t.Errorf("%x, then %x (%v)", a, b, err)
	}
}

// TestChainsShareNothing: signatures of one chain reveal no rounds of another chain with the same key, whose
// clock may be slower.
func TestChainsShareNothing(t *testing.T) {
	key, late := local.NewKey(), func() time.Time { return time.Unix(genesis+1e6, 0) }
	base := local.Config{ID: "test", Genesis: genesis, Period: 3, Now: late}
	b, err := local.New(key, base)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := b.Sign(9)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*local.Config){
		"id": func(c *local.Config) { c.ID = "tess" }, "genesis": func(c *local.Config) { c.Genesis-- }, "period": func(c *local.Config) { c.Period = 1 },
	} {
		cfg := base
		change(&cfg)
		other, err := local.New(key, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if other.Chain().Hash() == b.Chain().Hash() || other.Chain().PublicKey == b.Chain().PublicKey {
			t.Errorf("another %s, the same chain or key", name)
		}
		if err := other.Chain().Verify(9, signature); err == nil {
			t.Errorf("another %s, the same signature", name)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]local.Config{
		"no period": {ID: "x"}, "id": {ID: "a b", Period: 3}, "genesis": {Genesis: -1, Period: 3},
	} {
		if b, err := local.New(local.NewKey(), cfg); !errors.Is(err, beacon.ErrChain) || b != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	key := local.NewKey()
	text := key.Encode()
	if text == local.NewKey().Encode() {
		t.Error("two random keys are the same")
	}
	for _, bad := range []string{"", text[:63], text + "0", text + "\n", strings.Repeat("AB", 32), "0x" + text[:62], strings.Repeat("g", 64)} {
		if _, err := local.ParseKey(bad); !errors.Is(err, local.ErrKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := local.ParseKey(text + "\n"); err != nil && strings.Contains(err.Error(), text[:8]) {
		t.Errorf("the error shows the key: %v", err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, shown := range []string{fmt.Sprintf(format, key), fmt.Sprintf(format, *key)} {
			if strings.Contains(strings.ToLower(shown), text[:8]) || shown != "local.Key" {
				t.Errorf("%s shows %s", format, shown)
			}
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(local.NewKey().Encode())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := local.ParseKey(text); err == nil && k.Encode() != text {
			t.Errorf("%q is read as %q", text, k.Encode())
		}
	})
}

// TestConcurrent is for the race detector: some methods of circl's keys are not safe for concurrent use.
func TestConcurrent(t *testing.T) {
	b := newBeacon(t, local.NewKey(), &clock{seconds: 1000})
	want, err := b.Sign(5)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 4 {
				got, err := b.Sign(5)
				if err != nil || !bytes.Equal(got, want) || b.Chain().Verify(5, got) != nil {
					t.Errorf("%x, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkSign(b *testing.B) {
	l := newBeacon(b, local.NewKey(), &clock{seconds: 1000})
	for b.Loop() {
		if _, err := l.Sign(5); err != nil {
			b.Fatal(err)
		}
	}
}

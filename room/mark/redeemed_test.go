package mark

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// redeem records a pass whose session ends after a duration.
func redeem(t testing.TB, s *Store, in time.Duration) Redemption {
	t.Helper()
	now := time.Now()
	r := Redemption{Room: uuid.New(), Pass: uuid.New(), Expires: now.UnixMilli(), Ends: now.Add(in).UnixMilli()}
	if err := s.Redeemed(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func redemptions(t testing.TB, s *Store) (list []Redemption) {
	t.Helper()
	if err := s.Redemptions(func(some []Redemption) error { list = append(list, some...); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

func parts(t testing.TB, s *Store) []string {
	t.Helper()
	files, err := filepath.Glob(s.redeemed.path + "*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRedeemed: redemptions are kept if the process dies suddenly, for each node of the directory, and an
// incomplete line is ignored.
func TestRedeemed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := open(t, dir)
	want := []Redemption{redeem(t, one, time.Hour), redeem(t, one, time.Minute)}
	_ = one.lock.Close() // as at a kill: nothing is synced or closed
	file := parts(t, one)[0]
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := appendRedemption(nil, want[0])
	line[0] ^= 1
	if err := os.WriteFile(file, append(append(text, line...), text[:len(text)/2-3]...), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if got := redemptions(t, again); !slices.Equal(got, want) {
		t.Errorf("after the restart: %+v, want %+v", got, want)
	}
	want = append(want, redeem(t, again, time.Hour))
	two := open(t, dir)
	want = append(want, redeem(t, two, time.Hour))
	if got := redemptions(t, one); !slices.Equal(got, want) {
		t.Errorf("of two nodes: %+v, want %+v", got, want)
	}
	if err := errors.Join(again.Close(), two.Close()); err != nil {
		t.Error(err)
	}
	if Memory().Redeemed(want[0]) != nil || redemptions(t, Memory()) != nil {
		t.Error("a node without a directory remembers redemptions")
	}
}

// TestRedeemedBounded: files whose sessions are all over are removed; beyond a limit the oldest files are
// removed, too, which is logged.
func TestRedeemedBounded(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	next := func() { s.redeemed.written = partBytes + 1 }
	redeem(t, s, -2*partSlack)
	next()
	redeem(t, s, time.Hour)
	if n := len(parts(t, s)); n != 1 {
		t.Errorf("%d files, the first one is over", n)
	}
	for range mostParts - 1 {
		next()
		redeem(t, s, time.Hour)
	}
	next()
	if err := s.Redeemed(Redemption{Ends: time.Now().UnixMilli()}); !errors.Is(err, ErrCrowded) {
		t.Errorf("put: %v, want ErrCrowded", err)
	}
	if n := len(parts(t, s)); n != mostParts {
		t.Errorf("%d files, want %d", n, mostParts)
	}
	if n := len(redemptions(t, s)); n != mostParts {
		t.Errorf("%d redemptions, want %d", n, mostParts)
	}
}

func BenchmarkRedeemed(b *testing.B) {
	s := open(b, b.TempDir())
	for range b.N {
		redeem(b, s, time.Hour)
	}
}

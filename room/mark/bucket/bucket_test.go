package bucket

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/s3test"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room/mark"
)

var sale = mark.Log{Slug: "sale", Key: 0xa1b2c3d4}

func at(size uint64) pglog.Mark {
	return pglog.Mark{Size: size, Root: audit.LeafHash([]byte{byte(size)})}
}

// checked is a database that continues all marks but some.
type checked struct {
	refuse error
	others bool // the database has another history
	seen   []uint64
}

func (c *checked) check(_ context.Context, _ mark.Log, m pglog.Mark) (bool, error) {
	c.seen = append(c.seen, m.Size)
	return !c.others, c.refuse
}

// open opens the server's bucket for a node. Tests that use it cannot run in parallel.
func open(t *testing.T, s *s3test.Server, node string) *Bucket {
	t.Helper()
	for _, variable := range s.Env() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	b, err := Open(t.Context(), "s3://"+s3test.Bucket+"/eu/one", node, servertest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Bucket) stores(t *testing.T, size uint64) {
	t.Helper()
	b.Put(sale, at(size))
	b.turn(t.Context(), (&checked{}).check)
	if b.Lag() != 0 || b.Away() != 0 {
		t.Errorf("after a turn the store lags by %s and is away for %s", b.Lag(), b.Away())
	}
}

func (b *Bucket) has(t *testing.T, want pglog.Mark) {
	t.Helper()
	if got, err := b.Get(t.Context(), sale); got != want || err != nil {
		t.Errorf("stored mark %+v, %v, want %+v", got, err, want)
	}
}

// TestHighest: of marks that several nodes store in any order the highest stays, whether or not the store heeds
// conditions.
func TestHighest(t *testing.T) {
	for name, forgets := range map[string]bool{"conditions": false, "no conditions": true} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t)
			s.Forgets.Store(forgets)
			one, two := open(t, s, "one"), open(t, s, "two")
			one.has(t, pglog.Mark{})
			one.stores(t, 5)
			two.stores(t, 3)
			two.has(t, at(5))
			two.stores(t, 9)
			one.stores(t, 7)
			one.has(t, at(9))
			one.stores(t, 11)
			one.Put(sale, at(10))
			one.stores(t, 12)
			open(t, s, "three").has(t, at(12))
			want := []string{"eu/one/probe", "eu/one/sale/a1b2c3d4"}
			if forgets {
				want = []string{"eu/one/probe", "eu/one/sale/a1b2c3d4.one", "eu/one/sale/a1b2c3d4.two"}
			}
			objects := s.Objects("")
			for _, name := range want {
				if _, ok := objects[name]; !ok {
					t.Errorf("no object %s among %q", name, objects)
				}
			}
			if len(objects) != len(want) {
				t.Errorf("objects %q", objects)
			}
		})
	}
}

// TestSlugs lists the rooms with marks as of the start, also the log of rooms.
func TestSlugs(t *testing.T) {
	s := s3test.Start(t)
	one := open(t, s, "one")
	one.Put(mark.Log{Slug: "/rooms", Key: 7}, at(2))
	one.stores(t, 5)
	if got := one.Slugs(); len(got) != 0 {
		t.Errorf("an empty bucket has marks of %q", got)
	}
	two := open(t, s, "two")
	if got := slices.Sorted(slices.Values(two.Slugs())); !slices.Equal(got, []string{"/rooms", "sale"}) {
		t.Errorf("marks of %q", got)
	}
	if m, err := two.Get(t.Context(), mark.Log{Slug: "/rooms", Key: 7}); m != at(2) || err != nil {
		t.Errorf("the log of rooms has %+v, %v", m, err)
	}
	if m, err := two.Get(t.Context(), mark.Log{Slug: "sale", Key: 8}); !m.IsZero() || err != nil {
		t.Errorf("another log of the same name has %+v, %v", m, err)
	}
}

// TestRefused: a mark that the database does not continue is never overwritten, until the room was loaded again.
func TestRefused(t *testing.T) {
	s := s3test.Start(t)
	open(t, s, "one").stores(t, 5)
	two := open(t, s, "two")
	database := &checked{refuse: errors.New("away")}
	two.Put(sale, at(8))
	two.turn(t.Context(), database.check)
	if two.Lag() == 0 {
		t.Error("a mark that was not compared with the database is not read again")
	}
	database.refuse, database.others = nil, true
	for size := range uint64(3) {
		two.Put(sale, at(9+size))
		two.turn(t.Context(), database.check)
	}
	if !slices.Equal(database.seen, []uint64{5, 5}) {
		t.Errorf("compared with marks of %d entries", database.seen)
	}
	two.has(t, at(5))
	two.turn(t.Context(), database.check)
	two.has(t, at(5))
	two.stores(t, 12) // by the load that the mark did not hold
	two.has(t, at(12))
}

// TestAway: while the store is away nothing waits for it, and what it has is compared before anything is written.
func TestAway(t *testing.T) {
	s := s3test.Start(t)
	open(t, s, "one").stores(t, 5)
	s.Away.Store(true)
	two := open(t, s, "two")
	if _, err := two.Get(t.Context(), sale); !errors.Is(err, ErrAway) {
		t.Errorf("read: %v, want ErrAway", err)
	}
	database := &checked{}
	two.Put(sale, at(8))
	two.turn(t.Context(), database.check)
	if two.Away() == 0 || two.Lag() == 0 || len(database.seen) > 0 {
		t.Errorf("away for %s, lag %s, compared %d", two.Away(), two.Lag(), database.seen)
	}
	s.Away.Store(false)
	two.turn(t.Context(), database.check)
	if two.Away() != 0 || two.Lag() != 0 || !slices.Equal(database.seen, []uint64{5}) {
		t.Errorf("away for %s, lag %s, compared %d", two.Away(), two.Lag(), database.seen)
	}
	two.has(t, at(8))
	if got := two.Slugs(); !slices.Equal(got, []string{"sale"}) {
		t.Errorf("marks of %q", got)
	}
	s.Away.Store(true)
	two.Put(sale, at(9))
	two.turn(t.Context(), database.check)
	s.Away.Store(false)
	two.turn(t.Context(), database.check)
	two.has(t, at(9))
}

// TestClose stores the marks that were put after the last turn.
func TestClose(t *testing.T) {
	s := s3test.Start(t)
	one := open(t, s, "one")
	one.stores(t, 5)
	one.Put(sale, at(6))
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, s, "two").has(t, at(6))
}

// TestBroken: an object that holds no mark concerns its log alone, and is not overwritten.
func TestBroken(t *testing.T) {
	s := s3test.Start(t)
	other := mark.Log{Slug: "other", Key: 1}
	s.Put("eu/one/sale/a1b2c3d4", string(mark.AppendLine(nil, other, at(3))))
	one := open(t, s, "one")
	if _, err := one.Get(t.Context(), sale); !errors.Is(err, errBroken) {
		t.Errorf("read: %v, want errBroken", err)
	}
	one.Put(sale, at(4))
	one.Put(other, at(4))
	one.turn(t.Context(), (&checked{}).check)
	if m, err := one.Get(t.Context(), other); m != at(4) || err != nil || one.Away() != 0 || one.Lag() == 0 {
		t.Errorf("another log has %+v, %v; away %s, lag %s", m, err, one.Away(), one.Lag())
	}
	if _, err := one.Get(t.Context(), sale); !errors.Is(err, errBroken) {
		t.Errorf("read: %v, want errBroken", err)
	}
}

// TestURL refuses texts that name no bucket.
func TestURL(t *testing.T) {
	for _, text := range []string{"", "marks", "https://marks", "s3://", "s3://Marks", "s3://marks?x", "s3://u:p@marks/x"} {
		if _, err := Open(t.Context(), text, "one", servertest.Log(t)); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v, want ErrURL", text, err)
		}
	}
	for _, endpoint := range []string{"s3.example.com", "https://u:p@s3.example.com", "https://s3.example.com/path"} {
		t.Setenv("AWS_ENDPOINT_URL", endpoint)
		if _, err := Open(t.Context(), "s3://marks", "one", servertest.Log(t)); !errors.Is(err, ErrURL) {
			t.Errorf("endpoint %q: %v, want ErrURL", endpoint, err)
		}
	}
}

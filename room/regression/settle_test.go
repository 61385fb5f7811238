package regression_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/regression"
)

// settled counts a settler's actions.
type settled struct {
	restores int
	held     []string
	refuse   error // of restoring
}

func (s *settled) settler(d *database) *regression.Settler {
	return regression.NewSettler(d.from, servertest.Log(d.t), func() error { s.restores++; return s.refuse },
		func(slug string) { s.held = append(s.held, slug) })
}

// TestSettle holds the rooms of which this node has seen more entries than the database has, and no others.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen   func(*database) pglog.Mark
		isHeld bool
	}{
		"never seen":      {func(*database) pglog.Mark { return pglog.Mark{} }, false},
		"seen in part":    {func(d *database) pglog.Mark { return d.mark(3) }, false},
		"all seen":        {func(d *database) pglog.Mark { return d.mark(5) }, false},
		"more seen":       {func(d *database) pglog.Mark { return d.mark(6) }, true},
		"another seen":    {func(d *database) pglog.Mark { return d.other(5) }, true},
		"other beginning": {func(d *database) pglog.Mark { return d.other(3) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, 5)
			seen := c.seen(d)
			if !seen.IsZero() {
				d.note(seen)
			}
			var want []string
			if c.isHeld {
				want = []string{slug}
			}
			var did settled
			s := did.settler(d)
			for range 2 { // the second node finds the database already compared
				if err := s.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if did.restores != 1 || !slices.Equal(did.held, want) {
				t.Errorf("restored %d times, held %q", did.restores, did.held)
			}
			if _, hold := d.state(); hold.IsHeld() != c.isHeld || c.isHeld && hold.Mark != seen {
				t.Errorf("hold %+v", hold)
			}
			if _, ok := d.from.Logs.Accepted(); !ok {
				t.Error("the database is not accepted")
			}
		})
	}
}

// TestSettleOtherKey: marks of an earlier room of the same name, and of rooms that are not in the database,
// hold no room.
func TestSettleOtherKey(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	for _, log := range []mark.Log{{Slug: slug, Key: d.name().Key + 1}, {Slug: "missing", Key: 1}} {
		if err := d.from.Marks.Put(log, d.other(8)); err != nil {
			t.Fatal(err)
		}
	}
	var did settled
	if err := did.settler(d).Settle(t.Context()); err != nil || len(did.held) != 0 {
		t.Errorf("held %q, %v", did.held, err)
	}
}

// TestSettleRestore: while redemptions cannot be restored, the node does not append.
func TestSettleRestore(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	did := settled{refuse: errors.New("refused")}
	s := did.settler(d)
	for range 2 {
		if err := s.Settle(t.Context()); !errors.Is(err, did.refuse) {
			t.Errorf("settle: %v", err)
		}
	}
	if _, ok := d.from.Logs.Accepted(); ok || did.restores != 2 {
		t.Errorf("accepted %t after %d attempts", ok, did.restores)
	}
}

// TestSettlePeers waits for another node to compare the database, unless one already appends to it.
func TestSettlePeers(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	logs, peer := d.from.Logs, uuid.New()
	if _, err := logs.Compared(t.Context(), peer, pglog.Incarnation{System: 1}); err != nil {
		t.Fatal(err)
	}
	var did settled
	s := did.settler(d)
	if err := s.Settle(t.Context()); !errors.Is(err, pglog.ErrUnsettled) {
		t.Fatalf("settle before the peer has compared: %v, want ErrUnsettled", err)
	}
	found, err := logs.Incarnation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := logs.Compared(t.Context(), peer, found); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Errorf("settle once the peer has compared: %v", err)
	}
	if did.restores != 1 {
		t.Errorf("restored %d times", did.restores)
	}
	another := newNode(d)
	if _, err := logs.Compared(t.Context(), peer, pglog.Incarnation{System: 1}); err != nil {
		t.Fatal(err)
	}
	if err := did.settler(another).Settle(t.Context()); err != nil {
		t.Errorf("settle on a database that a node appends to: %v", err)
	}
}

// newNode returns another node on the same database, which has seen nothing.
func newNode(d *database) *database {
	another := *d
	another.from.Marks = mark.Memory()
	return &another
}

// TestCompareElsewhere compares the marks that a place outside of the database has, and holds the room by them.
func TestCompareElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen      func(*database) pglog.Mark
		continues bool
	}{
		"seen in part":    {func(d *database) pglog.Mark { return d.mark(3) }, true},
		"all seen":        {func(d *database) pglog.Mark { return d.mark(5) }, true},
		"more seen":       {func(d *database) pglog.Mark { return d.mark(6) }, false},
		"another seen":    {func(d *database) pglog.Mark { return d.other(5) }, false},
		"other beginning": {func(d *database) pglog.Mark { return d.other(3) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, 5)
			seen := c.seen(d)
			var did settled
			s := did.settler(d)
			if _, err := s.Compare(t.Context(), d.name(), seen); !errors.Is(err, pglog.ErrUnsettled) {
				t.Errorf("before the database is settled: %v, want ErrUnsettled", err)
			}
			if err := s.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			continues, err := s.Compare(t.Context(), d.name(), seen)
			if continues != c.continues || err != nil {
				t.Errorf("continues: %t, %v", continues, err)
			}
			if _, hold := d.state(); hold.IsHeld() == c.continues || !c.continues && hold.By != mark.RemoteName {
				t.Errorf("hold %+v", hold)
			}
			if (len(did.held) == 0) != c.continues {
				t.Errorf("held %q", did.held)
			}
		})
	}
}

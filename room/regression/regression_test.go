package regression_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/regression"
)

// TestCheck compares a log of five entries with what this node has seen.
func TestCheck(t *testing.T) {
	t.Parallel()
	const has = 5
	for name, c := range map[string]struct {
		seen   func(*database) pglog.Mark
		isHeld bool
	}{
		"never seen":       {func(*database) pglog.Mark { return pglog.Mark{} }, false},
		"seen in part":     {func(d *database) pglog.Mark { return d.mark(has - 2) }, false},
		"all seen":         {func(d *database) pglog.Mark { return d.mark(has) }, false},
		"more seen":        {func(d *database) pglog.Mark { return d.mark(has + 1) }, true},
		"another seen":     {func(d *database) pglog.Mark { return d.other(has) }, true},
		"other beginning":  {func(d *database) pglog.Mark { return d.other(has - 2) }, true},
		"only a size seen": {func(*database) pglog.Mark { return pglog.Mark{Size: has - 2} }, false},
		"a larger size":    {func(*database) pglog.Mark { return pglog.Mark{Size: has + 1} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, has)
			seen, g := c.seen(d), d.guard()
			g.Note(seen)
			if g.IsMarked() != !seen.IsZero() {
				t.Errorf("marked: %t", g.IsMarked())
			}
			_, err := d.load(g)
			_, hold := d.state()
			if !c.isHeld {
				if err != nil || g.Err() != nil || hold.IsHeld() {
					t.Errorf("held: %v, %+v", err, hold)
				}
				return
			}
			found, ok := errors.AsType[*regression.Regression](err)
			if !ok || !errors.Is(err, regression.ErrRegressed) || found.Has != d.mark(has) || found.Had != seen {
				t.Fatalf("error %v, %+v", err, found)
			}
			if !errors.Is(g.Err(), regression.ErrRegressed) || g.Regression().By != d.from.Marks.Name() {
				t.Errorf("guard's error %v, %+v", g.Err(), g.Regression())
			}
			if hold.Mark != seen || hold.By != d.from.Marks.Name() {
				t.Errorf("hold in the database: %+v", hold)
			}
		})
	}
}

// TestHeldElsewhere: a hold by another node also applies here, until the database has the entries that that
// node saw.
func TestHeldElsewhere(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	g, ctx := d.guard(), t.Context()
	if err := d.from.Logs.Hold(ctx, d.id, d.mark(7), "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.load(g); !errors.Is(err, regression.ErrRegressed) {
		t.Fatalf("load: %v, want ErrRegressed", err)
	}
	since, asked := g.Regression().Since, time.Now()
	if back, err := g.MayBeBack(ctx); back || err != nil {
		t.Errorf("back before the entries are: %t, %v", back, err)
	}
	rec, err := regression.Recover(ctx, d.from, slug)
	if err != nil {
		t.Fatal(err)
	}
	loss, err := rec.Compare(ctx, copyOf(d.entries[:7]))
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Continue(ctx, loss); err != nil {
		t.Fatal(err)
	}
	if back, err := g.MayBeBack(ctx); back && time.Since(asked) < time.Second || err != nil {
		t.Errorf("asked again within a second: %t, %v", back, err)
	}
	if back, err := d.guard().MayBeBack(ctx); !back || err != nil {
		t.Errorf("entries are back: %t, %v", back, err)
	}
	if !g.Regression().Since.Equal(since) || g.Err() == nil {
		t.Errorf("healed before the node has read the entries: %v", g.Err())
	}
	if _, err := d.load(g); err != nil {
		t.Errorf("load: %v", err)
	}
	g.Heal(7)
	if g.Err() != nil || g.Regression() != nil {
		t.Errorf("healed: %v", g.Err())
	}
}

// TestLift releases a hold only if it is the database's.
func TestLift(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	g := d.guard()
	g.Note(d.mark(5))
	before, err := d.load(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.from.Logs.Hold(t.Context(), d.id, d.mark(4), "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := g.Lift(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if _, hold := d.state(); !hold.IsHeld() {
		t.Error("a hold that this node does not know was released")
	}
	after, err := d.load(g)
	if err != nil {
		t.Fatalf("the database has what was seen: %v", err)
	}
	if err := g.Lift(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if _, hold := d.state(); hold.IsHeld() {
		t.Errorf("still held: %+v", hold)
	}
}

// TestAbandoned: a log that its operator ended stays ended, and is not held again.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	if err := d.from.Logs.Abandon(t.Context(), d.id, "statement"); err != nil {
		t.Fatal(err)
	}
	g := d.guard()
	if _, err := d.load(g); !errors.Is(err, regression.ErrAbandoned) || errors.Is(err, regression.ErrRegressed) {
		t.Errorf("load: %v, want ErrAbandoned", err)
	}
	if back, err := g.MayBeBack(t.Context()); !back || err != nil {
		t.Errorf("the end is not worth reading: %t, %v", back, err)
	}
	if _, hold := d.state(); hold.By != "" || hold.Ended != "statement" {
		t.Errorf("hold %+v", hold)
	}
}

// TestRegression describes what was seen, and by which node or witness.
func TestRegression(t *testing.T) {
	t.Parallel()
	root := audit.LeafHash([]byte("root"))
	for name, c := range map[string]struct {
		regression         regression.Regression
		hasRoot, byWitness bool
	}{
		"server":  {regression.Regression{Had: pglog.Mark{Size: 3, Root: root}, By: "server 1"}, true, false},
		"size":    {regression.Regression{Had: pglog.Mark{Size: 3}, By: regression.WitnessPrefix + "w"}, false, true},
		"unknown": {regression.Regression{Had: pglog.Mark{Size: 3, Root: pglog.OtherRoot}, By: "server 1"}, false, false},
	} {
		if g := c.regression; g.HasRoot() != c.hasRoot || g.ByWitness() != c.byWitness {
			t.Errorf("%s: has root %t, by witness %t", name, g.HasRoot(), g.ByWitness())
		}
	}
}

// TestMissingRoom finds rooms that were seen but are not in the database.
func TestMissingRoom(t *testing.T) {
	t.Parallel()
	marks := mark.Memory()
	for key, m := range map[uint32]pglog.Mark{1: {Size: 5}, 2: {Size: 8}, 3: {Size: 2}} {
		if err := marks.Put(mark.Log{Slug: slug, Key: key}, m); err != nil {
			t.Fatal(err)
		}
	}
	if g := regression.MissingRoom(marks, "never-seen"); g != nil {
		t.Errorf("a room that was never seen: %+v", g)
	}
	g := regression.MissingRoom(marks, slug)
	if g == nil || g.Had.Size != 8 || g.Has != (pglog.Mark{Root: new(audit.Tree).Root()}) || g.By != marks.Name() {
		t.Errorf("a room that was seen: %+v", g)
	}
}

// elsewhere is a place outside of the database that has one mark.
type elsewhere struct {
	mark.Remote
	mark pglog.Mark
	err  error
}

func (e elsewhere) Get(context.Context, mark.Log) (pglog.Mark, error) { return e.mark, e.err }

func (e elsewhere) Slugs() []string { return []string{slug, "lost"} }

// TestElsewhere opens a log on a node without marks, by the mark that was kept elsewhere. If that cannot be read, the
// log opens.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	d.from.Marks.Remote = elsewhere{err: errors.New("away")}
	if _, err := d.load(d.guard()); err != nil {
		t.Errorf("load: %v", err)
	}
	d.from.Marks.Remote = elsewhere{mark: d.mark(5)}
	if _, err := d.load(d.guard()); err != nil {
		t.Errorf("load: %v", err)
	}
	d.from.Marks.Remote = elsewhere{mark: d.mark(7)}
	g := d.guard()
	if _, err := d.load(g); !errors.Is(err, regression.ErrRegressed) || g.Regression().By != mark.RemoteName {
		t.Errorf("load: %v, want ErrRegressed by the mark elsewhere", err)
	}
	if rec := d.recovered(); rec.Had != d.mark(7) || rec.By != mark.RemoteName {
		t.Errorf("recover: %+v by %q", rec.Had, rec.By)
	}
	if missing := regression.MissingRoom(d.from.Marks, "lost"); missing == nil || missing.By != mark.RemoteName {
		t.Errorf("a room of which only a mark elsewhere is left: %+v", missing)
	}
	if missing := regression.MissingRoom(d.from.Marks, "never"); missing != nil {
		t.Errorf("a room that never was: %+v", missing)
	}
}

package regression_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/regression"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const (
	slug      = "held"
	arrivals  = 9
	published = arrivals + 1 // entries of the published log
)

// database is one room's log in a database that may lack its last entries.
type database struct {
	t       *testing.T
	from    regression.Sources
	records *pgroom.Store
	id      uuid.UUID
	keys    *keys.Keys
	entries [][]byte // the published log
	lost    []string // rooms that were recorded as lost, with their sizes
}

// newDatabase returns a database with the first entries of a room's log.
func newDatabase(t *testing.T, has int) *database {
	t.Helper()
	pool, master := servertest.Pool(t, pgtest.URL(t)), servertest.MasterKey(t)
	store, logs := pgroom.NewStore(pool), pglog.NewStore(pool)
	d := &database{t: t, records: store, id: pgroom.RoomID(slug), from: regression.Sources{
		Records: store, Logs: logs, Marks: mark.Memory(), MasterKey: master,
	}}
	d.from.Lost = func(_ context.Context, origin string, has pglog.Mark) error {
		d.lost = append(d.lost, fmt.Sprintf("%s %d", origin, has.Size))
		return nil
	}
	record := pgroom.Room{ID: d.id, Slug: slug, Origin: "example.com/r/" + slug, Title: slug}
	sealed, err := keys.Generate(master, d.id)
	if err != nil {
		t.Fatal(err)
	}
	if d.keys, err = keys.Open(master, record, sealed); err != nil {
		t.Fatal(err)
	}
	create := func(tx pgx.Tx) error { return logs.Create(t.Context(), tx, d.id) }
	if _, err := store.Insert(t.Context(), record, sealed, create); err != nil {
		t.Fatal(err)
	}
	own := &roomtest.Keys{Origin: record.Origin, Signer: d.keys.Log, VKey: d.keys.VKey, VRF: d.keys.VRF}
	r := roomtest.Open(own, own.Policy())
	r.Join(own.Policy().Opens, arrivals)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	d.entries = r.Entries()
	d.append(0, has)
	return d
}

// append stores the log's entries from one index up to another.
func (d *database) append(from, to int) {
	d.t.Helper()
	l := d.from.Logs.Open(d.id, "example.com/r/"+slug, d.keys.Log)
	if err := l.Tail(d.t.Context(), func([]byte) error { return nil }); err != nil {
		d.t.Fatal(err)
	}
	_, err := l.Append(d.t.Context(), nil, func(b *pglog.Batch) error {
		for _, text := range d.entries[from:to] {
			if err := b.Add(text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// mark returns the size and root of the published log's first entries.
func (d *database) mark(size int) pglog.Mark {
	tree := new(audit.Tree)
	for _, text := range d.entries[:size] {
		tree.Append(audit.LeafHash(text))
	}
	return pglog.Mark{Size: uint64(size), Root: tree.Root()}
}

// other returns the mark of a log that differs from the published one.
func (d *database) other(size int) pglog.Mark {
	return pglog.Mark{Size: uint64(size), Root: audit.LeafHash([]byte("another log"))}
}

// name returns the log's name in the marks.
func (d *database) name() mark.Log { return mark.Log{Slug: slug, Key: d.keys.Log.KeyHash()} }

// note records that this node has seen the log.
func (d *database) note(m pglog.Mark) {
	d.t.Helper()
	if err := d.from.Marks.Put(d.name(), m); err != nil {
		d.t.Fatal(err)
	}
}

// guard returns a guard of the log, as for a node that starts.
func (d *database) guard() *regression.Guard {
	return regression.NewGuard(d.id, d.name(), d.from.Logs, d.from.Marks, servertest.Log(d.t))
}

// load compares the log in the database with the marks, as a node does when it loads the room.
func (d *database) load(g *regression.Guard) (*regression.Wanted, error) {
	d.t.Helper()
	w, err := g.Wanted(d.t.Context())
	if err != nil {
		return nil, err
	}
	l := d.from.Logs.Open(d.id, "", nil)
	w.Note(l.Size(), l.Root)
	if err := l.Tail(d.t.Context(), func([]byte) error { w.Note(l.Size(), l.Root); return nil }); err != nil {
		d.t.Fatal(err)
	}
	w.Note(l.Size(), l.Root)
	return w, g.Check(d.t.Context(), w, pglog.Mark{Size: l.Size(), Root: l.Root()})
}

// state returns the database's log, and why it is held.
func (d *database) state() (pglog.Mark, pglog.Hold) {
	d.t.Helper()
	m, h, err := d.from.Logs.State(d.t.Context(), d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	return m, h
}

// copyOf returns a copy of entries.
func copyOf(entries [][]byte) regression.Copy {
	return func(_ context.Context, read func([]byte) error) error {
		for i, text := range entries {
			if err := read(text); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		return nil
	}
}

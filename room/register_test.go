package room

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/register"
)

// listed reads the log of rooms as an auditor does.
func listed(t testing.TB, rs *Rooms, witnesses ...audit.Witness) *roomlog.Published {
	t.Helper()
	signed, err := rs.Register.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := roomlog.Read(t.Context(), rs.Register.Tile, signed, "", witnesses...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRegister creates rooms on two nodes, one of which stops, and reads the log of rooms.
func TestRegister(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	one, two := node(t, url, master), node(t, url, master)
	if _, err := one.Register.Checkpoint(t.Context()); err == nil {
		t.Error("there is a checkpoint before the first room")
	}
	first := create(t, one, Config{Slug: "first"})
	second := create(t, two, Config{Slug: "second"})
	of := second.ID
	third, err := one.CreateFor(t.Context(), pgroom.Owner{Org: pgroom.MainOrg, RehearsalOf: &of}, Config{Slug: "third"})
	if err != nil {
		t.Fatal(err)
	}
	one.Abandon() // the end of the first room is left to the other node
	create(t, two, Config{Slug: "fourth"})
	if err := get(t, two, "first").End(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is in the log", func() bool { return listed(t, two).Of(first.Origin).Ended != 0 })
	p := listed(t, two)
	if p.Head.Origin != "example.com/rooms" || p.Size() != 6 || len(p.Rooms()) != 4 {
		t.Errorf("%+v with %d rooms", p.Head, len(p.Rooms()))
	}
	for _, r := range []*Room{first, second, third} {
		var leaf audit.Hash
		if err := get(t, two, r.Slug).store.Open(r.ID, r.Origin, r.keys.Log).Tail(t.Context(), func(text []byte) error {
			if leaf == (audit.Hash{}) {
				leaf = audit.LeafHash(text)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		l := p.Of(r.Origin)
		if l == nil || l.VKey != r.VKey || l.First != leaf || l.IsRehearsal != (r == third) || (l.Ended != 0) != (r == first) {
			t.Errorf("%s: %+v", r.Slug, l)
		}
	}
	if l := p.Of(first.Origin); l.Size != 2 || l.IsLost {
		t.Errorf("the end is %+v", l)
	}
	eventually(t, "the room is marked as ended", func() bool {
		record, err := two.Store.Get(t.Context(), "first")
		return err == nil && record.Ended != nil
	})
	if size := listed(t, two).Size(); size != 6 {
		t.Errorf("%d entries: an end was recorded twice", size)
	}
}

// TestRegisterIsWhole: neither the room nor its entry in the log of rooms is stored without the other.
func TestRegisterIsWhole(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	create(t, rs, Config{Slug: "first"})
	superuser(t, url, `create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$`)
	superuser(t, url, `create trigger refuse before insert on log_bundles for each row when (new.room_id = '`+pgroom.RegisterID.String()+`') execute function refuse()`)
	if _, err := rs.Create(t.Context(), Config{Slug: "second"}); err == nil {
		t.Fatal("a room was created without an entry in the log of rooms")
	}
	if _, err := rs.Get(t.Context(), "second"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the room is reachable: %v", err)
	}
	if size := listed(t, rs).Size(); size != 2 {
		t.Errorf("%d entries in the log of rooms", size)
	}
	superuser(t, url, `drop trigger refuse on log_bundles`)
	second := create(t, rs, Config{Slug: "second"})
	if p := listed(t, rs); p.Size() != 3 || p.Of(second.Origin) == nil {
		t.Errorf("%d entries", p.Size())
	}
	if _, err := rs.Create(t.Context(), Config{Slug: "second"}); !errors.Is(err, ErrExists) {
		t.Errorf("created twice: %v", err)
	}
}

// TestRegisterKeepsRooms: a room that is deleted from the database stays in the log, and its address is never used
// again.
func TestRegisterKeepsRooms(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	var r *Room
	t.Run("a node that stops", func(t *testing.T) { r = create(t, node(t, url, master), Config{Slug: "unwanted"}) })
	for _, table := range []string{"rooms", "room_keys", "log_heads", "log_bundles"} {
		superuser(t, url, `delete from `+table+` where room_id = $1`, r.ID)
	}
	other := node(t, url, master)
	if _, err := other.Create(t.Context(), Config{Slug: "unwanted"}); !errors.Is(err, ErrTaken) {
		t.Errorf("the deleted room is created again: %v", err)
	}
	if listed(t, other).Of(r.Origin) == nil {
		t.Error("the log of rooms has forgotten the room")
	}
}

// TestRegisterLost: when the database loses entries of the log of rooms, no room is created and nothing is shown until
// they are back.
func TestRegisterLost(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	marks := mark.Memory()
	rs := start(t, connect(t, url), Options{MasterKey: master, Marks: marks})
	create(t, rs, Config{Slug: "first"})
	create(t, rs, Config{Slug: "second"})
	var entries [][]byte // a copy of the log
	if err := rs.Logs.Open(pgroom.RegisterID, "", nil).Tail(t.Context(), func(text []byte) error {
		entries = append(entries, bytes.Clone(text))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	superuser(t, url, `delete from log_bundles where room_id = $1 and first >= 2`, pgroom.RegisterID)
	tree := &audit.Tree{}
	for _, text := range entries[:2] {
		tree.Append(audit.LeafHash(text))
	}
	root := tree.Root()
	superuser(t, url, `update log_heads set size = 2, published_size = 2, root = $2 where room_id = $1`, pgroom.RegisterID, root[:])

	again := start(t, connect(t, url), Options{MasterKey: master, Marks: marks})
	for _, server := range []*Rooms{rs, again} {
		server.Register.Suspect()
		if _, err := server.Create(t.Context(), Config{Slug: "third"}); !errors.Is(err, register.ErrHeld) || !errors.Is(err, ErrRegressed) {
			t.Errorf("created although the log of rooms lacks entries: %v", err)
		}
		if _, err := server.Register.Checkpoint(t.Context()); !errors.Is(err, ErrRegressed) {
			t.Errorf("the log is shown: %v", err)
		}
		if h := server.Health(); h.Held != 1 {
			t.Errorf("%d held", h.Held)
		}
	}
	rec, err := again.Recover(t.Context(), pgroom.RegisterName)
	if err != nil || rec.By == "" || rec.Had.Size != 3 || rec.Has.Size != 2 {
		t.Fatalf("%+v: %v", rec, err)
	}
	loss, err := rec.Compare(t.Context(), func(_ context.Context, read func([]byte) error) error {
		for _, text := range entries {
			if err := read(text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || loss.From != 2 || loss.To != 3 {
		t.Fatalf("%+v: %v", loss, err)
	}
	if err := rec.Continue(t.Context(), loss); err != nil {
		t.Fatal(err)
	}
	eventually(t, "rooms are created again", func() bool {
		_, err := again.Create(t.Context(), Config{Slug: "third"})
		return err == nil
	})
	if h := again.Health(); h.Held != 0 {
		t.Errorf("%d held in the end", h.Held)
	}
	if p := listed(t, again); len(p.Rooms()) != 3 {
		t.Errorf("%d rooms", len(p.Rooms()))
	}
}

// TestRegisterTogether: two nodes create and end rooms at the same time.
func TestRegisterTogether(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	nodes := []*Rooms{node(t, url, master), node(t, url, master)}
	const each = 12
	var all sync.WaitGroup
	for i := range each {
		for k, rs := range nodes {
			all.Go(func() {
				r, err := rs.Create(t.Context(), Config{Slug: fmt.Sprintf("room-%d-%d", k, i)})
				if err == nil {
					err = r.End(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	eventually(t, "all ends are recorded", func() bool { return listed(t, nodes[0]).Size() == 1+2*2*each })
	for _, r := range listed(t, nodes[1]).Rooms() {
		if r.Ended == 0 || r.Size != 2 {
			t.Errorf("%+v", r)
		}
	}
}

// TestRegisterGivenUp: a room whose transcript is lost is recorded as lost, with what is left.
func TestRegisterGivenUp(t *testing.T) {
	t.Parallel()
	rs := node(t, pgtest.URL(t), newMaster(t))
	r := create(t, rs, Config{Slug: "gone"})
	if err := rs.Logs.Hold(t.Context(), r.ID, pglog.Mark{Size: 9}, "witness w"); err != nil {
		t.Fatal(err)
	}
	rec, err := rs.Recover(t.Context(), "gone")
	if err == nil {
		_, err = rec.End(t.Context(), "The disk is lost.")
	}
	if err != nil {
		t.Fatal(err)
	}
	if l := listed(t, rs).Of(r.Origin); l.Ended == 0 || !l.IsLost || l.Size != 1 || l.Root != l.First {
		t.Errorf("%+v", l)
	}
}

// TestRegisterCosigned: the server's witnesses cosign the log of rooms.
func TestRegisterCosigned(t *testing.T) {
	t.Parallel()
	w := newWitness(t, "one.example.org")
	rs := start(t, connect(t, pgtest.URL(t)), Options{MasterKey: newMaster(t), Witnesses: []evidence.Witness{w.asked()}})
	create(t, rs, Config{Slug: "first"})
	vkey, err := rs.Register.VKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logs, err := witness.NewLogs(vkey)
	if err != nil {
		t.Fatal(err)
	}
	w.Follow(logs)
	eventually(t, "the log is cosigned", func() bool { return len(listed(t, rs, w.Key()).Cosigners) == 1 })
	create(t, rs, Config{Slug: "second"})
	eventually(t, "the log is cosigned again", func() bool {
		p := listed(t, rs, w.Key())
		return len(p.Cosigners) == 1 && len(p.Rooms()) == 2
	})
}

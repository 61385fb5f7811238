package room

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/regression"
)

// TestHeldByAnother lets another node hold a room: this node serves nothing, continues when the hold is
// lifted, and reports that the room is lost when its operator says so.
func TestHeldByAnother(t *testing.T) {
	t.Parallel()
	rs := node(t, pgtest.URL(t), newMaster(t))
	r := create(t, rs, Config{Slug: "held"})
	joinMany(t, r, 3)
	hold := func() {
		t.Helper()
		seen := pglog.Mark{Size: r.view.Size() + 5, Root: audit.LeafHash([]byte("another"))}
		if err := rs.Logs.Hold(t.Context(), r.ID, seen, "server elsewhere"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the room is held", func() bool { _, err := rs.Get(t.Context(), "held"); return errors.Is(err, ErrRegressed) })
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, ErrRegressed) {
			t.Errorf("join: %v, want ErrRegressed", err)
		}
	}
	hold()
	if h := rs.Health(); h.Held != 1 || len(r.Evidence.Forks()) != 1 {
		t.Errorf("health %+v, forks %+v", h, r.Evidence.Forks())
	}
	if err := rs.Logs.Release(t.Context(), r.ID, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room goes on", func() bool { _, err := rs.Get(t.Context(), "held"); return err == nil })
	joinMany(t, r, 3)
	hold()
	rec, err := rs.Recover(t.Context(), "held")
	if err != nil || rec.Had.Size != rec.Has.Size+5 || rec.By != "server elsewhere" {
		t.Fatalf("recover: %+v, %v", rec, err)
	}
	short := func() error { _, err := rec.Compare(t.Context(), rs.copyOf(r)); return err }
	if err := short(); !errors.Is(err, regression.ErrTooShort) {
		t.Errorf("a copy that lacks the entries, too: %v", err)
	}
	statement, err := rec.End(t.Context(), "All tickets are refunded.")
	if err != nil || !strings.Contains(statement, "All tickets are refunded.") || !strings.Contains(statement, r.Origin) {
		t.Errorf("statement %q, %v", statement, err)
	}
	eventually(t, "the room is lost", func() bool { _, err := rs.Get(t.Context(), "held"); return errors.Is(err, ErrAbandoned) })
}

// copyOf returns a copy of the database's entries.
func (rs *Rooms) copyOf(r *Room) regression.Copy {
	return func(ctx context.Context, read func([]byte) error) error {
		return rs.Logs.Open(r.ID, "", nil).Tail(ctx, read)
	}
}

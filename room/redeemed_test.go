package room

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/session"
)

// identified connects like a server, which distinguishes databases.
func identified(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pglog.PoolConfig(pgtest.AsServer(url))
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, url, func(c *pgxpool.Config) { c.AfterConnect = config.AfterConnect })
}

// TestRedeemedStays lets the database forget redemptions, as after a failover, and one pass that was never
// redeemed. The node that redeemed the passes restores them at its next start, and when a held room
// continues.
func TestRedeemedStays(t *testing.T) {
	t.Parallel()
	url, master, dir := pgtest.URL(t), newMaster(t), filepath.Join(t.TempDir(), "marks")
	marked := func() *Rooms {
		t.Helper()
		marks, err := mark.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = marks.Close() })
		return start(t, identified(t, url), Options{MasterKey: master, Marks: marks})
	}
	rs := marked()
	r := create(t, rs, quick("stays"))
	_, used := enter(t, r)
	_, spare := admit(t, r)
	forget := func() { superuser(t, url, `delete from room_sessions`) }
	refused := func(r *Room) {
		t.Helper()
		eventually(t, "an answer", func() bool {
			_, err := r.Sessions.Redeem(t.Context(), used.ID.String(), used.Token, "")
			if !IsAway(err) && !errors.Is(err, session.ErrPassUsed) {
				t.Fatalf("redeemed again: %v, want session.ErrPassUsed", err)
			}
			return !IsAway(err)
		})
	}
	forget()
	seen := pglog.Mark{Size: r.view.Size() + 5, Root: audit.LeafHash([]byte("another"))}
	if err := rs.Logs.Hold(t.Context(), r.ID, seen, "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room is held", func() bool { return r.Regression() != nil })
	if err := rs.Logs.Release(t.Context(), r.ID, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room goes on", func() bool { return r.Regression() == nil })
	refused(r)
	if err := rs.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	forget()
	again := get(t, marked(), "stays")
	refused(again)
	if _, err := again.Sessions.Touch(t.Context(), used.Token); err != nil {
		t.Errorf("the session is not touched: %v", err)
	}
	if _, err := again.Sessions.Redeem(t.Context(), spare.ID.String(), spare.Token, ""); err != nil {
		t.Errorf("a pass that was not redeemed: %v", err)
	}
}

// TestRedeemUnsettled: no pass is redeemed in a database that has not been compared yet.
func TestRedeemUnsettled(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	rs := node(t, url, master)
	r := create(t, rs, quick("unsettled"))
	_, p := admit(t, r)
	store := pglog.NewStore(identified(t, url))
	store.Guard()
	rs.Store.Sessions.Through(store.Acquire)
	redeem := func() error { _, err := r.Sessions.Redeem(t.Context(), p.ID.String(), p.Token, ""); return err }
	if err := redeem(); !errors.Is(err, pglog.ErrUnsettled) || !IsAway(err) {
		t.Errorf("redeemed: %v, want ErrUnsettled", err)
	}
	found, err := store.Incarnation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store.Accept(found)
	if err := redeem(); err != nil {
		t.Error(err)
	}
}

package room

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/sequence"
)

// freezer delays what a node reads from its database, for as long as it is frozen.
type freezer struct {
	mu     sync.Mutex
	thawed chan struct{} // nil: not frozen
}

func (f *freezer) freeze() (thaw func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	thawed := make(chan struct{})
	f.thawed = thawed
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.thawed = nil
		close(thawed)
	})
}

func (f *freezer) wait() {
	f.mu.Lock()
	thawed := f.thawed
	f.mu.Unlock()
	if thawed != nil {
		<-thawed
	}
}

// frozenConn is a connection of a node with a freezer.
type frozenConn struct {
	net.Conn
	freezer *freezer
}

func (c frozenConn) Write(b []byte) (int, error) {
	c.freezer.wait()
	return c.Conn.Write(b)
}

// on makes the connections of a node freeze.
func (f *freezer) on(c *pgxpool.Config) {
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return frozenConn{conn, f}, err
	}
}

// TestPlaceOfOtherNode asks a node for a ticket at the moment at which it joined through the other node: it
// is never unknown.
func TestPlaceOfOtherNode(t *testing.T) {
	t.Parallel()
	rooms := share(t, twoNodes(t), Config{Slug: "other", Windows: []WindowRule{{Length: Duration(time.Hour)}}})
	for i := range 60 {
		v := newVisitor(rooms[i%2])
		if _, err := rooms[i%2].Join(t.Context(), v.ticket); err != nil {
			t.Fatal(err)
		}
		other := rooms[(i+1)%2]
		if st, err := other.Place(t.Context(), v.ticket); err != nil || st.Status != fairness.StatusWaiting {
			t.Fatalf("ticket %d joined through the other node, and stands as %+v, %v", i, st, err)
		}
	}
	if _, err := rooms[0].Place(t.Context(), newVisitor(rooms[0]).ticket); !errors.Is(err, ErrTicketUnknown) {
		t.Errorf("a ticket that never joined: %v, want ErrTicketUnknown", err)
	}
}

// TestStaleNode cuts a node off from its database: it says nothing that may no longer be true, and reports at
// once that it is not ready.
func TestStaleNode(t *testing.T) {
	t.Parallel()
	url, master, f := pgtest.URL(t), newMaster(t), &freezer{}
	there, cut := node(t, url, master), node(t, url, master, f.on)
	rooms := share(t, [2]*Rooms{there, cut}, Config{Slug: "stale", Windows: []WindowRule{{Length: Duration(time.Hour)}}})
	known, unknown := newVisitor(rooms[0]), newVisitor(rooms[0])
	if _, err := rooms[0].Join(t.Context(), known.ticket); err != nil {
		t.Fatal(err)
	}
	if _, err := rooms[1].Place(t.Context(), known.ticket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is ready", cut.Ready)
	thaw := f.freeze()
	t.Cleanup(thaw)
	began := time.Now()
	if _, err := rooms[0].Join(t.Context(), unknown.ticket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node knows that it is cut off", func() bool { return !cut.Ready() && rooms[1].isStale() })
	if took := time.Since(began); took > sequence.StaleAfter+20*time.Second {
		t.Errorf("it took %s", took)
	}
	if !there.Ready() {
		t.Error("the other node is not ready")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for name, v := range map[string]visitor{"known": known, "unknown": unknown} {
		stale := (*StaleError)(nil)
		if _, err := rooms[1].Place(ctx, v.ticket); !errors.As(err, &stale) || stale.Wait < minStaleWait {
			t.Errorf("the %s ticket stands as %v, want a StaleError", name, err)
		}
		if _, err := rooms[1].Claim(ctx, v.ticket, v.secret); !errors.As(err, &stale) {
			t.Errorf("a claim of the %s ticket: %v, want a StaleError", name, err)
		}
		if err := rooms[1].Leave(ctx, v.ticket, v.secret); !errors.As(err, &stale) {
			t.Errorf("the %s ticket leaves: %v, want a StaleError", name, err)
		}
		if _, err := rooms[1].Receipt(ctx, v.ticket); !errors.As(err, &stale) {
			t.Errorf("a receipt of the %s ticket: %v, want a StaleError", name, err)
		}
	}
	thaw()
	eventually(t, "the node is ready again", cut.Ready)
	eventually(t, "the room is, too", func() bool { return !rooms[1].isStale() })
	if st, err := rooms[1].Place(t.Context(), unknown.ticket); err != nil || st.Status != fairness.StatusWaiting {
		t.Errorf("afterwards the ticket stands as %+v, %v", st, err)
	}
}

// TestRoomThatCannotStore has another session hold a room's lock: that room is reported, and the other one is
// not.
func TestRoomThatCannotStore(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	stuck, fine := create(t, rs, quick("stuck")), create(t, rs, quick("fine"))
	release := lock(t, url, stuck)
	joined := make(chan error, 1)
	go func() { _, err := stuck.Join(t.Context(), newVisitor(stuck).ticket); joined <- err }()
	eventually(t, "the room is reported", func() bool { return rs.Health().Stuck == 1 })
	h := rs.Health()
	if h.Longest < 4*time.Second || !h.Ready || fine.Stuck() != 0 || stuck.Metrics().Stuck < 4*time.Second {
		t.Errorf("health %+v, and the other room is stuck for %s", h, fine.Stuck())
	}
	release()
	if err := <-joined; err != nil {
		t.Error(err)
	}
	eventually(t, "the room is no longer reported", func() bool { return rs.Health().Stuck == 0 })
	if v := stuck.Metrics(); v.Stored < 0 || v.Stored > time.Minute || v.Stuck != 0 {
		t.Errorf("stored %s ago, stuck for %s", v.Stored, v.Stuck)
	}
}

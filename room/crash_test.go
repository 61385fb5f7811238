package room

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
)

// TestPostgresKilled kills PostgreSQL again and again while visitors join. Every join with a receipt is in
// the log, at its place; every pending join gets a response in the end, and no visitor joins twice.
func TestPostgresKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	rs := node(t, server.URL(), newMaster(t))
	r := create(t, rs, Config{Slug: "killed", Windows: []WindowRule{{Length: Duration(300 * time.Millisecond)}}, Outflow: Outflow{PerMinute: 60_000}})
	var people sync.WaitGroup
	var joined atomic.Uint64
	over := make(chan struct{})
	answers := make([][]Joined, 20)
	for n := range answers {
		people.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				j, err := r.Join(t.Context(), newVisitor(r).ticket)
				if err != nil {
					t.Errorf("join: %v", err)
					return
				}
				joined.Add(1)
				checkReceipt(t, r, j)
				answers[n] = append(answers[n], j)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	for range 3 {
		before := joined.Load()
		eventually(t, "visitors join", func() bool { return joined.Load() > before+100 })
		server.KillHard()
		eventually(t, "the node notices", func() bool { return !rs.Ready() })
		server.Restart()
	}
	before := joined.Load()
	eventually(t, "visitors join", func() bool { return joined.Load() > before+100 })
	close(over)
	people.Wait()
	eventually(t, "the node is ready", rs.Ready)
	if report := auditRoom(t, r); report.Arrivals != joined.Load() {
		t.Errorf("%d arrivals, and %d joins were answered", report.Arrivals, joined.Load())
	}
	final := replay(t, r)
	for _, j := range slices.Concat(answers...) {
		if st, ok := final.Standing(j.Ticket, final.Size(), final.Now()); !ok || st.Index != j.Index || st.Seq != j.Seq || st.Window != j.Window || st.Joined != j.Joined {
			t.Fatalf("a join was answered %+v, and the log says %+v", j.Standing, st)
		}
	}
}

// cutter makes connections which, when armed, break right after a commit has been sent and executed, so that
// its response is lost.
type cutter struct {
	armed atomic.Bool
	cuts  atomic.Int32
}

func (c *cutter) pool(config *pgxpool.Config) {
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: conn, cutter: c}, nil
	}
}

type cutConn struct {
	net.Conn
	cutter   *cutter
	sentOver atomic.Bool
}

// Write passes all data on, and notes whether it has a commit, which is in one write with the entries.
func (c *cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte("proofline_entries\x00")) && bytes.Contains(b, []byte("proofline_commit\x00")) &&
		c.cutter.armed.CompareAndSwap(true, false) {
		c.cutter.cuts.Add(1)
		c.sentOver.Store(true)
	}
	return n, err
}

// Read drops the response to a commit.
func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.sentOver.Load() {
		_ = c.Close()
		return 0, errors.New("the connection was cut")
	}
	return n, err
}

// TestLostAnswer loses responses to commits: waiting requests get their responses as usual, and every entry
// is in the log once.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	cut := &cutter{}
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t), cut.pool)
	r := create(t, rs, Config{Slug: "lost", Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}}, Outflow: Outflow{PerMinute: 60_000}})
	lose := func(what string, do func() error) {
		t.Helper()
		before := cut.cuts.Load()
		cut.armed.Store(true)
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if cut.cuts.Load() != before+1 {
			t.Errorf("%s: no answer was lost", what)
		}
	}
	var visitors []visitor
	for range 5 {
		v := newVisitor(r)
		visitors = append(visitors, v)
		lose("join", func() error {
			j, err := r.Join(t.Context(), v.ticket)
			if err == nil && j.Again {
				t.Error("a first join is reported as a repeated one")
			}
			checkReceipt(t, r, j)
			return err
		})
	}
	eventually(t, "all visitors are called", func() bool { return r.Snapshot().Counts.Called == 5 })
	for _, v := range visitors {
		lose("claim", func() error { _, err := r.Claim(t.Context(), v.ticket, v.secret); return err })
	}
	lose("pause", func() error { return r.Pause(t.Context()) })
	lose("resume", func() error { return r.Resume(t.Context()) })
	lose("end", func() error { return r.End(t.Context()) })
	for kind, want := range map[fairness.Kind]int{fairness.KindArrive: 5, fairness.KindAdmit: 5, fairness.KindAmend: 2, fairness.KindEnd: 1} {
		if n := count(t, url, r, kind); n != want {
			t.Errorf("%d %s entries, want %d", n, kind, want)
		}
	}
	auditRoom(t, r)
}

// TestTerminatedConnections ends all connections of a node again and again.
func TestTerminatedConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	name := func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = t.Name() }
	master := newMaster(t)
	r := create(t, node(t, url, master, name), Config{Slug: "ended"})
	over := make(chan struct{})
	var killer, people sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
				superuser(t, url, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1`, t.Name())
			}
		}
	})
	for range 10 {
		people.Go(func() {
			for range 20 {
				if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
					t.Error(err)
				}
			}
		})
	}
	people.Wait()
	close(over)
	killer.Wait()
	if report := auditRoom(t, get(t, node(t, url, master), "ended")); report.Arrivals != 200 {
		t.Errorf("%d arrivals, want 200", report.Arrivals)
	}
}

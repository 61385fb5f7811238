package main

import (
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
)

// slow skips a test that make e2e runs.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("PROOFLINE_TEST_SLOW") == "" {
		t.Skip("make e2e runs it")
	}
}

// fleet is two servers with a crowd that uses both. A switch connects them to their
// database.
type fleet struct {
	t         *testing.T
	at        *pgtest.Switch
	dir, key  string
	nodes     [2]*process
	dirs      [2]string
	organizer *api.Client
	crowd     *crowd
	slug      string
}

func newFleet(t *testing.T, database *pgtest.Server, slug string) *fleet {
	t.Helper()
	f := &fleet{t: t, at: pgtest.NewSwitch(t, database), dir: tempDir(t), slug: slug}
	f.key = newKeyFile(t, f.dir)
	for i, name := range []string{"one", "two"} { // each with its own data directory
		f.dirs[i] = f.dir + "/" + name
		f.nodes[i] = startServer(t, nil, "--data", f.dirs[i], "--addr", "127.0.0.1:0", "--public-url",
			"https://queue.example.com",
			"--admin-token-file", f.dir+"/token", "--database-url", f.at.URL(), "--master-key", f.key)
	}
	token, err := os.ReadFile(f.dir + "/token")
	if err != nil {
		t.Fatal(err)
	}
	f.organizer = &api.Client{Base: f.nodes[0].url, Token: strings.TrimSpace(string(token))}
	f.crowd = gather(t, createRoom(t, f.organizer, slug), f.nodes[0].url, f.nodes[1].url)
	f.more("people join", 100)
	f.crowd.resetPauses()
	f.more("people join on", 20)
	return f
}

// more waits until n more visitors have joined through both nodes.
func (f *fleet) more(what string, n int) {
	f.t.Helper()
	before := f.crowd.joinsByNode()
	waitFor(f.t, what, func() bool {
		by := f.crowd.joinsByNode()
		return by[f.crowd.at(f.nodes[0].url)] >= before[f.crowd.at(f.nodes[0].url)]+n/2 &&
			by[f.crowd.at(f.nodes[1].url)] >= before[f.crowd.at(f.nodes[1].url)]+n/2
	})
}

// size returns the log's size in a database, in entries, and its checkpoint.
func (f *fleet) head(database *pgtest.Server) (size int64, checkpoint string) {
	f.t.Helper()
	database.Get("select size, checkpoint from log_heads join rooms using (room_id) where slug = '"+f.slug+"'", &size, &checkpoint)
	return size, checkpoint
}

// isHeld waits until both nodes respond with 503 because entries are missing, and checks that they sign
// nothing from then on.
func (f *fleet) isHeld(database *pgtest.Server) {
	f.t.Helper()
	for _, node := range f.nodes {
		waitFor(f.t, "the node holds the room", func() bool {
			_, err := (&api.Client{Base: node.url + "/r/" + f.slug}).Call(f.t.Context(), http.MethodGet,
				"/checkpoint", nil, nil)
			problem := (*api.Problem)(nil)
			return errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable &&
				problem.Title == "Records missing" && problem.RetryAfter > 0
		})
	}
	joined := f.crowd.count()
	size, checkpoint := f.head(database)
	time.Sleep(time.Second) // in which the log must not grow, although the crowd keeps trying
	if after, signed := f.head(database); after != size || signed != checkpoint || f.crowd.count() != joined {
		f.t.Errorf("a held room grew from %d to %d entries, and answered %d joins", size, after, f.crowd.count()-joined)
	}
	for _, node := range f.nodes {
		if !strings.Contains(node.said(), "room is held") || !strings.Contains(node.said(), "shown_root=") {
			f.t.Errorf("the node's log lacks the roots:\n%s", node.said())
		}
	}
}

// enter claims and redeems passes through alternating nodes. It returns functions that
// redeem each pass again.
func (f *fleet) enter(n int) (again []func(node *process) error) {
	f.t.Helper()
	for i := range n {
		var secret [fairness.SecretSize]byte
		_, _ = rand.Read(secret[:])
		_, origin, _ := strings.Cut(f.crowd.room.URL, "://")
		ticket := fairness.NewTicket(origin, secret)
		visitor := f.crowd.nodes[i%2]
		if err := f.crowd.join(f.t.Context(), visitor, ticket.String()); err != nil {
			f.t.Fatal(err)
		}
		var pass api.Pass
		waitFor(f.t, "a visitor is called", func() (ok bool) {
			var err error
			if pass, err = visitor.Claim(f.t.Context(), ticket.String(), secret); err != nil &&
				!errors.Is(err, api.ErrNotCalled) {
				f.t.Fatal(err)
			}
			return err == nil
		})
		redeem := func(node *process) error {
			site := &api.Client{Base: f.crowd.at(node.url), Token: pass.Pass}
			_, err := site.Call(f.t.Context(), http.MethodPost,
				"/passes/"+fairness.NewPassID(origin, ticket).String()+"/redeem", nil, new(any))
			return err
		}
		if err := redeem(f.nodes[i%2]); err != nil {
			f.t.Fatal(err)
		}
		again = append(again, redeem)
	}
	return again
}

// insist redeems passes again and again through both nodes, until the returned
// function is called. That function checks that both nodes refuse all of them as used.
func (f *fleet) insist(again []func(*process) error) (end func()) {
	halt, nodes := make(chan struct{}), f.nodes
	var all sync.WaitGroup
	try := func(redeem func(*process) error, node *process) (isUsed bool) {
		err := redeem(node)
		if err == nil {
			f.t.Error("a pass was redeemed twice")
		}
		problem := (*api.Problem)(nil)
		return errors.As(err, &problem) && problem.Title == "Pass used"
	}
	for _, redeem := range again {
		all.Go(func() {
			for turn := 0; ; turn++ {
				select {
				case <-halt:
					return
				case <-time.After(retry):
					try(redeem, nodes[turn%2])
				}
			}
		})
	}
	return func() {
		f.t.Helper()
		close(halt)
		all.Wait()
		for _, redeem := range again {
			for _, node := range f.nodes {
				waitFor(f.t, "a pass is refused as used", func() bool { return try(redeem, node) })
			}
		}
	}
}

// recovers runs "proofline recover".
func (f *fleet) recovers(args ...string) string {
	f.t.Helper()
	stdout, stderr, code := proofline(f.t, "",
		append([]string{"recover", f.slug, "--data", f.dirs[0], "--database-url", f.at.URL(), "--master-key", f.key},
			args...)...)
	if code != 0 {
		f.t.Fatalf("recover %q exits with %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// finish compares the transcript with all responses to the crowd, and logs how long joins paused.
func (f *fleet) finish() {
	f.t.Helper()
	f.more("people join again", 50)
	f.t.Logf("joins paused for %s and %s", f.crowd.pause(f.nodes[0].url), f.crowd.pause(f.nodes[1].url))
	f.crowd.finish(f.t, f.organizer)
	f.nodes[0].stop()
	f.nodes[1].stop()
}

// TestNodesRestoredBackup restores a backup while two nodes run, restarts one of them,
// and recovers the room from the earlier database.
func TestNodesRestoredBackup(t *testing.T) {
	slow(t)
	t.Parallel()
	database := pgtest.Start(t)
	f := newFleet(t, database, "restored")
	backup := database.Backup()
	f.more("people join after the backup", 100)
	end := f.insist(f.enter(4))
	before := database.Restore(backup)
	f.isHeld(database)
	addr := strings.TrimPrefix(f.nodes[1].url, "http://")
	f.nodes[1].kill()
	f.nodes[1] = startServer(t, nil, "--data", f.dirs[1], "--addr", addr, "--public-url", "https://queue.example.com",
		"--admin-token-file", f.dir+"/token", "--database-url", f.at.URL(), "--master-key", f.key)
	f.isHeld(database)
	if said := f.recovers(); !strings.Contains(said, "missing: entries ") {
		t.Errorf("recover says %s", said)
	}
	if said := f.recovers("--from", before.URL()); !strings.Contains(said, "visitors with a receipt") {
		t.Errorf("recover says %s", said)
	}
	f.isHeld(database)
	f.recovers("--from", before.URL(), "--yes")
	end()
	f.finish()
}

// TestNodesFailover promotes a standby that lags behind, and recovers the room from
// the former primary.
func TestNodesFailover(t *testing.T) {
	slow(t)
	t.Parallel()
	primary := pgtest.Start(t)
	standby := primary.Replica("standby")
	f := newFleet(t, primary, "failover")
	standby.Detach()
	f.more("visitors join that the standby lacks", 100)
	end := f.insist(f.enter(4))
	f.at.Cut()
	standby.Promote()
	f.at.Lead(standby)
	f.isHeld(standby)
	f.recovers("--from", primary.URL(), "--yes")
	end()
	f.finish()
}

// TestNodesOldPrimary fails over without loss, and then connects the nodes to the old
// primary again, as if its paused machine had continued. They must not write to it.
func TestNodesOldPrimary(t *testing.T) {
	slow(t)
	t.Parallel()
	primary := pgtest.Start(t)
	standby := primary.Replica("standby")
	primary.Synchronous("standby") // so that nothing is lost
	f := newFleet(t, primary, "returned")
	f.at.Cut()
	standby.Promote()
	f.at.Lead(standby)
	f.more("people join at the new primary", 100)
	old, signed := f.head(primary)
	primary.Synchronous("")
	f.at.Lead(primary)
	waitFor(t, "a node notices the old primary", func() bool {
		return strings.Contains(f.nodes[0].said()+f.nodes[1].said(), "database is an old primary")
	})
	time.Sleep(time.Second) // in which the log must not grow, although the crowd keeps trying
	if size, after := f.head(primary); size != old || after != signed {
		t.Errorf("the old primary's log grew from %d to %d entries", old, size)
	}
	f.at.Lead(standby)
	f.finish()
}

// TestNodesCancelledCommit cancels commits that wait for a synchronous standby, and then loses the primary.
// PostgreSQL keeps such commits on the primary only, so no join of theirs may get a receipt.
func TestNodesCancelledCommit(t *testing.T) {
	slow(t)
	t.Parallel()
	primary := pgtest.Start(t)
	standby := primary.Replica("standby")
	primary.Synchronous("standby")
	f := newFleet(t, primary, "cancelled")
	standby.Pause()
	waitFor(t, "a commit waits for the standby", func() bool {
		var n int
		primary.Get("select count(*) from pg_stat_activity where wait_event = 'SyncRep'", &n)
		return n > 0
	})
	joined := f.crowd.count()
	size, _ := f.head(primary)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		primary.Exec("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
	}
	if kept, _ := f.head(primary); kept <= size {
		t.Error("no cancelled commit was kept: nothing was tested")
	}
	if n := f.crowd.count() - joined; n > 0 {
		t.Errorf("%d joins were answered that only the primary has", n)
	}
	primary.KillHard()
	standby.Resume()
	standby.Promote()
	f.at.Lead(standby)
	f.finish()
}

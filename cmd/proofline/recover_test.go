package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/s3test"
	"github.com/proofline/proofline/internal/wire"
)

// guests are visitors of a room, with the responses they got.
type guests struct {
	t      *testing.T
	room   wire.Room
	joined []api.Joined
}

// join joins n more visitors through a server.
func (g *guests) join(node *process, n int) {
	g.t.Helper()
	for range n {
		j, err := g.at(node).Join(g.t.Context(), "")
		if err != nil {
			g.t.Fatal(err)
		}
		g.joined = append(g.joined, j)
	}
}

func (g *guests) at(node *process) *api.Client {
	return &api.Client{Base: node.url + "/r/" + g.room.Slug}
}

// refused waits until a server responds to joins with a problem of this title.
func (g *guests) refused(node *process, title string) {
	g.t.Helper()
	waitFor(g.t, title, func() bool {
		_, err := g.at(node).Place(g.t.Context(), g.joined[0].Ticket)
		problem := (*api.Problem)(nil)
		return errors.As(err, &problem) && problem.Title == title
	})
}

// goOn waits until visitors can join through a server again, and checks that the
// transcript has the arrivals of all receipts.
func (g *guests) goOn(node *process) {
	g.t.Helper()
	waitFor(g.t, "visitors can join", func() bool {
		_, err := g.at(node).Place(g.t.Context(), g.joined[0].Ticket)
		return err == nil
	})
	g.join(node, 3)
	at := g.at(node).Base
	waitFor(g.t, "all receipts are in the transcript", func() bool {
		published, err := transcript.Read(g.t.Context(), at, g.room.VKey)
		if err != nil {
			g.t.Fatal(err)
		}
		if uint64(len(published.Entries)) <= g.joined[len(g.joined)-1].Index {
			return false // not published yet
		}
		for i := range g.joined {
			if err := published.CheckReceipt(&g.joined[i]); err != nil {
				g.t.Fatal(err)
			}
		}
		return true
	})
}

// copyDir copies a directory and keeps file owners.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestNodesRecoverPrivate restores an old copy of a private PostgreSQL's files. It
// recovers one room from a directory and one from a server that still publishes it,
// and ends one without any copy.
func TestNodesRecoverPrivate(t *testing.T) {
	slow(t)
	t.Parallel()
	dir := tempDir(t)
	data, backup, newer := filepath.Join(dir, "data"), filepath.Join(dir, "backup"), filepath.Join(dir, "newer")
	run := func(data string) *process { return startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0") }
	p := run(data)
	rooms := map[string]*guests{}
	for _, slug := range []string{"copied", "shown", "lost"} {
		rooms[slug] = &guests{t: t, room: createRoom(t, manager(t, p, data), slug)}
		rooms[slug].join(p, 3)
	}
	p.stop()
	copyDir(t, filepath.Join(data, "postgres"), backup)
	p = run(data)
	for _, g := range rooms {
		g.join(p, 5)
	}
	p.stop()
	copyDir(t, data, newer)
	if err := os.RemoveAll(filepath.Join(data, "postgres")); err != nil {
		t.Fatal(err)
	}
	copyDir(t, backup, filepath.Join(data, "postgres"))

	p = run(data)
	recovers := func(slug string, args ...string) string {
		t.Helper()
		stdout, stderr, code := proofline(t, "", append([]string{"recover", slug, "--data", data}, args...)...)
		if code != 0 {
			t.Fatalf("recover %s %q exits with %d: %s%s", slug, args, code, stdout, stderr)
		}
		return stdout
	}
	for slug, g := range rooms {
		g.refused(p, "Records missing")
		if said := recovers(slug); !strings.Contains(said, "missing: entries ") {
			t.Errorf("recover says %s", said)
		}
	}
	q := run(newer) // still publishes the rooms
	fetched := filepath.Join(dir, "fetched")
	waitFor(t, "a copy has all entries", func() bool {
		if _, stderr, code := command(t, "", "proofline-verify", "fetch", q.url+"/r/copied", fetched); code != 0 {
			t.Fatal(stderr)
		}
		_, _, code := proofline(t, "", "recover", "copied", "--data", data, "--from", fetched)
		return code == 0
	})
	if said := recovers("copied", "--from", fetched); !strings.Contains(said, "5 visitors with a receipt") ||
		!strings.Contains(said, rooms["copied"].joined[7].Ticket) {
		t.Errorf("recover says %s", said)
	}
	rooms["copied"].refused(p, "Records missing")
	recovers("copied", "--from", fetched, "--yes")
	rooms["copied"].goOn(p)

	if stdout, stderr, code := proofline(t, "", "recover", "shown", "--data", data, "--from", fetched,
		"--yes"); code == 0 {
		t.Errorf("recovered a room from another room's copy: %s%s", stdout, stderr)
	}
	recovers("shown", "--from", q.url+"/r/shown", "--yes")
	q.stop()
	rooms["shown"].goOn(p)

	const words = "The database was lost at 14:02. All tickets are refunded."
	recovers("lost", "--end-with", words)
	rooms["lost"].refused(p, "Records missing")
	said := recovers("lost", "--end-with", words, "--yes")
	_, statement, _ := strings.Cut(said, "\n\n")
	key, err := note.NewVerifier(rooms["lost"].room.VKey)
	if err != nil {
		t.Fatal(err)
	}
	if signed, err := note.Open([]byte(statement[strings.Index(statement, "proofline.dev/"):]),
		note.VerifierList(key)); err != nil || !strings.Contains(signed.Text, words) {
		t.Errorf("the statement: %v\n%s", err, said)
	}
	rooms["lost"].refused(p, "Records lost")
	if again := recovers("lost"); !strings.Contains(again, words) {
		t.Errorf("recover says %s", again)
	}
	p.stop()
	p = run(data)
	rooms["lost"].refused(p, "Records lost")
	rooms["copied"].goOn(p)
	rooms["shown"].goOn(p)
	p.stop()
}

// witnessedRoom is a room with a witness, whose database is restored to an earlier
// state than the witness has cosigned.
type witnessedRoom struct {
	guests
	database, before *pgtest.Server
	size             int64 // of the log in the restored database
	key, args        []string
	witness          *process
	address, state   string
	dir              string
}

// stored returns a number that the database has about the room's log.
func (r *witnessedRoom) stored(what string) (n int64) {
	r.t.Helper()
	r.database.Get("select "+what+" from log_heads join rooms using (room_id) where slug = '"+r.room.Slug+"'", &n)
	return n
}

func newWitnessedRoom(t *testing.T, slug string) *witnessedRoom {
	t.Helper()
	r := &witnessedRoom{guests: guests{t: t}, database: pgtest.Start(t), dir: tempDir(t)}
	beacon := launch(t, nil, "beacon", "serve", "--addr", "127.0.0.1:0", "--period", "1s", "--key",
		filepath.Join(r.dir, "beacon-key"))
	beacon.listens()
	r.state = filepath.Join(r.dir, "witness")
	w, key, address := runWitness(t, "one.example.org", r.state, "--addr", "127.0.0.1:0")
	w.stop()
	r.address = strings.TrimPrefix(address, "http://")
	r.key = []string{"--database-url", r.database.URL(), "--master-key", newKeyFile(t, r.dir)}
	r.args = append([]string{"--addr", "127.0.0.1:0", "--public-url", "https://queue.example.com",
		"--admin-token-file", filepath.Join(r.dir, server.TokenFile),
		"--beacon-relays", beacon.url, "--beacon-chain", beacon.until(`chain +([0-9a-f]{64})`,
			startTime), "--witnesses", key + "=" + address}, r.key...)
	first := r.startServer("first")
	if _, err := manager(t, first, r.dir).Call(t.Context(), http.MethodPost, "/v1/rooms",
		[]byte(`{"slug": "`+slug+`", "windows": [{"length": "500ms"}], "outflow": {"per_minute": 60000}, "margin": "5s", "quorum": 1}`), &r.room); err != nil {
		t.Fatal(err)
	}
	r.attend()
	r.join(first, 3)
	backup := r.database.Backup()
	r.size = r.stored("size")
	waitFor(t, "the witness cosigns entries after the backup", func() bool {
		r.join(first, 1)
		return r.stored("case when published like '%one.example.org%' then published_size else 0 end") > r.size
	})
	first.kill()
	r.before = r.database.Restore(backup)
	// Otherwise the next server waits for the first one, and meanwhile the witness reports its checkpoint.
	r.database.Exec("delete from log_nodes")
	return r
}

// startServer starts a server with its own data directory.
func (r *witnessedRoom) startServer(name string) *process {
	r.t.Helper()
	return startServer(r.t, nil, append([]string{"--data", filepath.Join(r.dir, name)}, r.args...)...)
}

// attend starts the witness.
func (r *witnessedRoom) attend() {
	r.t.Helper()
	r.witness, _, _ = runWitness(r.t, "", r.state, "--addr", r.address, "--log", r.room.VKey)
}

func (r *witnessedRoom) recovers(name string, args ...string) string {
	r.t.Helper()
	stdout, stderr, code := proofline(r.t, "",
		append(append([]string{"recover", r.room.Slug, "--data", filepath.Join(r.dir, name)}, r.key...), args...)...)
	if code != 0 {
		r.t.Fatalf("recover %q exits with %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// TestNodesNewServer starts a server without marks on a database that was restored
// from a backup. It learns of the loss from the witness before it appends an entry,
// and continues from a copy.
func TestNodesNewServer(t *testing.T) {
	slow(t)
	t.Parallel()
	r := newWitnessedRoom(t, "unmarked")
	node := r.startServer("new")
	if j, err := r.at(node).Join(t.Context(), ""); err == nil {
		t.Errorf("a visitor joins a second history: %+v", j)
	}
	r.refused(node, "Records missing")
	time.Sleep(time.Second) // in which the log must not grow
	if size := r.stored("size"); size != r.size {
		t.Errorf("the log grew from %d to %d entries", r.size, size)
	}
	if said := r.recovers("new"); !strings.Contains(said, "witness one.example.org has seen ") ||
		!strings.Contains(said, "missing: entries ") {
		t.Errorf("recover says %s", said)
	}
	r.recovers("new", "--from", r.before.URL(), "--yes")
	r.goOn(node)
	node.stop()
}

// TestNodesWitnessRefuses starts such a server while the witness is away. It logs a
// warning and continues, holds the room when the witness is back and refuses, and
// continues when the operator overrules the witness.
func TestNodesWitnessRefuses(t *testing.T) {
	slow(t)
	t.Parallel()
	r := newWitnessedRoom(t, "refused")
	r.witness.stop()
	node := r.startServer("new")
	r.joined = r.joined[:3] // those in the database
	r.join(node, 3)
	if !strings.Contains(node.said(), "cannot compare a room that is new to this server with a witness") {
		t.Errorf("no warning that the witness is away:\n%s", node.said())
	}
	r.attend()
	r.refused(node, "Records missing")
	if !strings.Contains(node.said(), `shown_to="witness one.example.org"`) {
		t.Errorf("no log line names the witness with more entries:\n%s", node.said())
	}
	again := r.startServer("another")
	r.refused(again, "Records missing")
	r.recovers("new", "--overrule-witness")
	r.refused(node, "Records missing")
	r.recovers("new", "--overrule-witness", "--yes")
	r.goOn(node)
	r.goOn(again)
	third := r.startServer("third") // asks the witness, which has been overruled
	r.goOn(third)
	for _, p := range []*process{node, again, third} {
		p.stop()
	}
}

// TestNodesMarksElsewhere restores a backup after two servers have lost their data directories, too. New servers hold
// the room by the marks in object storage, even if that was away when they started, and the room continues from a copy.
func TestNodesMarksElsewhere(t *testing.T) {
	slow(t)
	t.Parallel()
	for _, isAway := range []bool{false, true} {
		t.Run(fmt.Sprintf("away %t", isAway), func(t *testing.T) {
			t.Parallel()
			database, objects, dir := pgtest.Start(t), s3test.Start(t), tempDir(t)
			storage := []string{"--database-url", database.URL(), "--master-key", newKeyFile(t, dir), "--marks-s3",
				"s3://" + s3test.Bucket + "/drill"}
			run := func(name string) *process {
				return startServer(t, objects.Env(), append([]string{"serve", "--data", filepath.Join(dir, name), "--addr",
					"127.0.0.1:0", "--public-url", "https://queue.example.com", "--admin-token-file",
					filepath.Join(dir, server.TokenFile)}, storage...)[1:]...)
			}
			one, two := run("one"), run("two")
			g := &guests{t: t, room: createRoom(t, manager(t, one, dir), "elsewhere")}
			g.join(one, 2)
			backup := database.Backup()
			g.join(one, 3)
			g.join(two, 3)
			var size int64
			waitFor(t, "object storage has a mark of all receipts", func() bool {
				for _, line := range objects.Objects("drill/elsewhere/") {
					if fields := strings.Fields(line); len(fields) == 5 {
						size, _ = strconv.ParseInt(fields[2], 10, 64)
					}
				}
				return uint64(size) > g.joined[len(g.joined)-1].Index
			})
			one.kill()
			two.kill()
			before := database.Restore(backup)
			for _, name := range []string{"one", "two"} {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			database.Exec("delete from log_nodes")

			objects.Away.Store(isAway)
			node := run("new")
			if _, err := g.at(node).Join(t.Context(), ""); (err == nil) != isAway {
				t.Errorf("a visitor joins the restored room: %v", err)
			}
			objects.Away.Store(false)
			g.refused(node, "Records missing")
			another := run("another")
			g.refused(another, "Records missing")
			if isAway { // the receipt that was given meanwhile is of a second history, which nothing can mend
				return
			}
			recovers := func(args ...string) string {
				t.Helper()
				stdout, stderr, code := proofline(t, "", slices.Concat([]string{"recover", "elsewhere", "--data",
					filepath.Join(dir, "new")}, storage[:4], args)...)
				if code != 0 {
					t.Fatalf("recover %q exits with %d: %s%s", args, code, stdout, stderr)
				}
				return stdout
			}
			if said := recovers(); !strings.Contains(said, "object storage has seen ") ||
				!strings.Contains(said, "missing: entries ") {
				t.Errorf("recover says %s", said)
			}
			recovers("--from", before.URL(), "--yes")
			g.goOn(node)
			g.goOn(another)
			node.stop()
			another.stop()
		})
	}
}

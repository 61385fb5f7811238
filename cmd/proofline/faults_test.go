package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/pgtest"
)

// longestPause bounds how long a fault of one node may hold up joins at another: a
// silent connection that holds a room's lock is terminated after about 2.75 s. TCP would
// take minutes.
const longestPause = 20 * time.Second

// noticed bounds how long a server may not know that its database is away: two seconds,
// and more on a busy machine.
const noticed = 20 * time.Second

// twoNodes starts two servers on one database, the second one through a link, and a
// crowd that uses both.
func twoNodes(t *testing.T, slug string) (one, two *process, l *link, c *crowd, finish func()) {
	t.Helper()
	database, dir := pgtest.Start(t), tempDir(t)
	key := newKeyFile(t, dir)
	l = newLink(t, database.URL())
	start := func(url string) *process {
		return startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--public-url", "https://queue.example.com",
			"--database-url", url, "--master-key", key)
	}
	one, two = start(database.URL()), start(l.URL)
	organizer := manager(t, one, dir)
	c = gather(t, createRoom(t, organizer, slug), one.url, two.url)
	waitFor(t, "people join through both", func() bool {
		by := c.joinsByNode()
		return len(by) == 2 && c.count() > 100
	})
	c.resetPauses()
	return one, two, l, c, func() { c.finish(t, organizer) }
}

// TestNodesLostInAppend loses a node in the middle of the write that stores entries and commits.
func TestNodesLostInAppend(t *testing.T) {
	t.Parallel()
	one, two, l, c, finish := twoNodes(t, "lost")
	l.loseAfter("\x00proofline_entries\x00") // as a statement to run: one that is prepared has no lock yet
	<-l.gone
	two.kill()
	lost := time.Now()
	before := c.joinsByNode()[c.at(one.url)]
	waitFor(t, "people join through the other node", func() bool { return c.joinsByNode()[c.at(one.url)] > before+50 })
	t.Logf("fifty people had joined %s after the node was lost; the longest pause was %s",
		time.Since(lost).Round(time.Millisecond), c.pause(one.url))
	if pause := c.pause(one.url); pause > longestPause {
		t.Errorf("joins paused for %s", pause)
	}
	if !strings.Contains(one.said(), "terminated a connection that held a room's lock") {
		t.Errorf("the other node terminated no connection:\n%s", one.said())
	}
	finish()
	one.stop()
}

// TestNodesCutOff cuts a node off from the database for a while. It must report that
// it is not ready, and must not deny tickets of the other node.
func TestNodesCutOff(t *testing.T) {
	t.Parallel()
	one, two, l, c, finish := twoNodes(t, "cut")
	l.freeze(true)
	cut := time.Now()
	waitFor(t, "the node is not ready",
		func() bool { return status(t, two.url+"/readyz") == http.StatusServiceUnavailable })
	if took := time.Since(cut); took > noticed {
		t.Errorf("the node was ready for %s without its database", took)
	}
	if live, ready := status(t, two.url+"/livez"), status(t, one.url+"/readyz"); live != http.StatusOK ||
		ready != http.StatusOK {
		t.Errorf("the node that is cut off is alive: %d; the other one is ready: %d", live, ready)
	}
	answers, before := map[int]int{}, c.joinsByNode()[c.at(one.url)]
	for time.Since(cut) < 8*time.Second {
		for _, ticket := range c.latest(one.url, 20) {
			answers[status(t, two.url+"/r/cut/tickets/"+ticket)]++
		}
		time.Sleep(50 * time.Millisecond)
	}
	if answers[http.StatusNotFound] > 0 || answers[http.StatusServiceUnavailable] == 0 ||
		answers[http.StatusInternalServerError] > 0 {
		t.Errorf("polls at the node that was cut off were answered with %v", answers)
	}
	waitFor(t, "people join through the other node", func() bool { return c.joinsByNode()[c.at(one.url)] > before+50 })
	l.freeze(false)
	waitFor(t, "the node is ready again", func() bool { return status(t, two.url+"/readyz") == http.StatusOK })
	t.Logf("polls at the node that was cut off: %v; the longest pause of joins at the other: %s", answers,
		c.pause(one.url))
	before = c.joinsByNode()[c.at(two.url)]
	waitFor(t, "people join through the node again", func() bool { return c.joinsByNode()[c.at(two.url)] > before+10 })
	finish()
	one.stop()
	two.stop()
}

// TestNodesUpgrade: the next version adds to all tables while two servers of this one run. They go on, and one can
// start again. Once that version takes something away, this one does not start, and says why.
func TestNodesUpgrade(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	key, ports := newKeyFile(t, dir), []string{freePort(t), freePort(t)}
	argsOf := func(i int) []string {
		return []string{"--data", dir, "--addr", "127.0.0.1:" + ports[i], "--public-url", "https://queue.example.com",
			"--database-url", database.URL(), "--master-key", key}
	}
	one, two := startServer(t, nil, argsOf(0)...), startServer(t, nil, argsOf(1)...)
	organizer := manager(t, one, dir)
	c := gather(t, createRoom(t, organizer, "upgrade"), one.url, two.url)
	more := func(what string) {
		t.Helper()
		before := c.count()
		waitFor(t, what, func() bool { return c.count() > before+50 })
	}
	more("people join")
	var tables []string
	database.Get(`select array_agg(tablename::text) from pg_tables where schemaname = 'public'`, &tables)
	for _, name := range tables { // one by one, because a migration that locks them all may deadlock with an append
		database.Exec(`alter table ` + name + ` add column of_next_version text`)
	}
	database.Exec(`create table next_version (id bigint)`)
	database.Exec(`insert into goose_db_version (version_id, is_applied) values (9999, true)`)
	more("people join on the schema of the next version")
	two.stop()
	two = startServer(t, nil, argsOf(1)...)
	more("people join after a restart")
	two.stop()
	database.Exec(`update schema_floor set floor = 9999`)
	next := launch(t, nil, append([]string{"serve"}, argsOf(1)...)...)
	if err := <-next.exited; err == nil || !strings.Contains(next.said(), "newer version of proofline") {
		t.Errorf("below the floor: %v\n%s", err, next.said())
	}
	next.exited <- nil
	c.finish(t, organizer)
	one.stop()
}

// TestNodesClockStep: the database's clock jumps by an hour for eight seconds. Joins
// continue with the earlier time, and no called visitor is skipped. Then it jumps for
// good, and the operator confirms it.
func TestNodesClockStep(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	set := steppedClock(t, database.URL())
	key := newKeyFile(t, dir)
	start := func() *process {
		return startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--public-url", "https://queue.example.com",
			"--database-url", database.URL()+"&search_path=public,pg_catalog", "--master-key", key)
	}
	one, two := start(), start()
	organizer := manager(t, one, dir)
	room := createRoom(t, organizer, "clock")
	c := gather(t, room, one.url, two.url)
	waitFor(t, "people join through both", func() bool { return len(c.joinsByNode()) == 2 && c.count() > 100 })
	c.resetPauses()
	set(time.Hour)
	for _, p := range []*process{one, two} {
		waitFor(t, "the jump is logged",
			func() bool { return strings.Contains(p.said(), "database's clock has jumped") })
	}
	time.Sleep(8 * time.Second)
	if ready := status(t, one.url+"/readyz"); ready != http.StatusOK {
		t.Errorf("the server is ready: %d", ready)
	}
	set(0)
	waitFor(t, "the clock is back", func() bool { return strings.Contains(one.said(), "agrees with the rooms' time again") })
	before := c.count()
	waitFor(t, "people join", func() bool { return c.count() > before+50 })
	t.Logf("the longest pauses of joins: %s and %s", c.pause(one.url), c.pause(two.url))
	if pause := max(c.pause(one.url), c.pause(two.url)); pause > longestPause {
		t.Errorf("joins paused for %s", pause)
	}
	for _, j := range c.all() {
		if off := time.Since(j.Time); off < -time.Minute || off > 5*time.Minute {
			t.Fatalf("a join is recorded %s ago", off)
		}
	}
	c.stop() // an hour later, the visitors called there have missed their claim time
	set(time.Hour)
	waitFor(t, "the jump is logged again",
		func() bool { return strings.Count(one.said(), "database's clock has jumped") == 2 })
	if _, stderr, code := proofline(t, "", "clock", "confirm", "--server", one.url, "--token-file",
		filepath.Join(dir, server.TokenFile)); code != 0 {
		t.Fatalf("clock confirm exits with %d: %s", code, stderr)
	}
	for _, p := range []*process{one, two} {
		waitFor(t, "the jump is taken", func() bool {
			return strings.Contains(p.said(), "following the jump") && strings.Contains(p.said(), "why=confirmed")
		})
	}
	if err := c.join(t.Context(), c.nodes[1], ""); err != nil {
		t.Fatal(err)
	}
	if all := c.all(); time.Until(all[len(all)-1].Time) < 59*time.Minute {
		t.Errorf("a join is recorded at %s", all[len(all)-1].Time)
	}
	c.finish(t, organizer)
	one.stop()
	two.stop()
}

// steppedClock gives a database a clock that the test can set ahead: its functions
// precede PostgreSQL's own in the search path.
func steppedClock(t *testing.T, url string) (set func(ahead time.Duration)) {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_, err = conn.Exec(t.Context(), sql, args...)
			err = errors.Join(err, conn.Close(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exec(`
		create table clock_ahead (ahead interval not null);
		insert into clock_ahead values ('0');
		grant select on clock_ahead to proofline_server;
		create function public.clock_timestamp() returns timestamptz volatile language sql as
			'select pg_catalog.clock_timestamp() + ahead from public.clock_ahead';
		create function public.now() returns timestamptz stable language sql as
			'select pg_catalog.now() + ahead from public.clock_ahead'`)
	return func(ahead time.Duration) {
		t.Helper()
		exec(`update clock_ahead set ahead = make_interval(secs => $1)`, ahead.Seconds())
	}
}

// TestCrashFrozen stops all PostgreSQL processes with SIGSTOP for a while, so that
// requests are neither refused nor answered.
func TestCrashFrozen(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--database-url", database.URL(), "--master-key",
		newKeyFile(t, dir))
	organizer := manager(t, p, dir)
	c := gather(t, createRoom(t, organizer, "frozen"), p.url)
	waitFor(t, "people join", func() bool { return c.count() > 50 })
	frozen := processesOf(t, database.Dir())
	signal := func(s syscall.Signal) {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, s) // a backend may have ended
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	began := time.Now()
	waitFor(t, "the server is not ready",
		func() bool { return status(t, p.url+"/readyz") == http.StatusServiceUnavailable })
	if took := time.Since(began); took > noticed {
		t.Errorf("the server was ready for %s without its database", took)
	}
	for _, path := range []string{"/livez", "/readyz?exclude=database"} {
		if s := status(t, p.url+path); s != http.StatusOK {
			t.Errorf("%s is answered with %d while the database is away", path, s)
		}
	}
	waitFor(t, "the room is reported", func() bool { return strings.Contains(p.said(), "room cannot store anything") })
	signal(syscall.SIGCONT)
	waitFor(t, "the server is ready again", func() bool { return status(t, p.url+"/readyz") == http.StatusOK })
	before := c.count()
	waitFor(t, "people join again", func() bool { return c.count() > before+10 })
	c.finish(t, organizer)
	p.stop()
}

// status returns the status of a GET request.
func status(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
		t.Errorf("%s is 503 without Retry-After", url)
	}
	if text, err := io.ReadAll(r.Body); strings.HasSuffix(url, "/readyz") && (err != nil || !json.Valid(text)) {
		t.Errorf("%s is not JSON: %s", url, text)
	}
	return r.StatusCode
}

// processesOf returns the postmaster of a data directory and its children.
func processesOf(t *testing.T, dir string) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	list := []int{postmaster}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for malformed patterns
	for _, file := range stats {
		var pid, parent int
		var name, state string
		if text, err := os.ReadFile(file); err == nil {
			if _, err := fmt.Sscanf(string(text), "%d %s %s %d", &pid, &name, &state, &parent); err == nil &&
				parent == postmaster {
				list = append(list, pid)
			}
		}
	}
	return list
}

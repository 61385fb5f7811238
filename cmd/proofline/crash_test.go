package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/wire"
)

// alive is the time between two crashes.
const alive = 800 * time.Millisecond

// rounds returns the number of kills in a test: PROOFLINE_TEST_KILLS, or a few.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("PROOFLINE_TEST_KILLS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PROOFLINE_TEST_KILLS=%q is not a number of kills", text)
	}
	return n
}

// TestCrashServer kills the server with SIGKILL again and again while visitors join,
// and stops it gracefully once. At the end the transcript must have the arrivals of
// all receipts.
func TestCrashServer(t *testing.T) {
	t.Parallel()
	dir, addr := tempDir(t), "127.0.0.1:"+freePort(t)
	start := func() *process { return startServer(t, nil, "--data", dir, "--addr", addr) }
	p := start()
	organizer := manager(t, p, dir)
	room := createRoom(t, organizer, "crash")
	c := gather(t, room, p.url)
	for range rounds(t) {
		time.Sleep(alive)
		p.kill()
		p = start()
	}
	time.Sleep(alive)
	p.stop()
	p = start()
	time.Sleep(alive)
	c.finish(t, organizer)
	if c.failures() == 0 {
		t.Error("no request failed: no crash hit an open request")
	}
	p.stop()
}

// TestCrashPostgres kills all PostgreSQL processes with SIGKILL again and again while
// visitors join. The server must keep running and lose no arrival.
func TestCrashPostgres(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--database-url", database.URL(), "--master-key",
		newKeyFile(t, dir))
	organizer := manager(t, p, dir)
	room := createRoom(t, organizer, "crash")
	c := gather(t, room, p.url)
	for range rounds(t) {
		time.Sleep(alive)
		before := c.count()
		database.KillHard()
		time.Sleep(alive / 4)
		database.Restart()
		waitFor(t, "people join again", func() bool { return c.count() > before+10 })
	}
	time.Sleep(alive)
	c.finish(t, organizer)
	if !strings.Contains(p.said(), "append failed and may or may not be stored") {
		t.Error("no append failed: no crash hit an open append")
	}
	p.stop()
}

// TestCrashInTurns kills PostgreSQL and the server with SIGKILL in turns while visitors join one room.
func TestCrashInTurns(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	key, addr := newKeyFile(t, dir), "127.0.0.1:"+freePort(t)
	start := func() *process {
		return startServer(t, nil, "--data", dir, "--addr", addr, "--database-url", database.URL(), "--master-key", key)
	}
	p := start()
	organizer := manager(t, p, dir)
	c := gather(t, createRoom(t, organizer, "turns"), p.url)
	for i := range rounds(t) {
		time.Sleep(alive)
		before := c.count()
		if i%2 == 0 {
			database.KillHard()
			database.Restart()
		} else {
			p.kill()
			p = start()
		}
		waitFor(t, "visitors join again", func() bool { return c.count() > before+10 })
	}
	c.finish(t, organizer)
	if c.failures() == 0 {
		t.Error("no request failed: no crash hit an open request")
	}
	t.Logf("%d kills", rounds(t))
	p.stop()
}

// TestNodes: two servers on one database serve a room together. Visitors use both,
// and one of them is killed and restarted.
func TestNodes(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	key := newKeyFile(t, dir)
	start := func(addr string) *process {
		return launch(t, nil, "serve", "--data", dir, "--addr", addr, "--public-url", "https://queue.example.com",
			"--database-url", database.URL(), "--master-key", key)
	}
	one, two := start("127.0.0.1:0"), start("127.0.0.1:0") // at once, on an empty database
	one.listens()
	two.listens()
	organizer := manager(t, one, dir)
	room := createRoom(t, organizer, "nodes")
	c := gather(t, room, one.url, two.url)
	time.Sleep(2 * alive)
	addr := two.url[len("http://"):]
	two.kill()
	time.Sleep(alive)
	two = start(addr)
	two.listens()
	time.Sleep(2 * alive)
	c.finish(t, organizer)
	for node, n := range c.joinsByNode() {
		if n < 10 {
			t.Errorf("only %d joined through %s", n, node)
		}
	}
	both := *organizer
	both.Base = two.url
	waitFor(t, "the other node knows of the end", func() bool {
		var seen wire.Room
		_, err := both.Call(t.Context(), "GET", "/v1/rooms/nodes", nil, &seen)
		return err == nil && seen.Phase == "ended"
	})
	one.stop()
	two.stop()
}

func newKeyFile(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "key-of-the-database")
	if _, stderr, code := proofline(t, "", "master-key", file); code != 0 {
		t.Fatal(stderr)
	}
	return file
}

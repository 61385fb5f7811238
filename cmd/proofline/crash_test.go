package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/internal/pgtest"
)

// alive is how long things run between two crashes.
const alive = 800 * time.Millisecond

// rounds is how often things crash: PROOFLINE_TEST_CRASHES, or a few.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("PROOFLINE_TEST_CRASHES")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PROOFLINE_TEST_CRASHES=%q is no number of crashes", text)
	}
	return n
}

// TestCrashServer kills the server with SIGKILL while people join, again and
// again, and once stops it in order. Every receipt it ever gave must be in the
// transcript at the end.
func TestCrashServer(t *testing.T) {
	t.Parallel()
	dir, addr := tempDir(t), "127.0.0.1:"+freePort(t)
	start := func() *process { return serve(t, nil, "--data", dir, "--addr", addr) }
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
		t.Error("no request ever failed: nothing was killed under way")
	}
	p.stop()
}

// TestCrashPostgres kills all processes of PostgreSQL with SIGKILL while
// people join, again and again. The server must live on and lose nothing.
func TestCrashPostgres(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	p := serve(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--database-url", database.URL(), "--master-key", newKeyFile(t, dir))
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
	if !strings.Contains(p.said(), "append is tried again") {
		t.Error("no append ever failed: nothing was killed under way")
	}
	p.stop()
}

// TestNodes has two servers on one database serve one room at once: every
// visitor talks to both. One of them is killed and comes back.
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
		var seen api.Room
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

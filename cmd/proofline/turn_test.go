package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/verifier/numeral"
)

// The times of a room in these tests: called visitors have claimTime to go in, an outage takes outage, and at most
// graceTime of it counts.
const (
	claimTime = 10 * time.Second
	graceTime = 2 * time.Second
	outage    = 2 * claimTime
)

// called is a room whose visitors are called all at once, and then go in through any of its nodes.
type called struct {
	t      *testing.T
	room   wire.Room
	chain  string       // hash of the room's beacon
	client *api.Client  // of the organizer
	people []*visitorOf // those who have not gone in
	gone   int          // those who have
}

// visitorOf is one visitor of a room.
type visitorOf struct {
	ticket string
	secret [fairness.SecretSize]byte
}

// withBeacon starts a beacon and returns the arguments of servers that use it.
func withBeacon(t *testing.T) (chain string, args []string) {
	t.Helper()
	b := launch(t, nil, "beacon", "serve", "--addr", "127.0.0.1:0", "--period", "1s", "--key",
		filepath.Join(tempDir(t), "beacon-key"))
	b.listens()
	chain = b.until(`chain +([0-9a-f]{64})`, startTime)
	return chain, []string{"--beacon-relays", b.url, "--beacon-chain", chain}
}

// newCalled creates a room, paused.
func newCalled(t *testing.T, organizer *api.Client, chain string) *called {
	t.Helper()
	c := &called{t: t, client: organizer, chain: chain}
	body := fmt.Sprintf(`{"slug": "turns", "windows": [{"length": "500ms"}], "outflow": {"per_minute": 1000000}, "claim": %q, "grace": %q, "margin": "5s"}`,
		claimTime, graceTime)
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(body), &c.room); err != nil {
		t.Fatal(err)
	}
	c.ask("pause")
	return c
}

// ask sends a command of the organizer to a running node, and returns the room.
func (c *called) ask(what string) (room wire.Room) {
	c.t.Helper()
	method, path := http.MethodPost, "/v1/rooms/turns/"+what
	if what == "" {
		method, path = http.MethodGet, "/v1/rooms/turns"
	}
	if _, err := c.client.Call(c.t.Context(), method, path, nil, &room); err != nil {
		c.t.Fatal(err)
	}
	return room
}

// inParallel runs do for each visitor, a few at a time.
func inParallel(people []*visitorOf, do func(i int, v *visitorOf)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 16 {
		all.Go(func() {
			for i := range next {
				do(i, people[i])
			}
		})
	}
	for i := range people {
		next <- i
	}
	close(next)
	all.Wait()
}

// callAll has n more visitors join, waits until they are drawn, and calls them all at once. The room is paused before.
func (c *called) callAll(n int, nodes ...*process) {
	c.t.Helper()
	_, origin, _ := strings.Cut(c.room.URL, "://")
	fresh := make([]*visitorOf, n)
	for i := range fresh {
		v := &visitorOf{}
		_, _ = rand.Read(v.secret[:])
		v.ticket = fairness.NewTicket(origin, v.secret).String()
		fresh[i] = v
	}
	inParallel(fresh, func(i int, v *visitorOf) {
		if _, err := c.at(nodes[i%len(nodes)]).Join(c.t.Context(), v.ticket); err != nil {
			c.t.Errorf("a visitor joins: %v", err)
		}
	})
	c.people = append(c.people, fresh...)
	waitFor(c.t, "all are drawn", func() bool { return c.ask("").Counts.Ready == uint64(n) })
	c.ask("resume")
	waitFor(c.t, "all are called", func() bool { return c.ask("").Counts.Waiting == uint64(n) })
}

// goIn has the first n visitors go in through the nodes in turns. A node may be away, but must not refuse anybody.
func (c *called) goIn(n int, nodes ...*process) {
	c.t.Helper()
	began := time.Now()
	inParallel(c.people[:n], func(i int, v *visitorOf) {
		for end := time.Now().Add(startTime); ; time.Sleep(retry) {
			_, err := c.at(nodes[i%len(nodes)]).Claim(c.t.Context(), v.ticket, v.secret)
			problem := (*api.Problem)(nil)
			isAway := errors.Is(err, api.ErrUnreachable) || errors.As(err, &problem) && problem.Status >= 500
			if err == nil {
				return
			}
			if !isAway || time.Now().After(end) {
				c.t.Errorf("a called visitor is answered %v", err)
				return
			}
		}
	})
	c.people, c.gone = c.people[n:], c.gone+n
	c.t.Logf("%d visitors went in within %s", n, time.Since(began).Round(time.Millisecond))
}

func (c *called) at(node *process) *api.Client { return &api.Client{Base: node.url + "/r/turns"} }

// finish waits until the claim clock has made those who are left no-shows, ends the room, and audits it: all others went
// in, and the report has gaps as the expression says, or none if it is empty.
func (c *called) finish(gaps string) {
	c.t.Helper()
	late := len(c.people)
	waitFor(c.t, "those who never come are no-shows", func() bool { return c.ask("").Counts.Waiting == 0 })
	ended := c.ask("end")
	n := ended.Counts
	if n.Admitted != uint64(c.gone) || n.NoShows != uint64(late) {
		c.t.Errorf("%d went in and %d are no-shows, want %d and %d", n.Admitted, n.NoShows, c.gone, late)
	}
	at := c.client.Base + "/r/turns"
	var said string
	waitFor(c.t, "the end is published", func() bool {
		stdout, stderr, code := command(c.t, "", "proofline-verify", "audit", at, "--vkey", c.room.VKey, "--beacon", c.chain,
			"--no-keep")
		if code != 0 || !strings.HasPrefix(stdout, "✓ VERIFIED, level 2") {
			c.t.Fatalf("the audit exits with %d: %s%s", code, stdout, stderr)
		}
		said = stdout
		return strings.Contains(strings.Join(strings.Fields(stdout), " "), "read "+numeral.Count(ended.Size, "entry", "entries"))
	})
	said = strings.Join(strings.Fields(said), " ")
	if found := regexp.MustCompile(`\d+ gaps? of .*? lost .*?turns?\b`).FindString(said); found == "" && gaps != "" ||
		!regexp.MustCompile("^"+gaps+"$").MatchString(found) {
		c.t.Errorf("the report says of gaps %q, want %q:\n%s", found, gaps, said)
	}
}

// crowdSize is how many visitors are called when a drill begins.
const crowdSize = 500

// TestCrashTurnsServer kills the server for twice the time to claim while 500 visitors are called: all of them go in
// afterwards, and only one who never comes is a no-show.
func TestCrashTurnsServer(t *testing.T) {
	slow(t)
	t.Parallel()
	chain, args := withBeacon(t)
	dir := tempDir(t)
	args = append(args, "--data", dir, "--addr", "127.0.0.1:"+freePort(t))
	p := startServer(t, nil, args...)
	c := newCalled(t, manager(t, p, dir), chain)
	c.callAll(crowdSize+1, p)
	p.kill()
	time.Sleep(outage)
	p = startServer(t, nil, args...)
	c.goIn(crowdSize, p)
	c.finish(`1 gap of 2\d(\.\d+)? s, nobody lost a turn`)
	p.stop()
}

// TestCrashTurnsPostgres kills PostgreSQL instead of the server.
func TestCrashTurnsPostgres(t *testing.T) {
	slow(t)
	t.Parallel()
	chain, args := withBeacon(t)
	database, dir := pgtest.Start(t), tempDir(t)
	p := startServer(t, nil, append(args, "--data", dir, "--addr", "127.0.0.1:0", "--database-url", database.URL(),
		"--master-key", newKeyFile(t, dir))...)
	c := newCalled(t, manager(t, p, dir), chain)
	c.callAll(crowdSize+1, p)
	database.KillHard()
	time.Sleep(outage)
	database.Restart()
	c.goIn(crowdSize, p)
	c.finish(`1 gap of 2\d(\.\d+)? s, nobody lost a turn`)
	p.stop()
}

// TestNodesTurns kills one of two nodes while visitors are called, who all go in through the other one, without a gap.
// Then it kills both.
func TestNodesTurns(t *testing.T) {
	slow(t)
	t.Parallel()
	chain, args := withBeacon(t)
	database, dir := pgtest.Start(t), tempDir(t)
	args = append(args, "--data", dir, "--public-url", "https://queue.example.com", "--database-url", database.URL(),
		"--master-key", newKeyFile(t, dir), "--addr")
	one, two := startServer(t, nil, append(args, "127.0.0.1:0")...), startServer(t, nil, append(args, "127.0.0.1:0")...)
	restart := func(p *process) *process {
		return startServer(t, nil, append(args, strings.TrimPrefix(p.url, "http://"))...)
	}
	c := newCalled(t, manager(t, one, dir), chain)
	c.callAll(crowdSize/2, one, two)
	two.kill()
	c.goIn(crowdSize/2, one)
	two = restart(two)

	c.ask("pause")
	c.callAll(crowdSize/2+1, one, two)
	one.kill()
	two.kill()
	time.Sleep(outage)
	one, two = restart(one), restart(two)
	c.goIn(crowdSize/2, one, two)
	c.finish(`1 gap of 2\d(\.\d+)? s, nobody lost a turn`)
	one.stop()
	two.stop()
}

// fakeClock makes PostgreSQL's programs of a directory, and a clock for them that the test can set.
func fakeClock(t *testing.T) (bin string, set func(ahead time.Duration)) {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // the pattern is well formed
	if len(libraries) == 0 {
		t.Skip("no library can set PostgreSQL's clock here: apt-get install libfaketime")
	}
	bin = tempDir(t)
	ahead := filepath.Join(bin, "ahead")
	set = func(by time.Duration) {
		t.Helper()
		err := os.WriteFile(ahead+".new", fmt.Appendf(nil, "%+fs\n", by.Seconds()), 0o644)
		if err = errors.Join(err, os.Rename(ahead+".new", ahead)); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	installed := os.Getenv("PROOFLINE_PG_BIN")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); installed == "" && len(found) > 0 {
		installed = found[len(found)-1]
	}
	for name, prefix := range map[string]string{
		"initdb":   "",
		"postgres": "LD_PRELOAD=" + libraries[0] + " FAKETIME_TIMESTAMP_FILE=" + ahead + " FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 ",
	} {
		script := "#!/bin/sh\n" + prefix + `exec ` + filepath.Join(installed, name) + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin, set
}

// gapsOfJump are what a report says of a jump ahead: perhaps a gap before the server knew that it was the clock.
const gapsOfJump = `\d gaps? of 2\d(\.\d+)? s( in all, the longest 2\d(\.\d+)? s)?, nobody lost a turn`

// TestCrashTurnsClock sets PostgreSQL's clock ahead by twice the time to claim, and back, each while visitors are called.
// The server keeps its time until the operator confirms the new one. Then a jump ahead is a gap, and after one back the
// room's time stands still until it is reached again.
func TestCrashTurnsClock(t *testing.T) {
	slow(t)
	t.Parallel()
	bin, set := fakeClock(t)
	chain, args := withBeacon(t)
	dir := tempDir(t)
	p := startServer(t, []string{"PROOFLINE_PG_BIN=" + bin}, append(args, "--data", dir, "--addr", "127.0.0.1:0")...)
	c := newCalled(t, manager(t, p, dir), chain)
	for i, jump := range []time.Duration{outage, 0} {
		c.callAll(crowdSize, p)
		set(jump)
		c.goIn(crowdSize/2, p)
		waitFor(t, "the server keeps its time", func() bool { return strings.Count(p.said(), "database's clock has jumped") > i })
		if _, stderr, code := proofline(t, "", "clock", "confirm", "--data", dir); code != 0 {
			t.Fatalf("clock confirm exits with %d: %s", code, stderr)
		}
		waitFor(t, "it takes the new time", func() bool { return strings.Count(p.said(), "why=confirmed") > i })
		c.goIn(crowdSize/2, p)
		c.ask("pause")
	}
	c.callAll(1, p)
	c.finish(gapsOfJump)
	p.stop()
}

// TestCrashTurnsClockAtStart sets PostgreSQL's clock while the server is down. It starts with the new time, because no
// other server is there to compare with.
func TestCrashTurnsClockAtStart(t *testing.T) {
	slow(t)
	t.Parallel()
	bin, set := fakeClock(t)
	chain, args := withBeacon(t)
	dir := tempDir(t)
	args = append(args, "--data", dir, "--addr", "127.0.0.1:"+freePort(t))
	start := func() *process { return startServer(t, []string{"PROOFLINE_PG_BIN=" + bin}, args...) }
	p := start()
	c := newCalled(t, manager(t, p, dir), chain)
	for _, jump := range []time.Duration{outage, 0} {
		c.callAll(crowdSize, p)
		p.kill()
		set(jump)
		p = start()
		c.goIn(crowdSize, p)
		c.ask("pause")
	}
	c.callAll(1, p)
	c.finish(gapsOfJump)
	p.stop()
}

package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/pgtest"
)

// TestE2EForget shows personal data whose time is up, and deletes it with the command, which says what time it is. A
// server has the job that deletes by itself, but not at the start.
func TestE2EForget(t *testing.T) {
	slow(t)
	t.Parallel()
	data, database := tempDir(t), pgtest.Start(t)
	storage := []string{"--data", data, "--database-url", database.URL(), "--master-key", newKeyFile(t, data)}
	serve := func(keep string) *process {
		return startServer(t, nil, append([]string{"--addr", "127.0.0.1:0", "--keep-personal", keep}, storage...)...)
	}
	age := func() {
		database.Exec(`insert into activity_log (org_id, entry_id, at, actor_kind, actor_id, actor, verb, object)
			select gen_random_uuid(), gen_random_uuid(), now() - make_interval(days => age), 'person', gen_random_uuid(),
				'anna@example.org', 'room.pause', 'sale' from unnest('{10, 40, 100}'::int[]) age`)
	}
	left := func() (n int) {
		database.Get(`select count(*) from activity_log where actor = 'anna@example.org'`, &n)
		return n
	}
	p := serve("forever")
	age()
	forget := func(args ...string) string {
		stdout, stderr, code := proofline(t, "", append(append([]string{"forget"}, args...), storage...)...)
		if code != 0 {
			t.Fatalf("forget %q: %s", args, stderr)
		}
		return stdout
	}
	for keep, rows := range map[string]string{"90d": "1", "30d": "2", "9d": "3"} {
		out := forget("--keep-personal", keep)
		fields := strings.Fields(out[strings.Index(out, "activity_log"):])
		if fields[1] != rows || !strings.Contains(out, "kept for "+keep) || !strings.Contains(out, "With --yes") ||
			!strings.Contains(out, "and it is 2") || left() != 3 {
			t.Errorf("%s: %d are left, %s", keep, left(), out)
		}
	}
	if out := forget("--keep-personal", "30d", "--yes"); !strings.Contains(out, "It is deleted.") || left() != 1 {
		t.Errorf("%d are left, %s", left(), out)
	}
	p.stop()
	age()
	p = serve("30d")
	waitFor(t, "the server says when it deletes", func() bool {
		return strings.Contains(p.said(), "expired personal data is deleted every ten minutes")
	})
	p.stop()
	if left() != 4 {
		t.Errorf("%d are left: the server deletes at the start, when its clock may be wrong", left())
	}
}

// TestE2EForgetIssuer deletes what a server's own issuer knows, once the room has been over for long.
func TestE2EForgetIssuer(t *testing.T) {
	slow(t)
	t.Parallel()
	b := &ownBench{T: t, dir: tempDir(t)}
	database := pgtest.Start(t)
	storage := []string{"--data", b.dir, "--database-url", database.URL(), "--master-key", newKeyFile(t, b.dir)}
	start := func(addr string) {
		b.process = startServer(t, nil, append([]string{"--addr", addr, "--issuer", "own"}, storage...)...)
	}
	files := func() (n int) {
		for _, pattern := range []string{"issued/*.log", "lists/*.list"} {
			list, err := filepath.Glob(filepath.Join(b.dir, server.IssuerDir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			n += len(list)
		}
		return n
	}
	forget := func() string {
		stdout, stderr, code := proofline(t, "", append([]string{"forget", "--yes"}, storage...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		return stdout
	}
	start("127.0.0.1:0")
	addr := strings.TrimPrefix(b.url, "http://")
	call := func(path, body string) {
		if _, err := manager(t, b.process, b.dir).Call(t.Context(), http.MethodPost, path, []byte(body), &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	call("/v1/rooms", fmt.Sprintf(ownRoom, "sale"))
	codes := b.make("presale", 2)
	if form, status := b.confirm(b.ticket(1), codes[0]); form == nil {
		t.Fatalf("status %d", status)
	}
	call("/v1/rooms/sale/end", "")
	waitFor(t, "the end is noted", func() bool {
		var ended bool
		database.Get(`select ended_at is not null from rooms`, &ended)
		return ended
	})
	b.stop()
	if out := forget(); strings.Contains(out, server.IssuerDir) || files() != 2 {
		t.Errorf("of a room that has just ended, %d files are left: %s", files(), out)
	}
	database.Exec(`update rooms set ended_at = ended_at - interval '91 days'`)
	start(addr)
	if _, status := b.confirm(b.ticket(2), codes[1]); status != http.StatusNotFound {
		t.Errorf("a code for a room that ended long ago: status %d", status)
	}
	b.stop()
	if out := forget(); !strings.Contains(out, server.IssuerDir) || files() != 0 {
		t.Errorf("of a room that ended long ago, %d files are left: %s", files(), out)
	}
	if out := forget(); !strings.Contains(out, "nothing is due") {
		t.Error(out)
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/pgtest"
)

// TestE2EForget shows personal data whose time is up, deletes it with the command, and has a server delete it by
// itself.
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
		if fields[1] != rows || !strings.Contains(out, "kept for "+keep) || !strings.Contains(out, "With --yes") || left() != 3 {
			t.Errorf("%s: %d are left, %s", keep, left(), out)
		}
	}
	if out := forget("--keep-personal", "30d", "--yes"); !strings.Contains(out, "It is deleted.") || left() != 1 {
		t.Errorf("%d are left, %s", left(), out)
	}
	p.stop()
	age()
	p = serve("30d")
	waitFor(t, "the server deletes old entries", func() bool { return left() == 2 })
	waitFor(t, "the server says so", func() bool {
		return strings.Contains(p.said(), "table=activity_log rows=2")
	})
	if strings.Contains(p.said(), "anna@") {
		t.Error("the log has what was deleted")
	}
	p.stop()
}

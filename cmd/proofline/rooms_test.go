package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/wire"
)

// verified runs proofline-verify and checks its exit code.
func verified(t *testing.T, want int, args ...string) (said string) {
	t.Helper()
	stdout, stderr, code := command(t, "", "proofline-verify", args...)
	if code != want {
		t.Fatalf("proofline-verify %v: exit code %d, want %d\n%s%s", args, code, want, stdout, stderr)
	}
	return strings.Join(strings.Fields(stdout+stderr), " ") // without line breaks
}

// wantSaid checks that a text has sentences.
func wantSaid(t *testing.T, said string, sentences ...string) {
	t.Helper()
	for _, sentence := range sentences {
		if !strings.Contains(said, sentence) {
			t.Errorf("%q is not in %s", sentence, said)
		}
	}
}

// TestRooms creates rooms on two servers, one of which is killed in between, has the other one end the first room,
// and checks the log of rooms as an auditor; then it tampers with a copy of the log, and with the database.
func TestRooms(t *testing.T) {
	t.Parallel()
	database, dir, other := pgtest.Start(t), tempDir(t), tempDir(t)
	key, addr := newKeyFile(t, dir), "127.0.0.1:"+freePort(t)
	args := []string{"--database-url", database.URL(), "--master-key", key, "--public-url", "http://" + addr}
	one := startServer(t, nil, append([]string{"--data", other, "--addr", "127.0.0.1:0"}, args...)...)
	two := startServer(t, nil, append([]string{"--data", dir, "--addr", addr}, args...)...)
	first := manager(t, one, other)
	createRoom(t, first, "sale")
	createRoom(t, manager(t, two, dir), "sale-2")
	one.kill()
	organizer := manager(t, two, dir)
	createRoom(t, organizer, "tour")
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms/sale/end", nil, &wire.Room{}); err != nil {
		t.Fatal(err)
	}
	state := []string{"--state", filepath.Join(other, "state")}
	waitFor(t, "the end is in the log", func() bool {
		stdout, _, code := command(t, "", "proofline-verify", append([]string{"rooms", two.url, "--json"}, state...)...)
		var log struct {
			Rooms []struct {
				Origin  string
				Ended   int64
				Entries uint64
			}
		}
		return code == 0 && json.Unmarshal([]byte(stdout), &log) == nil && len(log.Rooms) == 3 && log.Rooms[0].Ended != 0 && log.Rooms[0].Entries == 2
	})
	said := verified(t, 0, append([]string{"rooms", two.url + "/r/tour"}, state...)...)
	wantSaid(t, said, "✓ INTACT", addr+"/rooms", "3 rooms, of which 0 were called a rehearsal and 2 have not ended", addr+"/r/sale-2",
		"Nothing was removed or changed since your earlier check, which saw 5 entries.", "no witness that you named")
	said = verified(t, 0, "audit", two.url+"/r/sale-2", "--no-keep")
	wantSaid(t, said, "This room is in its server's log of rooms. Entry 2 of 5", "2 other rooms; 1 has a name like this one's, and 1 has not ended",
		addr+"/r/sale, ended ")

	// A copy of which an entry was dropped, or two were swapped.
	copied := filepath.Join(other, "copy")
	verified(t, 0, "fetch", two.url+"/rooms", copied)
	verified(t, 0, append([]string{"rooms", copied, "--vkey", "@" + filepath.Join(copied, "vkey")}, state...)...)
	bundle := filepath.Join(copied, filepath.FromSlash(audit.Tile{Level: -1, Width: 5}.Path()))
	content, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	var entries [][]byte
	if err := audit.SplitBundle(content, 5, func(entry []byte) error {
		entries = append(entries, bytes.Clone(entry))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, order := range map[string][]int{"dropped": {0, 1, 3, 4}, "swapped": {0, 2, 1, 3, 4}} {
		var tampered []byte
		for _, i := range order {
			if tampered, err = audit.AppendBundle(tampered, entries[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(bundle, tampered, 0o600); err != nil {
			t.Fatal(err)
		}
		said := verified(t, 1, append([]string{"rooms", copied}, state...)...)
		wantSaid(t, said, "the log of rooms is wrong")
		t.Log(name, said)
	}

	// The database forgets the last room, as an operator would like it. The server has seen the entry.
	two.kill()
	var tree audit.Tree
	for _, entry := range entries[:3] {
		tree.Append(audit.LeafHash(entry))
	}
	root := tree.Root()
	conn, err := pgx.Connect(t.Context(), database.URL())
	if err == nil {
		_, err = conn.Exec(t.Context(), `delete from log_bundles where room_id = $1 and first >= 3`, uuid.Max)
		_, errHead := conn.Exec(t.Context(), `update log_heads set size = 3, published_size = 3, root = $2 where room_id = $1`, uuid.Max, root[:])
		err = errors.Join(err, errHead)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	two = startServer(t, nil, append([]string{"--data", dir, "--addr", addr}, args...)...)
	shown := func() int { return status(t, two.url+"/rooms/checkpoint") }
	if status := shown(); status != http.StatusServiceUnavailable {
		t.Errorf("the log is shown without its last entries: status %d", status)
	}
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(`{"slug":"third"}`), &wire.Room{}); err == nil {
		t.Error("a room is created although the log of rooms lacks entries")
	}
	content, err = audit.AppendBundle(nil, entries[0])
	for _, entry := range entries[1:] {
		content, err = audit.AppendBundle(content, entry)
	}
	if err = errors.Join(err, os.WriteFile(bundle, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	recovers := []string{"recover", "/rooms", "--data", dir, "--database-url", database.URL(), "--master-key", key, "--from", copied}
	stdout, stderr, code := proofline(t, "", append(recovers, "--yes")...)
	if code != 0 {
		t.Fatalf("recover: exit code %d\n%s%s", code, stdout, stderr)
	}
	wantSaid(t, stdout, "missing: entries 3 to 4", "the copy has 2 more entries, 3 to 4", "continues with 5 entries")
	waitFor(t, "the log is shown again", func() bool { return shown() == http.StatusOK })
	verified(t, 0, append([]string{"rooms", two.url}, state...)...)
	createRoom(t, organizer, "third")
	two.stop()
}

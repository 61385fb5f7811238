package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/rooms"
)

const logOfRooms = "queue.example.com/rooms"

// registerOf returns the entries of a log of rooms with the key, and one room for each entry that create writes.
func registerOf(vkey string, entries ...roomlog.Entry) (texts [][]byte) {
	for i, e := range append([]roomlog.Entry{{Kind: roomlog.Begin, VKey: vkey}}, entries...) {
		if e.Time == 0 {
			e.Time = int64(roomtest.Opens) - 3_600_000 + int64(i) // when rooms are created
		}
		texts = append(texts, e.Append(nil))
	}
	return texts
}

// newKeys returns the keys of a log.
func newKeys(t testing.TB, origin, operator string) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, operator)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// room returns the entry of a room without visitors.
func room(t testing.TB, name string) roomlog.Entry {
	t.Helper()
	keys := newKeys(t, "queue.example.com/r/"+name, "honest")
	return roomlog.Entry{Kind: roomlog.Room, VKey: keys.VKey, Root: audit.LeafHash([]byte(name))}
}

// written publishes a log in a directory.
func written(t testing.TB, keys *roomtest.Keys, entries [][]byte) (dir string) {
	t.Helper()
	files, err := roomtest.Publish(keys, entries)
	if err == nil {
		dir = t.TempDir()
		err = files.Write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// program runs the program with a state directory.
func program(t testing.TB, state string, args ...string) (code int, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := func(name string) string {
		if name == "XDG_STATE_HOME" {
			return state
		}
		return ""
	}
	code = run(t.Context(), args, &stdout, &stderr, env)
	return code, strings.Join(strings.Fields(stdout.String()+stderr.String()), " ")
}

// TestRooms checks logs of rooms one after the other, as an auditor who keeps checkpoints.
func TestRooms(t *testing.T) {
	keys := newKeys(t, logOfRooms, "honest")
	sale, tour := room(t, "sale"), room(t, "tour")
	rehearsal := room(t, "sale-rehearsal")
	rehearsal.Kind = roomlog.Rehearsal
	lost := roomlog.Entry{Kind: roomlog.Lost, Room: 2, Size: 7}
	end := roomlog.Entry{Kind: roomlog.End, Room: 1, Size: 13, Root: audit.LeafHash([]byte("end"))}
	entries := registerOf(keys.VKey, sale, rehearsal, tour, end, lost)
	state := t.TempDir()
	for _, c := range []struct {
		name string
		keys *roomtest.Keys
		log  [][]byte
		code int
		want []string
	}{
		{"the first rooms", keys, entries[:4], exitVerified, []string{"✓ INTACT", "4 entries: 3 rooms, of which 1 was called a rehearsal and 3 have not ended",
			"2 queue.example.com/r/sale-rehearsal created 2025-12-31 23:00:00 UTC as a rehearsal, not ended",
			"you have no earlier checkpoint of this log", "no witness that you named has signed"}},
		{"ends", keys, entries, exitVerified, []string{"saw 4 entries", "ended 2025-12-31 23:00:00 UTC with 13 entries", "because entries were lost: 7 entries are left"}},
		{"the last entry dropped", keys, entries[:5], exitFailed, []string{"it had 6 entries and now has 5", "proofline-verify compare"}},
		{"a room dropped", keys, registerOf(keys.VKey, sale, tour, room(t, "a"), room(t, "b"), room(t, "c")), exitFailed, []string{"its first 6 entries were replaced"}},
		{"rooms swapped", keys, registerOf(keys.VKey, rehearsal, sale, tour, end, lost), exitFailed, []string{"its first 6 entries were replaced"}},
		{"another key", newKeys(t, logOfRooms, "rival"), registerOf(newKeys(t, logOfRooms, "rival").VKey, sale), exitFailed, []string{"its key has changed"}},
		{"a room twice", keys, registerOf(keys.VKey, sale, sale), exitFailed, []string{"already has a room with the origin queue.example.com/r/sale"}},
		{"another's key in it", keys, registerOf(sale.VKey, sale), exitFailed, []string{"the log of rooms is wrong"}},
		{"not a log of rooms", keys, [][]byte{[]byte("room 1")}, exitUnreadable, []string{"not a log of rooms"}},
	} {
		code, said := program(t, state, "rooms", written(t, c.keys, c.log))
		if code != c.code {
			t.Errorf("%s: exit code %d: %s", c.name, code, said)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not in %s", c.name, want, said)
			}
		}
	}
	if code, said := program(t, state, "rooms", t.TempDir()); code != exitUnreadable {
		t.Errorf("an empty directory: exit code %d: %s", code, said)
	}

	// The pair of checkpoints is evidence.
	kept, err := filepath.Glob(filepath.Join(state, "proofline-verify", "*.checkpoint"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v kept: %v", kept, err)
	}
	forked := written(t, keys, registerOf(keys.VKey, rehearsal, sale, tour, end, lost))
	if code, said := program(t, state, "compare", kept[0], forked, "--evidence", state); code != exitFailed || !strings.Contains(said, "TWO HISTORIES") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said := program(t, state, "evidence", filepath.Join(state, "evidence-fork-6.json"), "--vkey", keys.VKey); code != exitFailed {
		t.Errorf("exit code %d: %s", code, said)
	}

	code, said := program(t, state, "rooms", written(t, keys, entries), "--json")
	var out rooms.JSON
	if err := json.Unmarshal([]byte(said), &out); err != nil || code != exitVerified {
		t.Fatalf("exit code %d: %v", code, err)
	}
	if r := out.Rooms[0]; len(out.Rooms) != 3 || out.Continues != 6 || out.VKey != keys.VKey || r.Origin != "queue.example.com/r/sale" || r.Entry != 1 || r.Entries != 13 || r.Ended == 0 || out.Rooms[2].Root != "" {
		t.Errorf("%+v", out)
	}
}

func TestRegisterAddress(t *testing.T) {
	for arg, want := range map[string]string{
		"https://example.com":                   "https://example.com/rooms",
		"https://example.com/":                  "https://example.com/rooms",
		"https://example.com/rooms":             "https://example.com/rooms",
		"https://example.com/rooms/checkpoint":  "https://example.com/rooms",
		"https://example.com/r/sale":            "https://example.com/rooms",
		"https://example.com/q/r/sale/":         "https://example.com/q/rooms",
		"https://example.com/r/rooms":           "https://example.com/rooms",
		"https://example.com/r/sale/checkpoint": "https://example.com/rooms",
		"./copy/r/sale":                         "./copy/r/sale",
	} {
		if got, isRoom := registerAddress(arg); got != want || isRoom != strings.HasPrefix(strings.TrimPrefix(arg, "https://example.com"), "/r/") && isRoom != strings.Contains(arg, "/q/") {
			t.Errorf("%s: %s, %v", arg, got, isRoom)
		}
	}
}

// TestAuditListed audits a room whose server has a log of rooms, of several kinds.
func TestAuditListed(t *testing.T) {
	var files map[string]roomtest.Files
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, log := range files {
			if path, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
				if content, err := log.Get(path); err == nil {
					_, _ = w.Write(content)
					return
				}
			}
		}
		status := http.StatusNotFound
		if files["/rooms/"] != nil {
			status = http.StatusForbidden
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	keys := newKeys(t, host+"/r/sale", "honest")
	r := roomtest.Small(keys, keys.Policy())
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	transcript, err := roomtest.Publish(keys, r.Entries())
	if err != nil {
		t.Fatal(err)
	}
	var tree audit.Tree
	for _, e := range r.Entries() {
		tree.Append(audit.LeafHash(e))
	}
	log := newKeys(t, host+"/rooms", "honest")
	named := func(name, operator string, first audit.Hash) roomlog.Entry {
		return roomlog.Entry{Kind: roomlog.Room, VKey: newKeys(t, host+"/r/"+name, operator).VKey, Root: first}
	}
	sale := named("sale", "honest", audit.LeafHash(r.Entries()[0]))
	other := named("sale-1", "honest", audit.Hash{})
	end := roomlog.Entry{Kind: roomlog.End, Room: 2, Size: tree.Size(), Root: tree.Root()}
	wrongEnd := end
	wrongEnd.Size++
	wrongRoot := end
	wrongRoot.Root = audit.Hash{}
	lost := wrongEnd
	lost.Kind, lost.Size = roomlog.Lost, end.Size-1
	late := sale // after its draw
	late.Time = int64(roomtest.Opens) + 90_000
	rehearsal := named("sale-rehearsal-k7qa", "honest", audit.Hash{})
	rehearsal.Kind = roomlog.Rehearsal
	unended, err := roomtest.Publish(keys, r.Entries()[:tree.Size()-1])
	if err != nil {
		t.Fatal(err)
	}
	var without audit.Tree
	for _, e := range r.Entries()[:tree.Size()-1] {
		without.Append(audit.LeafHash(e))
	}
	endless := roomlog.Entry{Kind: roomlog.End, Room: 1, Size: without.Size(), Root: without.Root()}
	renamed := newKeys(t, "elsewhere.example.com/rooms", "honest")
	for _, c := range []struct {
		name    string
		entries []roomlog.Entry
		want    []string
	}{
		{"listed", []roomlog.Entry{other, sale, named("tour", "honest", audit.Hash{}), end}, []string{
			"This room is in its server's log of rooms. Entry 2 of 5", "ended 2025-12-31 23:00:00 UTC with",
			"The log has 2 other rooms; 1 has a name like this one's, and 2 have not ended", host + "/r/sale-1, not ended"}},
		{"rehearsed", []roomlog.Entry{other, sale, rehearsal}, []string{"The log has 2 other rooms; 2 have a name like this one's, " +
			"of which the operator called 1 a rehearsal, and 2 have not ended", host + "/r/sale-rehearsal-k7qa, called a rehearsal, not ended"}},
		{"not listed", []roomlog.Entry{other}, []string{"The server's log of rooms contradicts this room", "The log does not have this room."}},
		{"another key", []roomlog.Entry{named("sale", "rival", sale.Root)}, []string{"and another key"}},
		{"another beginning", []roomlog.Entry{named("sale", "honest", audit.Hash{})}, []string{"another first entry"}},
		{"another end", []roomlog.Entry{other, sale, wrongEnd}, []string{"but its transcript has"}},
		{"another root", []roomlog.Entry{other, sale, wrongRoot}, []string{"but its transcript has"}},
		{"entries lost that are there", []roomlog.Entry{other, sale, lost}, []string{"The log says that entries are lost"}},
		{"late", []roomlog.Entry{other, late}, []string{"The server's log of rooms contradicts this room",
			"The log has had this room since 2026-01-01 00:01:30 UTC, and its first entry says 2025-12-31 23:00:00 UTC"}},
		{"no end", []roomlog.Entry{sale}, []string{"Its transcript has ended, and the log does not say so"}},
		{"wrong", []roomlog.Entry{sale, sale}, []string{"The server's log of rooms is wrong. Nothing in it counts"}},
		{"none", nil, []string{"That this room was not one of several tries: the server publishes no log of rooms."}},
	} {
		files = map[string]roomtest.Files{"/r/sale/": transcript}
		if c.entries != nil {
			if files["/rooms/"], err = roomtest.Publish(log, registerOf(log.VKey, c.entries...)); err != nil {
				t.Fatal(err)
			}
		}
		code, said := program(t, t.TempDir(), "audit", server.URL+"/r/sale", "--no-keep")
		if code != exitVerified {
			t.Fatalf("%s: exit code %d: %s", c.name, code, said)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not in %s", c.name, want, said)
			}
		}
	}
	for _, c := range []struct {
		name    string
		room    roomtest.Files
		log     *roomtest.Keys
		entries []roomlog.Entry
		want    []string
	}{
		{"an end without the room's", unended, log, []roomlog.Entry{sale, endless}, []string{"The log says that the room ended with", "has no end."}},
		{"an end to come", unended, log, []roomlog.Entry{other, sale, end}, []string{"This room is in its server's log of rooms."}},
		{"another name", transcript, renamed, []roomlog.Entry{sale}, []string{"it calls itself elsewhere.example.com/rooms."}},
	} {
		files = map[string]roomtest.Files{"/r/sale/": c.room}
		if files["/rooms/"], err = roomtest.Publish(c.log, registerOf(c.log.VKey, c.entries...)); err != nil {
			t.Fatal(err)
		}
		code, said := program(t, t.TempDir(), "audit", server.URL+"/r/sale", "--no-keep")
		for _, want := range c.want {
			if code != exitVerified || !strings.Contains(said, want) {
				t.Errorf("%s: exit code %d: %q is not in %s", c.name, code, want, said)
			}
		}
	}

	// What was kept of the log at the address is compared, whatever the log calls itself now.
	state := t.TempDir()
	replaced := func(keys *roomtest.Keys, command, address string, entries ...roomlog.Entry) (int, string) {
		files = map[string]roomtest.Files{"/r/sale/": transcript}
		if files["/rooms/"], err = roomtest.Publish(keys, registerOf(keys.VKey, entries...)); err != nil {
			t.Fatal(err)
		}
		return program(t, state, command, server.URL+address)
	}
	if code, said := replaced(log, "audit", "/r/sale", other, sale); code != exitVerified {
		t.Errorf("exit code %d: %s", code, said)
	}
	for _, keys := range []*roomtest.Keys{renamed, log} {
		if code, said := replaced(keys, "audit", "/r/sale", sale); code != exitVerified || !strings.Contains(said, "The server's log of rooms is wrong") {
			t.Errorf("%s: exit code %d: %s", keys.Origin, code, said)
		}
		if code, said := replaced(keys, "rooms", "", sale); code != exitFailed || !strings.Contains(said, "not the one of the earlier check") {
			t.Errorf("%s: exit code %d: %s", keys.Origin, code, said)
		}
	}
	files = map[string]roomtest.Files{"/r/sale/": transcript, "/rooms/": {}}
	if code, said := program(t, t.TempDir(), "audit", server.URL+"/r/sale", "--no-keep"); code != exitVerified || !strings.Contains(said, "log of rooms could not be read") {
		t.Errorf("not readable: exit code %d: %s", code, said)
	}
	if code, said := program(t, t.TempDir(), "rooms", server.URL); code != exitUnreadable {
		t.Errorf("not readable: exit code %d: %s", code, said)
	}
	dir := t.TempDir()
	if err := transcript.Write(dir); err != nil {
		t.Fatal(err)
	}
	if code, said := program(t, t.TempDir(), "audit", dir, "--no-keep"); code != exitVerified || !strings.Contains(said, "only in an audit of the room's address") {
		t.Errorf("a copy: exit code %d: %s", code, said)
	}

	// A witness takes the key of the log from its address.
	if files["/rooms/"], err = roomtest.Publish(log, registerOf(log.VKey, sale)); err != nil {
		t.Fatal(err)
	}
	if vkey, err := logKey(t.Context(), server.URL+"/rooms"); err != nil || vkey != log.VKey {
		t.Errorf("key %s: %v", vkey, err)
	}
	copied := filepath.Join(dir, "rooms")
	if code, said := program(t, t.TempDir(), "fetch", server.URL+"/rooms", copied); code != exitVerified {
		t.Errorf("exit code %d: %s", code, said)
	}
	if vkey, err := os.ReadFile(filepath.Join(copied, "vkey")); err != nil || string(vkey) != log.VKey+"\n" {
		t.Errorf("stored with the key %s: %v", vkey, err)
	}
}

// TestWatchRegister: a watch of a room follows its server's log of rooms, too.
func TestWatchRegister(t *testing.T) {
	var files map[string]roomtest.Files
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, log := range files {
			if path, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
				if content, err := log.Get(path); err == nil {
					_, _ = w.Write(content)
					return
				}
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	keys, log := newKeys(t, host+"/r/sale", "honest"), newKeys(t, host+"/rooms", "honest")
	r := roomtest.Small(keys, keys.Policy())
	transcript, err := roomtest.Publish(keys, r.Entries())
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	rival, renamed := newKeys(t, host+"/rooms", "rival"), newKeys(t, "elsewhere.example.com/rooms", "honest")
	state := t.TempDir()
	for _, c := range []struct {
		name    string
		keys    *roomtest.Keys // nil: there is no log
		entries []roomlog.Entry
		code    int
		want    string
	}{
		{"none", nil, nil, exitVerified, "warning: log of rooms: the server publishes none"},
		{"one room", log, []roomlog.Entry{room(t, "a")}, exitVerified, "the log of rooms has 2 entries: proofline-verify rooms http"},
		{"two rooms", log, []roomlog.Entry{room(t, "a"), room(t, "b")}, exitVerified, "the log of rooms has 3 entries"},
		{"shorter", log, []roomlog.Entry{room(t, "a")}, exitVerified, "warning: log of rooms: the published files do not match, which proves nothing yet: 2 entries after 3"},
		{"forked", log, []roomlog.Entry{room(t, "b"), room(t, "a")}, exitFailed, "the log of rooms does not continue: "},
		{"replaced under another name", renamed, []roomlog.Entry{room(t, "a")}, exitFailed, "the log of rooms was replaced"},
		{"replaced", rival, []roomlog.Entry{room(t, "a"), room(t, "b")}, exitFailed, "the log of rooms was replaced"},
	} {
		files = map[string]roomtest.Files{"/r/sale/": transcript}
		if c.keys != nil {
			if files["/rooms/"], err = roomtest.Publish(c.keys, registerOf(c.keys.VKey, c.entries...)); err != nil {
				t.Fatal(err)
			}
		}
		code, said := program(t, state, "watch", server.URL+"/r/sale", "--once", "--evidence", state)
		if code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q: %s", c.name, code, c.code, c.want, said)
		}
	}
	if found, err := filepath.Glob(filepath.Join(state, "evidence-fork-*.json")); err != nil || len(found) != 1 {
		t.Errorf("evidence %v: %v", found, err)
	}
}

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/wire"
)

// TestMovedRoom moves a room to another server as an operator does, and looks at it there as a visitor and as an
// auditor.
func TestMovedRoom(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	from, to, file := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "sale.tar")
	old := startServer(t, nil, "--data", from, "--addr", "127.0.0.1:0")
	organizer := manager(t, old, from)
	g := &guests{t: t, room: createRoom(t, organizer, "sale")}
	g.join(old, 5)
	fails := func(want string, args ...string) {
		t.Helper()
		if stdout, stderr, code := proofline(t, "", args...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
	does := func(want string, args ...string) {
		t.Helper()
		if stdout, stderr, code := proofline(t, "", args...); code != 0 || !strings.Contains(stdout, want) {
			t.Fatalf("%v: exit code %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
	exports := []string{"export", "sale", file, "--data", from}
	fails("the room is not over", exports...)
	fails("no such room", "export", "none", file, "--data", from)
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms/sale/end", nil, &wire.Room{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end is recorded", func() bool {
		_, stderr, code := proofline(t, "", exports...)
		return code == 0 || !strings.Contains(stderr, "the room is not over")
	})
	fails("exists", exports...)
	if left, err := filepath.Glob(filepath.Join(dir, ".incomplete-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	key := []string{"--vkey", g.room.VKey, "--no-keep"}
	wantSaid(t, verified(t, 0, append([]string{"audit", file}, key...)...), "5 arrivals", "Every file of the copy is as the room published it")

	// On a server that has never had a room, and is not running.
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	imports := []string{"import", file, "--data", to, "--vkey", g.room.VKey}
	for name, changed := range map[string][]byte{
		"changed": bytes.Replace(content, []byte("arrive "), []byte("arrivf "), 1), "cut off": content[:len(content)/2],
	} {
		other := filepath.Join(dir, name+".tar")
		if err := os.WriteFile(other, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if stdout, stderr, code := proofline(t, "", "import", other, "--data", to, "--vkey", g.room.VKey); code != 1 {
			t.Errorf("%s: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
	// Without the room's key it is only shown, and with another one refused.
	for _, shown := range []string{g.room.VKey, g.room.Origin, "With --vkey KEY the room is stored"} {
		does(shown, "import", file, "--data", to)
	}
	another := createRoom(t, organizer, "another")
	fails("the room in the file has another key: "+g.room.VKey, "import", file, "--data", to, "--vkey", another.VKey)
	if _, err := os.Stat(to); err == nil {
		t.Error("a refused file was stored")
	}
	fails("--public-url", imports...)
	fails("no organization", append(imports, "--organization", "none")...)
	host, _, _ := strings.Cut(g.room.Origin, "/")
	fails("has a host of this server", append(imports, "--public-url", "https://"+host)...)
	does("is shown here at /r/sale", append(imports, "--public-url", "https://new.example.com")...)
	fails("the room is there already", imports...)
	fails("the room is there already", append(imports, "--slug", "another")...)
	fails("the room is there already", "import", file, "--data", from, "--vkey", g.room.VKey)
	fails("only the server that created it", "export", "sale", filepath.Join(dir, "again.tar"), "--data", to)

	moved := startServer(t, nil, "--data", to, "--addr", "127.0.0.1:0", "--public-url", "https://new.example.com")
	address := moved.url + "/r/sale"
	wantSaid(t, verified(t, 0, append([]string{"audit", address}, key...)...), "5 arrivals",
		"This room is in its server's log of rooms.", "taken over from another server")
	wantSaid(t, verified(t, 0, "rooms", moved.url, "--no-keep", "--json"), `"imported": true`)
	for _, j := range g.joined {
		before, err := g.at(old).Place(t.Context(), j.Ticket)
		if err != nil {
			t.Fatal(err)
		}
		after, err := g.at(moved).Place(t.Context(), j.Ticket)
		if err != nil || after.Status != before.Status {
			t.Errorf("a ticket had %+v and has %+v: %v", before, after, err)
		}
		for _, path := range []string{"", "/receipt", "/credentials"} {
			if was, is := status(t, old.url+"/r/sale/tickets/"+j.Ticket+path), status(t, address+"/tickets/"+j.Ticket+path); was != is {
				t.Errorf("tickets/...%s had status %d and has %d", path, was, is)
			}
		}
	}
	if _, err := g.at(moved).Join(t.Context(), ""); err == nil {
		t.Error("a visitor joins a room that is over")
	}
	if is := status(t, address); is != http.StatusOK {
		t.Errorf("the room's page has status %d", is)
	}
	for _, p := range []*process{old, moved} {
		p.stop()
	}
	if strings.Contains(moved.said(), "level=ERROR") {
		t.Errorf("the other server complains:\n%s", moved.said())
	}
}

// TestOffloadedRoom moves the transcript of a room out of the database of a running server, and restarts that.
func TestOffloadedRoom(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	data, archive := filepath.Join(dir, "data"), filepath.Join(dir, "transcripts")
	run := func(args ...string) *process {
		return startServer(t, nil, append([]string{"--data", data, "--addr", "127.0.0.1:0", "--public-url", "https://queue.example.com"}, args...)...)
	}
	p := run("--archive-dir", archive)
	organizer := manager(t, p, data)
	g := &guests{t: t, room: createRoom(t, organizer, "sale")}
	g.join(p, 5)
	open := &guests{t: t, room: createRoom(t, organizer, "open")}
	open.join(p, 1)
	offload := func(slug string, args ...string) (stdout, stderr string, code int) {
		return proofline(t, "", append([]string{"offload", slug, "--data", data, "--archive-dir", archive}, args...)...)
	}
	if _, stderr, code := offload("sale", "--drop"); code != 1 || !strings.Contains(stderr, "the room is not over") {
		t.Errorf("a room that is not over: exit code %d\n%s", code, stderr)
	}
	if _, stderr, code := proofline(t, "", "offload", "sale", "--data", data); code != 2 || !strings.Contains(stderr, "--archive-dir") {
		t.Errorf("without a directory: exit code %d\n%s", code, stderr)
	}
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms/sale/end", nil, &wire.Room{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the transcript is written", func() bool {
		_, _, code := offload("sale")
		return code == 0
	})
	key := []string{"--vkey", g.room.VKey, "--no-keep"}
	copied := filepath.Join(archive, "sale")
	wantSaid(t, verified(t, 0, append([]string{"audit", copied}, key...)...), "5 arrivals", "Every file of the copy is as the room published it")
	if stdout, stderr, code := offload("sale", "--drop"); code != 0 || !strings.Contains(stdout, "removed from the database") {
		t.Fatalf("drop: exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := offload("sale", "--drop"); code != 1 || !strings.Contains(stderr, "in the archive already") {
		t.Errorf("drop again: exit code %d\n%s", code, stderr)
	}
	works := func(p *process) {
		t.Helper()
		address := p.url + "/r/sale"
		wantSaid(t, verified(t, 0, append([]string{"audit", address}, key...)...), "5 arrivals", "This room is in its server's log of rooms.")
		for _, path := range []string{"", "/state", "/check", "/tickets/" + g.joined[0].Ticket, "/tickets/" + g.joined[0].Ticket + "/receipt"} {
			if is := status(t, address+path); is != http.StatusOK {
				t.Errorf("%q has status %d", path, is)
			}
		}
		open.join(p, 1)
	}
	works(p)
	p.stop()
	p = run("--archive-dir", archive)
	works(p)
	p.stop()
	p = run()
	for _, path := range []string{"/checkpoint", "/state"} {
		if is := status(t, p.url+"/r/sale"+path); is != http.StatusServiceUnavailable {
			t.Errorf("without the directory, %s has status %d", path, is)
		}
	}
	open.join(p, 1)
	p.stop()
}

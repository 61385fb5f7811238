package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/internal/pgtest"
)

// metric returns a metric's value as text; empty: the server has none of that name.
func metric(t *testing.T, url, name string) string {
	t.Helper()
	response, err := http.Get(url) //nolint:gosec,noctx // of a server that the test started
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestE2EOwnWatch changes a stored entry under a running server, as whoever may change the tables can. The server's
// watch of its own pages raises the alarm that proofline-verify watch raises, and one that is turned off does not.
func TestE2EOwnWatch(t *testing.T) {
	slow(t)
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	common := []string{"--addr", "127.0.0.1:0", "--admin-token-file", filepath.Join(dir, server.TokenFile),
		"--database-url", database.URL(), "--master-key", newKeyFile(t, dir), "--beacon-relays", "none",
		"--metrics-addr", "127.0.0.1:0"}
	run := func(name string, more ...string) *process {
		return startServer(t, nil, append(append([]string{"--data", filepath.Join(dir, name)}, common...), more...)...)
	}
	p, blind := run("one", "--watch", "1s"), run("two", "--watch", "0")
	measured := p.until(`metrics on (http://\S+)`, startTime)
	g := &guests{t: t}
	if _, err := manager(t, p, dir).Call(t.Context(), http.MethodPost, "/v1/rooms",
		[]byte(`{"slug": "watched", "starts": "`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`", "beacon": "none"}`),
		&g.room); err != nil {
		t.Fatal(err)
	}
	g.join(p, 3)
	read := func() string { return metric(t, measured, "proofline_watch_entries") }
	waitFor(t, "the watch has read the arrivals", func() bool { return read() == "4" })
	database.Exec(`update log_bundles set entries =
		set_byte(entries, octet_length(entries) - 3, get_byte(entries, octet_length(entries) - 3) # 1)
		where first = (select min(first) from log_bundles)`)
	g.join(p, 1)
	waitFor(t, "the watch raises an alarm", func() bool { return metric(t, measured, "proofline_watch_alarms") == "1" })
	if files, err := filepath.Glob(filepath.Join(dir, "one", server.EvidenceDir, "watched-unproven-*.json")); err != nil ||
		len(files) != 1 {
		t.Errorf("files of evidence %q, %v", files, err)
	}
	var figures live.Figures
	if _, err := manager(t, p, dir).Call(t.Context(), http.MethodGet, "/v1/rooms/watched/figures", nil, &figures); err != nil {
		t.Fatal(err)
	}
	if len(figures.Alarms) == 0 || !strings.Contains(figures.Alarms[0].Text, "does not continue what was shown before") {
		t.Errorf("the console shows %+v", figures.Alarms)
	}
	if strings.Contains(blind.said(), "violation") {
		t.Errorf("a watch that is turned off found something: %s", blind.said())
	}
	p.stop()
	blind.stop()
}

package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
)

// TestReportRelays: relays of another chain, and relays that do not answer, are
// logged at the start, before any draw waits for them.
func TestReportRelays(t *testing.T) {
	t.Parallel()
	own, err := local.New(local.NewKey(), local.Config{ID: "local", Genesis: 1, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	ours := httptest.NewServer(own.Handler())
	defer ours.Close()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for name, c := range map[string]struct {
		chain beacon.Chain
		url   string
		want  string
	}{
		"right":   {own.Chain(), ours.URL, "level=INFO.*beacon relays answer.*chain=local"},
		"another": {beacon.Quicknet(), ours.URL, "level=ERROR.*--beacon-chain.*chain=quicknet"},
		"dead":    {beacon.Quicknet(), dead.URL, "level=WARN.*draws wait.*--beacon-relays none.*chain=quicknet"},
	} {
		var logged bytes.Buffer
		f := serveFlags{Config: server.Config{Log: slog.New(slog.NewTextHandler(&logged, nil))}}
		client := &relay.Client{URLs: []string{c.url}, Chain: c.chain}
		m := relay.Monitor{Client: client, OnChange: func(err error) { f.reportRelays(t.Context(), client, err) }}
		_ = m.Check(t.Context())
		if !regexp.MustCompile(c.want).Match(logged.Bytes()) {
			t.Errorf("%s: logged %q, want %q", name, logged.String(), c.want)
		}
	}
}

// TestServeBeaconDefault: public relays are the default. If they cannot be reached,
// a new room must name its beacon or none.
func TestServeBeaconDefault(t *testing.T) {
	t.Parallel()
	help, _, _ := proofline(t, "", "serve", "--help")
	if want := `--beacon-relays URLS .*default \[` + relay.Public()[0]; !regexp.MustCompile(want).MatchString(help) {
		t.Errorf("serve --help has no %q", want)
	}
	dir := tempDir(t)
	data := filepath.Join(dir, "data")
	key := filepath.Join(dir, "beacon-key")
	port := freePort(t)
	p := serve(t, nil, "--data", data, "--addr", "127.0.0.1:0", "--beacon-relays", "http://127.0.0.1:"+port)
	p.until(`(.*level=WARN.*cannot reach the beacon relays.*)`, startTime)
	at := []string{"--server", p.url, "--token-file", filepath.Join(data, server.TokenFile), "--json"}
	create := append([]string{"room", "create", "-"}, at...)

	_, stderr, code := proofline(t, `{"slug": "unsaid"}`, create...)
	for _, want := range []string{"beacon", "drand:quicknet", "waits", `"none"`, "level 1"} {
		if code == 0 || !strings.Contains(stderr, want) {
			t.Fatalf("without a beacon room create exits with %d and does not say %q: %s", code, want, stderr)
		}
	}
	for slug, chosen := range map[string]string{"without": "none", "later": "drand:quicknet"} {
		var made api.Room
		runJSON(t, `{"slug": "`+slug+`", "beacon": "`+chosen+`"}`, &made, create...)
		if made.Beacon != chosen {
			t.Errorf("%s: beacon %q, want %q", slug, made.Beacon, chosen)
		}
	}
	p.stop()

	// With a reachable beacon the same file creates a room of level 2.
	b := launch(t, nil, "beacon", "serve", "--addr", "127.0.0.1:"+port, "--period", "1s", "--key", key)
	b.listens()
	chain := b.until(`chain +([0-9a-f]{64})`, startTime)
	p = serve(t, nil, "--data", data, "--addr", "127.0.0.1:0", "--beacon-relays", b.url, "--beacon-chain", chain)
	at[1] = p.url
	var made api.Room
	runJSON(t, `{"slug": "unsaid"}`, &made, append([]string{"room", "create", "-"}, at...)...)
	if made.Beacon == "none" || made.Beacon == "" {
		t.Errorf("the room has beacon %q", made.Beacon)
	}
	p.stop()
}

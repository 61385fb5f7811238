package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/internal/wire"
)

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
	p := startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0", "--beacon-relays", "http://127.0.0.1:"+port)
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
		var made wire.Room
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
	p = startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0", "--beacon-relays", b.url, "--beacon-chain", chain)
	at[1] = p.url
	var made wire.Room
	runJSON(t, `{"slug": "unsaid"}`, &made, append([]string{"room", "create", "-"}, at...)...)
	if made.Beacon == "none" || made.Beacon == "" {
		t.Errorf("the room has beacon %q", made.Beacon)
	}
	p.stop()
}

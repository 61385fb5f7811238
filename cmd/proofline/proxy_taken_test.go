package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestProxyAddressTaken: the state file of an address belongs to the proxy that
// listens on it. Another proxy neither reports nor changes its contents.
func TestProxyAddressTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "away", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	dir := tempDir(t)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	state := filepath.Join(dir, "connector-state-127.0.0.1-"+port)
	const kept = `{"version":1,"fail_open":[{"room":"https://queue.example.com/r/sale","id":"AAAAAAAAAAAAAAAAAAAAAA","from":1,"until":2,"requests":3}]} `
	for name, text := range map[string]string{"rules.json": `{"version":1}`, "token": "secret",
		filepath.Base(state): kept} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, stderr, code := proofline(t, "", "proxy", "--rules", filepath.Join(dir, "rules.json"), "--to", server.URL,
		"--report-to", server.URL,
		"--token-file", filepath.Join(dir, "token"), "--key", filepath.Join(dir,
			"key"), "--state", state, "--listen", l.Addr().String())
	if code != 1 || !strings.Contains(stderr, "hint: another program listens there") || asked.Load() != 0 {
		t.Errorf("exits with %d after %d requests: %s", code, asked.Load(), stderr)
	}
	if text, err := os.ReadFile(state); err != nil || string(text) != kept {
		t.Errorf("keeps %q, %v", text, err)
	}
}

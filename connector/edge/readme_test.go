package edge_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/doctest"
	"github.com/proofline/proofline/internal/freeport"
)

// TestDenoProgram runs the README's program for Deno with the command given there.
func TestDenoProgram(t *testing.T) {
	t.Parallel()
	conformance.NeedsNode(t)
	blocks := doctest.Blocks(t, "README.md", "js")
	at := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, "Deno.serve(") })
	if at < 0 {
		t.Fatal("no program for Deno")
	}
	spans := doctest.Spans(doctest.Read(t, "README.md"))
	how := slices.IndexFunc(spans, func(s string) bool { return strings.HasPrefix(s, "deno run ") })
	if how < 0 {
		t.Fatal("nothing says how to run it")
	}
	program, err := filepath.Abs("node_modules/.bin/deno")
	if err != nil {
		t.Fatal(err)
	}
	dir, addr, queue := t.TempDir(), freeport.Addr(t), conformance.NewRoom(t)
	rules := strings.ReplaceAll(doctest.Blocks(t, "../README.md", "json")[0], "https://queue.example.com/r/sale", queue.URL())
	for name, text := range map[string]string{
		"main.js": strings.ReplaceAll(blocks[at], "https://origin.example.com", site(t)), "rules.json": rules, "proofline-edge.js": doctest.Read(t, "proofline-edge.js"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, strings.Fields(spans[how])[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PROOFLINE_KEY="+key, "DENO_SERVE_ADDRESS=tcp:"+addr)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // npm's deno is a script that starts the program
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = kill()
		_ = cmd.Wait()
	})
	for path, want := range map[string]int{"/": http.StatusOK, "/tickets": http.StatusFound} {
		r := get(t, "http://"+addr+path)
		if leads := r.Header.Get("Location"); r.StatusCode != want ||
			strings.HasPrefix(leads, queue.URL()+"?to=") != (want == http.StatusFound) {
			t.Errorf("%s: status %d to %q, want %d", path, r.StatusCode, leads, want)
		}
	}
}

// get requests a page of the shop, until the server listens.
func get(t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.example.com"
	r.Header.Set("Accept", "text/html")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			_ = answer.Body.Close()
			return answer
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

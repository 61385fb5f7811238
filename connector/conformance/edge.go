package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Platform runs the edge connector: a program of connector/edge, which npm
// installs.
type Platform struct {
	Name    string
	command []string
}

// Platforms of the edge connector.
var (
	Workerd = Platform{"workerd", []string{"node", "test/serve.mjs"}}
	Deno    = Platform{"Deno", []string{"node_modules/.bin/deno", "run", "--no-prompt", "--allow-net", "test/serve-deno.mjs"}}
)

// NeedsNode skips tests that need what npm installs and builds.
func NeedsNode(t testing.TB) {
	t.Helper()
	if os.Getenv("PROOFLINE_CONFORMANCE") == "" {
		t.Skip("runs with make conformance, which sets PROOFLINE_CONFORMANCE")
	}
}

// Edge runs the edge connector of connector/edge, which is dir, as the site's
// owner has bound it, and returns its address.
func Edge(t testing.TB, dir string, p Platform, bindings map[string]string) string {
	t.Helper()
	in, out := Start(t, dir, p.command...)
	if err := json.NewEncoder(in).Encode(bindings); err != nil {
		t.Fatal(err)
	}
	addr, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s does not begin: %v", p.Name, err)
	}
	return strings.TrimSpace(addr)
}

// Start runs a program of connector/edge, which is dir, and returns its
// streams. It is to stop when its input ends.
func Start(t testing.TB, dir string, command ...string) (io.Writer, *bufio.Reader) {
	t.Helper()
	NeedsNode(t)
	// Not killed when the test ends: it stops what it has started.
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Stderr = dir, t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		late := time.AfterFunc(20*time.Second, kill)
		_ = in.Close()
		_ = c.Wait()
		late.Stop()
		kill()
	})
	return in, bufio.NewReader(out)
}

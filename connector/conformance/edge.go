package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Platform is where a connector runs. Those of the edge connector are programs in
// connector/edge, with dependencies from npm.
type Platform struct {
	Name    string
	command []string
	// isBare: the connector runs without the platform's front end, which normalizes targets that are
	// not paths.
	isBare bool
	// isHTTPS: all visitors use https, or are redirected to it.
	isHTTPS bool
	// isSplit: requests and responses are handled by separate functions that share no memory and
	// report only single events. A session that the site ends is over once a room has been asked
	// about it, and the gate is refreshed by the first visitor after replyTTL.
	isSplit bool
}

// Nginx uses the connector by auth_request.
var Nginx = Platform{Name: "nginx"}

// replyTTL is how long connectors trust the reply to a report.
const replyTTL = 5 * time.Second

// Platforms of the edge connector. For CloudFront its functions are called by a
// program that handles requests and responses as AWS documents them.
var (
	Workerd = Platform{Name: "workerd", command: []string{"node", "test/serve.mjs"}, isBare: true}
	Deno    = Platform{Name: "Deno", command: []string{"node_modules/.bin/deno", "run", "--no-prompt", "--allow-net",
		"test/serve-deno.mjs"}}
	CloudFront = Platform{Name: "CloudFront", command: []string{"node", "test/serve-cloudfront.mjs"}, isBare: true,
		isHTTPS: true, isSplit: true}
)

// ofCloudFront are the methods that CloudFront supports.
var ofCloudFront = []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"}

// Answers reports whether a case applies to the platform.
func (p Platform) Answers(c Case) bool {
	switch {
	case p.isBare && !strings.HasPrefix(c.Target, "/"):
		return false
	case p.isSplit && c.Needs == "answers" && c.Want != "left":
		return false
	}
	return p.Name != CloudFront.Name || slices.Contains(ofCloudFront, c.Method)
}

// scheme is the scheme of the site's addresses.
func (p Platform) scheme() string {
	if p.isHTTPS {
		return "https"
	}
	return "http"
}

// NeedsNode skips a test if npm has not installed and built what the test needs.
func NeedsNode(t testing.TB) {
	t.Helper()
	if os.Getenv("PROOFLINE_CONFORMANCE") == "" {
		t.Skip("runs with make conformance, which sets PROOFLINE_CONFORMANCE")
	}
}

// Edge runs the edge connector in dir (connector/edge) with bindings, as a site's owner would, and
// returns its address.
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

// Start runs a program in dir (connector/edge), and returns its streams. The program must stop when
// its input ends.
func Start(t testing.TB, dir string, command ...string) (io.Writer, *bufio.Reader) {
	t.Helper()
	NeedsNode(t)
	// Not killed when the test ends, because it stops its own child processes.
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

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

// Platform is what a connector runs in. For the edge connector it is a program of
// connector/edge, which npm installs.
type Platform struct {
	Name    string
	command []string
	// isBare is said of what runs without the front of its platform, which takes
	// targets in other forms than a path apart.
	isBare bool
	// isHTTPS is said where all visitors come by https, or are taken to.
	isHTTPS bool
	// isSplit is said where what sees requests and what sees the site's answers
	// know nothing of each other, and report nothing but what happens: a session
	// that the site ends is over once a room has been asked about it, and the first
	// visitor after answerLate has the gate asked about.
	isSplit bool
}

// Nginx has a connector that answers its questions.
var Nginx = Platform{Name: "nginx"}

// answerLate is how long connectors believe the answer to a report.
const answerLate = 5 * time.Second

// Platforms of the edge connector. CloudFront is its functions alone, called by
// a program that does with requests and answers what AWS documents.
var (
	Workerd    = Platform{Name: "workerd", command: []string{"node", "test/serve.mjs"}, isBare: true}
	Deno       = Platform{Name: "Deno", command: []string{"node_modules/.bin/deno", "run", "--no-prompt", "--allow-net", "test/serve-deno.mjs"}}
	CloudFront = Platform{Name: "CloudFront", command: []string{"node", "test/serve-cloudfront.mjs"}, isBare: true, isHTTPS: true, isSplit: true}
)

// ofCloudFront are the methods that CloudFront knows.
var ofCloudFront = []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"}

// Answers tells whether the connector answers a case on the platform.
func (p Platform) Answers(c Case) bool {
	switch {
	case p.isBare && !strings.HasPrefix(c.Target, "/"):
		return false
	case p.isSplit && c.Needs == "answers" && c.Want != "left":
		return false
	}
	return p.Name != CloudFront.Name || slices.Contains(ofCloudFront, c.Method)
}

// scheme is that of the site's addresses.
func (p Platform) scheme() string {
	if p.isHTTPS {
		return "https"
	}
	return "http"
}

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

// Package edge_test holds the edge connector to the answers of the others.
package edge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/conformance"
)

// needsNode skips tests that need what npm installs and builds.
func needsNode(t *testing.T) {
	t.Helper()
	if os.Getenv("PROOFLINE_CONFORMANCE") == "" {
		t.Skip("runs with make conformance, which sets PROOFLINE_CONFORMANCE")
	}
}

// start runs a program and returns its streams.
func start(t *testing.T, program string, args ...string) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	// Not killed when the test ends: it stops what it has started, once its
	// input ends.
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	c := exec.CommandContext(ctx, program, args...)
	c.Stderr = t.Output()
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

// Programs that run the connector.
var (
	inWorkerd = []string{"node", "test/serve.mjs"}
	inDeno    = []string{"deno", "run", "--no-prompt", "--allow-net", "test/serve-deno.mjs"}
)

// worker runs the connector between a room and a site, and returns its address.
func worker(t *testing.T, program []string, room *conformance.Room, site string) string {
	t.Helper()
	in, out := start(t, program[0], program[1:]...)
	bindings := map[string]string{
		"PROOFLINE_KEY": key, "PROOFLINE_RULES_URL": room.RulesURL(), "PROOFLINE_SITE_KEY": room.SiteKey(), "PROOFLINE_TOKEN": conformance.Token, "PROOFLINE_ORIGIN": site,
	}
	if err := json.NewEncoder(in).Encode(bindings); err != nil {
		t.Fatal(err)
	}
	addr, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// key is that of all connectors of the site.
var key = strings.Repeat("k", 32)

// cases returns those of the table that fit.
func cases(t *testing.T, fits func(conformance.Case) bool) (list []conformance.Case) {
	t.Helper()
	text, err := os.ReadFile("../testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := conformance.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if fits(c) {
			list = append(list, c)
		}
	}
	return list
}

func site(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(conformance.Site())
	t.Cleanup(s.Close)
	return s.URL
}

// TestConformance sends the requests of all connectors to one in workerd, and
// to one in Deno.
func TestConformance(t *testing.T) {
	t.Parallel()
	needsNode(t)
	for name, program := range map[string][]string{"workerd": inWorkerd, "Deno": inDeno} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program[0]); err != nil {
				t.Skipf("%s is not installed", name)
			}
			list := cases(t, func(c conformance.Case) bool {
				// workerd alone refuses targets in absolute form; Cloudflare has something in front of it.
				return name == "Deno" || strings.HasPrefix(c.Target, "/")
			})
			if len(list) < 150 {
				t.Errorf("%d cases", len(list))
			}
			room := conformance.NewRoom(t)
			conformance.Run(t, room, worker(t, program, room, site(t)), list)
		})
	}
}

// TestSessionsOfBoth enters through one connector and goes on through the
// other, both ways.
func TestSessionsOfBoth(t *testing.T) {
	t.Parallel()
	needsNode(t)
	room := conformance.NewRoom(t)
	c, err := connector.New(connector.Options{
		Source: &connector.Source{URL: room.RulesURL(), SiteKey: room.SiteKey()}, Token: conformance.Token, Key: []byte(key), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	inGo := c.Middleware(conformance.Site())
	atEdge := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: worker(t, inWorkerd, room, site(t))})
	list := cases(t, func(c conformance.Case) bool {
		return c.Visitor != "" && c.Needs == "" && c.Gate == "" || strings.HasPrefix(c.Name, "a gate that is shut")
	})
	if len(list) < 8 {
		t.Fatalf("%d cases", len(list))
	}
	// What has just begun believes signed rules that are old, and the cases are
	// about what has seen newer ones.
	first := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example.com/about", nil)
	first.RequestURI = ""
	atEdge.ServeHTTP(httptest.NewRecorder(), first)
	for name, way := range map[string][2]http.Handler{"from Go to the edge": {inGo, atEdge}, "from the edge to Go": {atEdge, inGo}} {
		t.Run(name, func(t *testing.T) {
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has(connector.PassParameter) || r.Header.Get("Cookie") == "" {
					way[0].ServeHTTP(w, r)
				} else {
					way[1].ServeHTTP(w, r)
				}
			}))
			t.Cleanup(front.Close)
			conformance.Run(t, room, front.Listener.Addr().String(), list)
		})
	}
}

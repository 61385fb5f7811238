// Package edge_test holds the edge connector to the answers of the others.
package edge_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/connector/rules"
)

// needsNode skips tests that need what npm installs and builds.
func needsNode(t *testing.T) {
	t.Helper()
	if os.Getenv("PROOFLINE_CONFORMANCE") == "" {
		t.Skip("runs with make conformance, which sets PROOFLINE_CONFORMANCE")
	}
}

// start runs a script of node and returns its streams.
func start(t *testing.T, script string) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "node", script)
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
		_ = in.Close()
		_ = c.Wait()
	})
	return in, bufio.NewReader(out)
}

// worker runs the connector in workerd, between a room and a site, and returns
// its address.
func worker(t *testing.T, room *conformance.Room, site string) string {
	t.Helper()
	in, out := start(t, "test/serve.mjs")
	bindings := map[string]string{"PROOFLINE_KEY": key, "PROOFLINE_RULES": string(room.Rules()), "PROOFLINE_ORIGIN": site}
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

// cases returns those of the table that fit. workerd alone refuses targets in
// absolute form, which the platforms in front of it take.
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
		if strings.HasPrefix(c.Target, "/") && fits(c) {
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

// TestConformance sends the requests of all connectors to one in workerd.
func TestConformance(t *testing.T) {
	t.Parallel()
	needsNode(t)
	room := conformance.NewRoom(t)
	list := cases(t, func(conformance.Case) bool { return true })
	if len(list) < 60 {
		t.Errorf("%d cases", len(list))
	}
	conformance.Run(t, room, worker(t, room, site(t)), list)
}

// TestSessionsOfBoth enters through one connector and goes on through the
// other, both ways.
func TestSessionsOfBoth(t *testing.T) {
	t.Parallel()
	needsNode(t)
	room := conformance.NewRoom(t)
	document, err := rules.Parse(room.Rules())
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector.New(connector.Options{Site: document, Key: []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	inGo := c.Middleware(conformance.Site())
	atEdge := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: worker(t, room, site(t))})
	list := cases(t, func(c conformance.Case) bool {
		return c.Want == "site" && strings.Contains(strings.Join(c.Header, ""), "{cookie}") && !strings.Contains(c.Target, "{pass}")
	})
	if len(list) < 2 {
		t.Fatalf("%d cases", len(list))
	}
	for name, way := range map[string][2]http.Handler{"from Go to the edge": {inGo, atEdge}, "from the edge to Go": {atEdge, inGo}} {
		t.Run(name, func(t *testing.T) {
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has(connector.PassParameter) {
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

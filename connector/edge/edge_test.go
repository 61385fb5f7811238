// Package edge_test tests that the edge connector answers like the others.
package edge_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/testlog"
)

// worker runs the connector between a room and a site, and returns its address.
func worker(t *testing.T, p conformance.Platform, room *conformance.Room, site string) string {
	t.Helper()
	return conformance.Edge(t, ".", p, map[string]string{
		"PROOFLINE_KEY": key, "PROOFLINE_RULES_URL": room.RulesURL(), "PROOFLINE_SITE_KEY": room.SiteKey(), "PROOFLINE_TOKEN": conformance.Token, "PROOFLINE_ORIGIN": site,
		"PROOFLINE_PAGE": conformance.Page,
	})
}

// key is the key of all connectors of the site.
var key = strings.Repeat("k", 32)

// cases returns the cases that apply to a platform.
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

// TestConformance runs all cases on each platform.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.NeedsNode(t)
	for _, p := range []conformance.Platform{conformance.Workerd, conformance.Deno, conformance.CloudFront} {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			list := cases(t, p.Answers)
			if len(list) < 150 {
				t.Errorf("%d cases", len(list))
			}
			room := conformance.NewRoom(t)
			conformance.RunOn(t, p, room, worker(t, p, room, site(t)), list)
		})
	}
}

// TestSessionsOfBoth enters through one connector and continues through the other, both ways.
func TestSessionsOfBoth(t *testing.T) {
	t.Parallel()
	conformance.NeedsNode(t)
	room := conformance.NewRoom(t)
	c, err := connector.New(connector.Options{
		Source: &connector.Source{URL: room.RulesURL(), SiteKey: room.SiteKey()}, Token: conformance.Token, Key: []byte(key), Page: []byte(conformance.Page), Log: testlog.New(t, slog.LevelInfo),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	inGo := c.Middleware(conformance.Site())
	atEdge := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: worker(t, conformance.Workerd, room, site(t))})
	list := cases(t, func(c conformance.Case) bool {
		return c.Visitor != "" && c.Needs == "" && c.Gate == "" || strings.HasPrefix(c.Name, "a gate that is shut")
	})
	if len(list) < 8 {
		t.Fatalf("%d cases", len(list))
	}
	// A new connector accepts old signed rules; these cases are for one that has seen newer rules.
	first := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example.com/about", nil)
	first.RequestURI = ""
	atEdge.ServeHTTP(httptest.NewRecorder(), first)
	for name, way := range map[string][2]http.Handler{"from Go to the edge": {inGo, atEdge},
		"from the edge to Go": {atEdge, inGo}} {
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

package web

import (
	"net/http"
	"strings"
	"testing"
)

// TestHome checks that browsers get a page, not a sign-in or JSON, at the server's own address and at
// mistyped ones.
func TestHome(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
	home := s.get("/", browser, "Accept-Language: de").want(http.StatusOK)
	for _, want := range []string{`<html lang="de"`, `id="home"`, `property="og:title"`, `name="description"`} {
		if !strings.Contains(home.body, want) {
			t.Errorf("no %q at the server's address: %s", want, home.body)
		}
	}
	if a := s.get("/", "Accept: application/json").want(http.StatusOK); !strings.HasPrefix(a.body, "{") {
		t.Errorf("a program gets %s", a.body)
	}
	for _, path := range []string{"/tickets", "/r/nothing", "/.well-known/nothing"} {
		if a := s.get(path, browser).want(http.StatusNotFound); !strings.Contains(a.body, `data-kind="not-found"`) {
			t.Errorf("%s answers a browser with %s", path, a.body)
		}
		if a := s.get(path, "Accept: application/json").want(http.StatusNotFound); !strings.HasPrefix(a.body, "{") {
			t.Errorf("%s answers a program with %s", path, a.body)
		}
	}
	s.get("/v1/nothing", browser).want(http.StatusNotFound)
	if a := s.get("/robots.txt").want(http.StatusOK); !strings.Contains(a.body, "Disallow: /console") || strings.Contains(a.body, "/r/") {
		t.Errorf("robots.txt: %s", a.body)
	}
}

package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/shell"
)

// roleScopes are the scopes of the people in tests.
var roleScopes = map[string]account.Scope{
	consoletest.Owner: account.Owner.Scopes(), consoletest.Operator: account.Operator.Scopes(), consoletest.Viewer: account.Viewer.Scopes(), consoletest.Stranger: account.Owner.Scopes(),
}

// pathOf fills in the parameters of a route.
func pathOf(route shell.Listed, slug string) string {
	path := strings.NewReplacer(":slug", slug, ":site", slug, ":version", "1").Replace(route.Path)
	for _, parameter := range []string{":id", ":host", ":endpoint", ":delivery", ":ticket", ":format"} {
		path = strings.ReplaceAll(path, parameter, "00000000-0000-8000-8000-0000000000ff")
	}
	return path
}

// TestRoles requests every route with every role: visitors who are not signed in are redirected to the
// sign-in page, and people without permission are refused.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.Create(consoletest.Owner, room.Config{Slug: "guarded"})
	for _, route := range s.Routes() {
		path := pathOf(route, "guarded")
		if route.Scope == shell.Public {
			continue
		}
		if a := s.Do(consoletest.Nobody, route.Method, path, ""); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/console/sign-in?next=") {
			t.Errorf("%s %s without a session: %d", route.Method, path, a.Status)
		}
		for who, scopes := range roleScopes {
			if route.Scope == shell.SignedIn || scopes.Has(route.Scope) {
				continue
			}
			if a := s.Do(who, route.Method, path, ""); a.Status != http.StatusForbidden {
				t.Errorf("%s %s by a %s: %d", route.Method, path, who, a.Status)
			}
		}
	}
}

// TestCrossOrigin checks that every route refuses requests from other sites, whoever is signed in.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "guarded"})
	posts := 0
	for _, route := range s.Routes() {
		if route.Method != http.MethodPost {
			continue
		}
		posts++
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example"} {
			if a := s.Do(consoletest.Owner, http.MethodPost, pathOf(route, "guarded"), "confirmed=1&slug=guarded", header); a.Status != http.StatusForbidden {
				t.Errorf("%s with %s: %d", route.Path, header, a.Status)
			}
		}
	}
	if posts < 7 || r.Snapshot().Size != 1 {
		t.Errorf("%d routes, and the room has %d entries", posts, r.Snapshot().Size)
	}
}

// TestTenants: a room or site of another organization looks as if it did not exist.
func TestTenants(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "guarded"})
	s.AddSite(consoletest.Owner, "guarded", r)
	for _, route := range s.Routes() {
		if !strings.Contains(route.Path, ":slug") && !strings.Contains(route.Path, ":site") {
			continue
		}
		theirs, none := pathOf(route, "guarded"), pathOf(route, "nothing")
		a, b := s.Do(consoletest.Stranger, route.Method, theirs, "confirmed=1&slug=guarded"), s.Do(consoletest.Stranger, route.Method, none, "confirmed=1&slug=guarded")
		if a.Status != http.StatusNotFound || a.Status != b.Status || strings.ReplaceAll(a.Body, "guarded", "nothing") != b.Body {
			t.Errorf("%s %s: %d, and %d for a room that does not exist", route.Method, route.Path, a.Status, b.Status)
		}
	}
	if r.Snapshot().Size != 1 {
		t.Error("a stranger changed the room")
	}
	if now, err := s.Sites.Site(t.Context(), consoletest.Actor(consoletest.Owner), "guarded"); err != nil || now.Version != 1 {
		t.Errorf("a stranger changed the site: version %d, %v", now.Version, err)
	}
}

// header returns the header of a response, which may be a stream.
func header(s *consoletest.Site, who, method, path string) http.Header {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	if who != consoletest.Nobody {
		q.AddCookie(&http.Cookie{Name: shell.SessionCookie, Value: who})
	}
	response, err := consoletest.Client.Do(q)
	if err != nil {
		s.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header
}

// TestHeaders: every response has a policy that forbids foreign content.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.Create(consoletest.Owner, room.Config{Slug: "guarded"})
	for _, route := range s.Routes() {
		for _, who := range []string{consoletest.Nobody, consoletest.Owner} {
			h := header(s, who, route.Method, pathOf(route, "guarded"))
			policy := h.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: policy %q, %q", route.Method, route.Path, policy, h.Get("Cache-Control"))
			}
		}
	}
}

// TestNoText sends texts that no text column can store to every route, in path, query and form: each is
// invalid input, not an error of the server.
func TestNoText(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.Create(consoletest.Owner, room.Config{Slug: "guarded"})
	for _, route := range s.Routes() {
		path := pathOf(route, "guarded")
		odd := []string{path + "?q=a%00b", path + "?object=%ff"}
		if strings.Contains(route.Path, ":slug") || strings.Contains(route.Path, ":site") {
			odd = append(odd, pathOf(route, "a%00b"))
		}
		for _, path := range odd {
			if a := s.Do(consoletest.Owner, route.Method, path, ""); a.Status != http.StatusBadRequest {
				t.Errorf("%s %s: %d", route.Method, path, a.Status)
			}
		}
		if route.Method == http.MethodPost {
			if a := s.Do(consoletest.Owner, http.MethodPost, path, "title=a%00b"); a.Status != http.StatusBadRequest {
				t.Errorf("%s with a NUL in its form: %d", path, a.Status)
			}
		}
	}
}

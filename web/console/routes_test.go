package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/shell"
)

// roleScopes are what the people of tests may do.
var roleScopes = map[string]account.Scope{
	owner: account.Owner.Scopes(), operator: account.Operator.Scopes(), viewer: account.Viewer.Scopes(), stranger: account.Owner.Scopes(),
}

// pathOf fills in the parameters of a route.
func pathOf(route shell.Listed, slug string) string {
	path := strings.NewReplacer(":slug", slug, ":site", slug, ":version", "1").Replace(route.Path)
	for _, parameter := range []string{":id", ":host", ":endpoint", ":delivery", ":ticket", ":format"} {
		path = strings.ReplaceAll(path, parameter, "00000000-0000-8000-8000-0000000000ff")
	}
	return path
}

// TestRoles walks every route as everybody: who is not signed in is led to the
// page where that is done, and who may not is told so.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, room.Config{Slug: "guarded"})
	for _, route := range s.Routes() {
		path := pathOf(route, "guarded")
		if route.Scope == Public {
			continue
		}
		if a := s.do(nobody, route.Method, path, ""); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/console/sign-in?next=") {
			t.Errorf("%s %s without a session: %d", route.Method, path, a.status)
		}
		for who, scopes := range roleScopes {
			if route.Scope == SignedIn || scopes.Has(route.Scope) {
				continue
			}
			if a := s.do(who, route.Method, path, ""); a.status != http.StatusForbidden {
				t.Errorf("%s %s by a %s: %d", route.Method, path, who, a.status)
			}
		}
	}
}

// TestCrossOrigin refuses what other sites send to any route, whoever is signed in.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "guarded"})
	posts := 0
	for _, route := range s.Routes() {
		if route.Method != POST {
			continue
		}
		posts++
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example"} {
			if a := s.do(owner, POST, pathOf(route, "guarded"), "confirmed=1&slug=guarded", header); a.status != http.StatusForbidden {
				t.Errorf("%s with %s: %d", route.Path, header, a.status)
			}
		}
	}
	if posts < 7 || r.Snapshot().Size != 1 {
		t.Errorf("%d routes, and the room has %d entries", posts, r.Snapshot().Size)
	}
}

// TestTenants: a room or site of another organization is as one that does not exist.
func TestTenants(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "guarded"})
	s.addSite(owner, "guarded", r)
	for _, route := range s.Routes() {
		if !strings.Contains(route.Path, ":slug") && !strings.Contains(route.Path, ":site") {
			continue
		}
		theirs, none := pathOf(route, "guarded"), pathOf(route, "nothing")
		a, b := s.do(stranger, route.Method, theirs, "confirmed=1&slug=guarded"), s.do(stranger, route.Method, none, "confirmed=1&slug=guarded")
		if a.status != http.StatusNotFound || a.status != b.status || strings.ReplaceAll(a.body, "guarded", "nothing") != b.body {
			t.Errorf("%s %s: %d, and %d for a room that does not exist", route.Method, route.Path, a.status, b.status)
		}
	}
	if r.Snapshot().Size != 1 {
		t.Error("a stranger changed the room")
	}
	if now, err := s.Sites.Site(t.Context(), identities()[owner].Actor, "guarded"); err != nil || now.Version != 1 {
		t.Errorf("a stranger changed the site: version %d, %v", now.Version, err)
	}
}

// header returns the header of an answer, which may be a stream.
func (s *site) header(who, method, path string) http.Header {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), method, s.url+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	if who != nobody {
		q.AddCookie(&http.Cookie{Name: SessionCookie, Value: who})
	}
	response, err := client.Do(q)
	if err != nil {
		s.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header
}

// TestHeaders: every answer has the policy that lets nothing foreign in.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, room.Config{Slug: "guarded"})
	for _, route := range s.Routes() {
		for _, who := range []string{nobody, owner} {
			h := s.header(who, route.Method, pathOf(route, "guarded"))
			policy := h.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: policy %q, %q", route.Method, route.Path, policy, h.Get("Cache-Control"))
			}
		}
	}
}

// TestNoText sends to every route, in path, query and form, what no text column
// holds: that is wrong input, and no fault of the server.
func TestNoText(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, room.Config{Slug: "guarded"})
	for _, route := range s.Routes() {
		path := pathOf(route, "guarded")
		odd := []string{path + "?q=a%00b", path + "?object=%ff"}
		if strings.Contains(route.Path, ":slug") || strings.Contains(route.Path, ":site") {
			odd = append(odd, pathOf(route, "a%00b"))
		}
		for _, path := range odd {
			if a := s.do(owner, route.Method, path, ""); a.status != http.StatusBadRequest {
				t.Errorf("%s %s: %d", route.Method, path, a.status)
			}
		}
		if route.Method == POST {
			if a := s.do(owner, POST, path, "title=a%00b"); a.status != http.StatusBadRequest {
				t.Errorf("%s with a NUL in its form: %d", path, a.status)
			}
		}
	}
}

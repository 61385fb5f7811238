package web

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/manage"
)

// caller is an actor that tries a route.
type caller struct {
	name   string
	token  string
	scopes account.Scope
	kind   account.Kind // zero: no token
	other  bool         // of another organization
}

// callers returns one caller of each kind.
func (s *tenants) callers() []caller {
	list := []caller{{name: "nobody"}, {name: "an expired token"}, {name: "a revoked token"}}
	list[1].token, _ = s.token(s.main, account.Admin, time.Minute)
	s.get("/v1/organization", authorized(list[1].token)).want(http.StatusOK) // so that it is cached
	s.clock.move(2 * time.Minute)
	text, id := s.token(s.main, account.Admin, time.Hour)
	s.get("/v1/organization", authorized(text)).want(http.StatusOK)
	if err := s.accounts.Tokens.Revoke(s.Context(), s.main, id); err != nil {
		s.Fatal(err)
	}
	list[2].token = text
	for _, scope := range []account.Scope{account.Read, account.Pull, account.Connect, account.Operate, account.Admin} {
		text, _ := s.token(s.main, scope, time.Hour)
		list = append(list, caller{name: scope.String(), token: text, scopes: scope, kind: account.Token})
	}
	text, _ = s.token(s.other, account.Admin, time.Hour)
	return append(list,
		caller{name: "another tenant's admin", token: text, scopes: account.Admin, kind: account.Token, other: true},
		caller{name: "the server", token: token, scopes: account.Admin, kind: account.Server})
}

// outcome is the expected result of a request.
type outcome int

const (
	unauthorized outcome = iota
	forbidden
	absent // as if the object in the path did not exist
	allowed
)

// expected derives the outcome from the route table alone.
func (c caller) expected(n manage.Needs) outcome {
	switch {
	case c.kind == 0:
		return unauthorized
	case !c.scopes.Has(n.Scope) || n.Server && c.kind != account.Server:
		return forbidden
	case c.other && strings.Contains(n.Path, "{"):
		return absent
	}
	return allowed
}

// fill replaces the path's parameters by objects of an organization, or by nonexistent ones.
func (s *tenants) fill(n manage.Needs, in account.Actor, exists bool) string {
	s.Helper()
	slug := ""
	if exists && strings.Contains(n.Path, "rehears") { // only one can run at a time
		s.stopRehearsals(in)
	}
	return pathParameter.ReplaceAllStringFunc(n.Path, func(parameter string) string {
		what := strings.Trim(parameter, "{}")
		switch {
		case !exists && what == "slug":
			return "nothing"
		case !exists && what == "host":
			return "nothing.example.org"
		case !exists && what == "ticket":
			return newVisitor("nothing").ticket
		case !exists:
			return uuid.NewString()
		case what == "ticket":
			ticket := s.join(slug)
			if strings.HasSuffix(n.Path, "/restore") {
				s.revoke(slug, ticket)
			}
			return ticket
		case what == "method":
			return "club"
		case what == "slug" && strings.Contains(n.Path, "/codes"):
			what = "presale"
		case what == "slug" && (strings.HasSuffix(n.Path, "/archive") || strings.HasSuffix(n.Path, "/summary")):
			what = "ended"
		}
		name := s.make(what, in)
		if parameter == "{slug}" {
			slug = name
		}
		if strings.HasSuffix(n.Path, "/pull") {
			if _, err := s.control.SetPull(s.Context(), in, name, true); err != nil {
				s.Fatal(err)
			}
		}
		return name
	})
}

// try sends a request to a route. It uses new slugs and hosts.
func (s *tenants) try(c caller, n manage.Needs, path string) answer {
	s.Helper()
	body := strings.NewReplacer(`"slug": "sale"`, `"slug": "s`+uuid.NewString()[:8]+`"`, `"name": "shop"`, `"name": "s`+uuid.NewString()[:8]+`"`, `"slug": "example"`, `"slug": "e`+uuid.NewString()[:8]+`"`,
		`"slug": "autumn"`, `"slug": "a`+uuid.NewString()[:8]+`"`, "tickets.example.com", "t"+uuid.NewString()[:8]+".example.com").Replace(n.Example)
	if strings.HasSuffix(n.Path, "/pull") {
		path += "?n=1"
	}
	if strings.HasSuffix(n.Path, "/sign-in-links") { // must be for a person that exists
		members, err := s.accounts.Members.List(s.Context(), s.main)
		if err != nil {
			s.Fatal(err)
		}
		body = strings.Replace(body, "owner@example.com", members[0].Email, 1)
	}
	headers := []string{"Authorization: "}
	if c.token != "" {
		headers = []string{authorized(c.token)}
	}
	a := s.do(n.Method, path, body, headers...)
	for strings.HasSuffix(n.Path, "/summary") && a.status == http.StatusServiceUnavailable {
		time.Sleep(20 * time.Millisecond)
		a = s.do(n.Method, path, body, headers...)
	}
	return a
}

// ofRequest matches the parts that differ between any two requests.
var ofRequest = regexp.MustCompile(`"(request_id|instance)":"[^"]*"`)

// TestIsolation tries every route with every kind of caller. Callers without the scope are refused, and
// objects of another organization get the same response as nonexistent ones.
func TestIsolation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one request after the other: there is nothing for the race detector")
	}
	s := newTenants(t)
	s.member(s.main, account.Owner) // so that others can leave
	callers := s.callers()
	for _, n := range s.api.Needs() {
		untouched := s.fill(n, s.main, true)
		for _, c := range callers {
			what := c.name + ": " + n.Method + " " + n.Path
			want, path := c.expected(n), untouched
			if want == allowed {
				path = s.fill(n, s.main, true) // the previous one may be gone
			}
			before := s.latestEntry(s.main)
			a := s.try(c, n, path)
			switch want {
			case unauthorized:
				a.problem(http.StatusUnauthorized, "unauthorized")
			case forbidden:
				a.problem(http.StatusForbidden, "forbidden")
			case absent:
				never := s.try(c, n, s.fill(n, s.main, false))
				if diff := cmp.Diff(anonymous(never), anonymous(a)); a.status != http.StatusNotFound || diff != "" {
					t.Errorf("%s: status %d, and unlike what does not exist:\n%s", what, a.status, diff)
				}
			case allowed:
				nobodyTold := n.Path == "/v1/alerts/test" && a.status == http.StatusNotFound
				if a.status >= http.StatusBadRequest && !nobodyTold {
					t.Errorf("%s: status %d: %s", what, a.status, a.body)
				}
			}
			if after := s.latestEntry(s.main); (want != allowed || c.other) && before != after {
				t.Errorf("%s: something was done", what)
			}
		}
	}
}

// anonymous returns a response without the parts that differ between requests.
func anonymous(a answer) []string {
	list := []string{ofRequest.ReplaceAllString(a.body, "")}
	for name, values := range a.header {
		if !slices.Contains([]string{"Date", "X-Request-Id", "Content-Length"}, name) {
			list = append(list, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(list)
	return list
}

// latestEntry returns the latest activity log entry of an organization.
func (s *tenants) latestEntry(in account.Actor) uuid.UUID {
	s.Helper()
	page, err := s.control.Activity.Entries(s.Context(), in, "", uuid.Nil, 1)
	if err != nil {
		s.Fatal(err)
	}
	if len(page.Entries) == 0 {
		return uuid.Nil
	}
	return page.Entries[0].ID
}

// TestOrganizationHeader checks that only the server's token can choose an organization, and that its
// objects belong to that organization.
func TestOrganizationHeader(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const header = "Proofline-Organization: "
	s.post("/v1/rooms", `{"slug":"theirs"}`, header+"other").want(http.StatusCreated)
	s.get("/v1/rooms/theirs", header+"other").want(http.StatusOK)
	s.get("/v1/rooms/theirs").problem(http.StatusNotFound, "not-found")
	s.get("/v1/rooms/theirs", header+"main").problem(http.StatusNotFound, "not-found")
	s.get("/v1/rooms", header+"nobody").problem(http.StatusNotFound, "unknown-organization")
	s.post("/v1/rooms", `{"slug":"theirs"}`).problem(http.StatusConflict, "room-exists")
	own, _ := s.token(s.other, account.Operate, time.Hour)
	s.get("/v1/rooms/theirs", authorized(own)).want(http.StatusOK)
	s.get("/v1/rooms/theirs", authorized(own), header+"other").want(http.StatusOK)
	s.get("/v1/rooms/theirs", authorized(own), header+"main").problem(http.StatusNotFound, "unknown-organization")
	s.get("/v1/rooms/theirs", authorized(own), header+"nobody").problem(http.StatusNotFound, "unknown-organization")
}

// TestNoText sends text that the database cannot store, in path and query, to every route: each must
// refuse it as invalid input.
func TestNoText(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one request after the other: there is nothing for the race detector")
	}
	s := newTenants(t)
	admin := authorized(token)
	for _, n := range s.api.Needs() {
		for _, odd := range []string{"a%00b", "%ff"} {
			if strings.Contains(n.Path, "{") {
				path := pathParameter.ReplaceAllString(n.Path, odd) // the router leaves %ff as it is
				if a := s.do(n.Method, path, n.Example, admin); a.status != http.StatusBadRequest && a.status != http.StatusNotFound {
					t.Errorf("%s %s: %d", n.Method, path, a.status)
				}
			}
			for _, name := range []string{"search", "object", "room", odd} {
				path := pathParameter.ReplaceAllString(n.Path, "x") + "?" + name + "=" + odd
				if a := s.do(n.Method, path, n.Example, admin); a.status != http.StatusBadRequest {
					t.Errorf("%s %s: %d", n.Method, path, a.status)
				}
			}
		}
	}
	s.get("/v1/rooms?cursor=MTcwMDAwMCAA", admin).problem(http.StatusBadRequest, "invalid") // a NUL in base64
}

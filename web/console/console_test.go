package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
)

// TestRoutes asks for every route as those who may not: whoever is not signed
// in is led to the page for that, whoever lacks the scope is told so, and what
// another site sends is refused.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	for _, r := range s.Routes() {
		path := strings.NewReplacer(":id", "00000000-0000-8000-8000-0000000000cc", ":slug", "sale").Replace(r.Path)
		name := r.Method + " " + r.Path
		if r.Scope != Public {
			if a := s.do(nobody, r.Method, path, ""); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), Path+"/sign-in?next=") {
				t.Errorf("%s by nobody: %d, leads to %s", name, a.status, a.header.Get("Location"))
			}
		}
		if r.Scope != Public && r.Scope != SignedIn && !account.Viewer.Scopes().Has(r.Scope) {
			if a := s.do(viewer, r.Method, path, ""); a.status != http.StatusForbidden {
				t.Errorf("%s by a viewer: %d", name, a.status)
			}
		}
		if r.Method == POST {
			if a := s.do(owner, r.Method, path, "", "Sec-Fetch-Site: cross-site"); a.status != http.StatusForbidden {
				t.Errorf("%s from another site: %d", name, a.status)
			}
		}
	}
}

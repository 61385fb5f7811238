package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/web/console"
	"github.com/proofline/proofline/web/console/shell"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// newConsole starts a console with all parts.
func newConsole(t *testing.T) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, func(o *console.Options) { o.Accounts = consoletest.Accounts(t) })
}

// TestPartsAreWired checks that the console has the routes of every package below it that returns pages.
// Otherwise the tests that walk all routes would miss some.
func TestPartsAreWired(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	wired, found := map[string]bool{}, map[string]bool{}
	for _, r := range newConsole(t).Routes() {
		wired[r.Part] = true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ") shell.Part {\n") && !strings.HasSuffix(file, "_test.go") {
			found[filepath.Dir(file)] = true
		}
	}
	for name := range found {
		if !wired[name] {
			t.Errorf("package %s returns pages that the console does not have", name)
		}
	}
	if len(found) < 4 {
		t.Errorf("only %v return pages", found)
	}
}

// TestRoutes requests every route without permission: requests without a session are redirected to the
// sign-in page, and requests without the scope or from other sites are refused.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	for _, r := range s.Routes() {
		path := strings.NewReplacer(":id", "00000000-0000-8000-8000-0000000000cc", ":slug", "sale").Replace(r.Path)
		name := r.Method + " " + r.Path
		if r.Scope != shell.Public {
			if a := s.Do(consoletest.Nobody, r.Method, path, ""); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), shell.Path+"/sign-in?next=") {
				t.Errorf("%s without a session: %d, redirects to %s", name, a.Status, a.Header.Get("Location"))
			}
		}
		if r.Scope != shell.Public && r.Scope != shell.SignedIn && !account.Viewer.Scopes().Has(r.Scope) {
			if a := s.Do(consoletest.Viewer, r.Method, path, ""); a.Status != http.StatusForbidden {
				t.Errorf("%s by a viewer: %d", name, a.Status)
			}
		}
		if r.Method == http.MethodPost {
			if a := s.Do(consoletest.Owner, r.Method, path, "", "Sec-Fetch-Site: cross-site"); a.Status != http.StatusForbidden {
				t.Errorf("%s from another site: %d", name, a.Status)
			}
		}
	}
}

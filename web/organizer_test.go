package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
)

// TestOrganizer wants visitors to know who runs a line: the pages, the link
// previews and the published report name the room's own organization, escaped.
func TestOrganizer(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const browser = "Accept: text/html"
	ours, theirs := s.make("slug", s.main), s.make("slug", s.other)
	if a := s.get("/r/"+ours, browser).want(http.StatusOK); strings.Contains(a.body, account.Unnamed) || strings.Contains(a.body, "Organized by") {
		t.Errorf("an organization without a name of its own is shown: %s", a.body)
	}
	name := `<b>Fans & "friends"</b>`
	if _, err := s.accounts.ChangeOrganization(t.Context(), s.main, account.OrganizationChange{Name: &name}); err != nil {
		t.Fatal(err)
	}
	const escaped = `&lt;b&gt;Fans &amp; &#34;friends&#34;&lt;/b&gt;`
	for _, path := range []string{"", "/check", "/fair"} {
		body := s.get("/r/"+ours+path, browser).want(http.StatusOK).body
		for _, want := range []string{"Organized by <bdi>" + escaped + "</bdi>", `<meta property="og:site_name" content="` + escaped + `">`} {
			if !strings.Contains(body, want) {
				t.Errorf("/r/%s%s has no %q: %s", ours, path, want, body)
			}
		}
		body = s.get("/r/"+theirs+path, browser).want(http.StatusOK).body
		if strings.Contains(body, "Fans") || !strings.Contains(body, "Organized by <bdi>The others</bdi>") {
			t.Errorf("/r/%s%s does not name its own organization: %s", theirs, path, body)
		}
	}
	rehearsal := s.make("rehearsal", s.other)
	if a := s.get("/r/"+rehearsal, browser).want(http.StatusOK); !strings.Contains(a.body, "Organized by <bdi>The others</bdi>") {
		t.Errorf("a rehearsal does not name its organization: %s", a.body)
	}
}

// TestReportOrganizer wants the published report to name who ran the line.
func TestReportOrganizer(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	slug := s.make("slug", s.other)
	if _, err := s.Desk().End(t.Context(), s.other, slug); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the report is published", func() bool {
		done, err := s.Desk().PublishReport(t.Context(), s.other, slug)
		return err == nil && <-done == nil
	})
	if a := s.get("/r/"+slug+"/report", "Accept: text/html").want(http.StatusOK); !strings.Contains(a.body, "<dt>Organizer</dt><dd>The others</dd>") {
		t.Errorf("the report does not name the organizer: %.3000s", a.body[strings.Index(a.body, "<header>"):])
	}
}

package web

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
)

// TestOrganizer checks that pages, link previews and the published report name the room's organization,
// escaped.
func TestOrganizer(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const browser = "Accept: text/html"
	ours, theirs := s.make("slug", s.main), s.make("slug", s.other)
	if a := s.get("/r/"+ours, browser).want(http.StatusOK); strings.Contains(a.body, account.Unnamed) || strings.Contains(a.body, "Organized by") {
		t.Errorf("an organization without a name of its own is shown: %s", a.body)
	}
	name := `<b>Fans & "friends"</b>`
	if _, err := s.accounts.Organizations.Change(t.Context(), s.main, account.OrganizationChange{Name: &name}); err != nil {
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

// TestOrganizationLogo checks that rooms without a logo show that of their own organization.
func TestOrganizationLogo(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const browser = "Accept: text/html"
	dot := func(width int) string {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	url := func(image string) string {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(image))
	}
	ours, branded, theirs := s.make("slug", s.main), s.make("slug", s.main), s.make("slug", s.other)
	own, house, later := dot(3), dot(5), dot(7)
	s.do("PATCH", "/v1/rooms/"+branded, `{"brand":{"logo":"`+url(own)+`"}}`).want(http.StatusOK)
	s.get("/r/" + ours + "/logo").want(http.StatusNotFound)
	for _, wrong := range []string{"https://example.com/logo.png", "data:image/png;base64,AAAA", "data:image/svg+xml;base64,PHN2Zy8+"} {
		s.do("PATCH", "/v1/organization", `{"logo":"`+wrong+`"}`).problem(http.StatusBadRequest, "invalid")
	}
	shown := func(room string) string {
		body := s.get("/r/"+room, browser).want(http.StatusOK).body
		found := regexp.MustCompile(`<img src="([^"]+)"`).FindStringSubmatch(body)
		if found == nil {
			return ""
		}
		a := s.get(found[1]).want(http.StatusOK)
		if got := a.header.Get("Content-Type"); got != "image/png" {
			t.Errorf("%s is %s", found[1], got)
		}
		return a.body
	}
	versions := map[string]bool{}
	for _, logo := range []string{house, later} {
		if a := s.do("PATCH", "/v1/organization", `{"logo":"`+url(logo)+`"}`).want(http.StatusOK); !strings.Contains(a.body, `"has_logo":true`) {
			t.Errorf("the organization: %s", a.body)
		}
		for _, path := range []string{"", "/check", "/fair"} {
			body := s.get("/r/"+ours+path, browser).want(http.StatusOK).body
			found := regexp.MustCompile(`src="/r/` + ours + `/logo\?v=([0-9a-f]{16})"`).FindStringSubmatch(body)
			if found == nil {
				t.Fatalf("/r/%s%s has no logo: %s", ours, path, body)
			}
			versions[found[1]] = true
		}
		if shown(ours) != logo || shown(branded) != own || shown(theirs) != "" {
			t.Error("a room shows another logo than it should")
		}
	}
	if len(versions) != 2 {
		t.Errorf("versions %v of two images", versions)
	}
	s.get("/r/" + theirs + "/logo").want(http.StatusNotFound)
	if a := s.do("PATCH", "/v1/organization", `{"logo":""}`).want(http.StatusOK); !strings.Contains(a.body, `"has_logo":false`) || shown(ours) != "" {
		t.Errorf("a logo that was taken away is shown: %s", a.body)
	}
}

// TestReportOrganizer checks that the published report names the organizer.
func TestReportOrganizer(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	slug := s.make("slug", s.other)
	if _, err := s.control.End(t.Context(), s.other, slug); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the report is published", func() bool {
		done, err := s.control.Reports.Publish(t.Context(), s.other, slug)
		return err == nil && <-done == nil
	})
	if a := s.get("/r/"+slug+"/report", "Accept: text/html").want(http.StatusOK); !strings.Contains(a.body, "<dt>Organizer</dt><dd>The others</dd>") {
		t.Errorf("the report does not name the organizer: %.3000s", a.body[strings.Index(a.body, "<header>"):])
	}
}

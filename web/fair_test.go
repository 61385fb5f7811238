package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web/page"
)

// TestFair checks that a page linked from the line says, in every language, what is proven and how to
// check it.
func TestFair(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","beacon":"none","windows":[{"length":"1h"}]}`)
	for _, path := range []string{"/r/sale", "/r/sale/check"} {
		if a := s.get(path, "Accept: text/html"); !strings.Contains(a.body, `href="/r/sale/fair"`) {
			t.Errorf("%s does not link to the page", path)
		}
	}
	heads := map[string]bool{}
	for _, lang := range page.Languages() {
		body := s.get("/r/sale/fair?lang="+string(lang), "Accept: text/html").want(http.StatusOK).body
		for _, want := range []string{`<html lang="` + string(lang) + `"`, `data-beacon="none"`, "proofline-verify audit " + publicURL + "/r/sale", "sale&#43;", "/r/sale/checkpoint", "/r/sale/check"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q", lang, want)
			}
		}
		if strings.Contains(body, "/r/sale/report") {
			t.Errorf("%s: there is a report of a room that has not ended", lang)
		}
		_, head, _ := strings.Cut(body, "<h1>")
		heads[head[:strings.Index(head, "<")]] = true
	}
	if len(heads) != len(page.Languages()) {
		t.Errorf("headings are not translated: %v", heads)
	}
}

// TestAuditReport publishes the audit report of a room once it has ended, and not
// before.
func TestAuditReport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","beacon":"none","time_zone":"Asia/Tokyo","windows":[{"length":"1h"}]}`)
	s.post("/r/sale/join", "").want(http.StatusCreated)
	actor := account.ServerActor(pgroom.MainOrg)
	s.get("/r/sale/report", "Accept: text/html").want(http.StatusNotFound)
	if _, err := s.control.Reports.Publish(t.Context(), actor, "sale"); err != control.ErrNotOver { //nolint:errorlint // not wrapped
		t.Errorf("a room that lives is reported on: %v", err)
	}
	s.post("/v1/rooms/sale/freeze-claims", "").want(http.StatusOK)
	s.post("/v1/rooms/sale/end", "").want(http.StatusOK)
	eventually(t, "all is published, and the report", func() bool {
		done, err := s.control.Reports.Publish(t.Context(), actor, "sale")
		return err == nil && <-done == nil
	})
	a := s.get("/r/sale/report", "Accept: text/html").want(http.StatusOK)
	if !strings.Contains(a.body, "Level 1 of 3") || !strings.Contains(a.body, "the waiting room “sale”") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("report: %v %.500s", a.header, a.body)
	}
	for _, known := range []string{"called visitors could not go in, for ", "1 group was never drawn", "<dd>In the time zone of the event, Asia/Tokyo, with UTC", " JST ("} {
		if !strings.Contains(a.body, known) {
			t.Errorf("the report does not say %q", known)
		}
	}
	if a := s.get("/r/sale/fair", "Accept: text/html").want(http.StatusOK); !strings.Contains(a.body, "/r/sale/report") || !strings.Contains(a.body, "copy: the command above") {
		t.Errorf("the report is not linked: %s", a.body)
	}
	if a := s.get("/r/sale/state").want(http.StatusOK); !strings.Contains(a.body, `"time_zone":"Asia/Tokyo"`) {
		t.Errorf("the state does not say where the event is: %s", a.body)
	}
	if a := s.get("/r/sale", "Accept: text/html").want(http.StatusOK); !strings.Contains(a.body, `class="button" href="/r/sale/fair"`) {
		t.Errorf("the end of the line does not lead to the page: %s", a.body)
	}
}

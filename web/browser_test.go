package web

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/web/page"
)

// browser keeps cookies as a browser does on https, although tests use http.
type browser struct {
	*site
	cookies map[string]string
}

func (s *site) browser() *browser { return &browser{s, map[string]string{}} }

const formType = "Content-Type: application/x-www-form-urlencoded"

// do sends a request with the cookies, checks those that come back, and keeps them.
func (b *browser) do(method, path, body string, headers ...string) answer {
	b.Helper()
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(b.cookies)) {
		pairs = append(pairs, name+"="+b.cookies[name])
	}
	if len(pairs) > 0 {
		headers = append(headers, "Cookie: "+strings.Join(pairs, "; "))
	}
	if method == http.MethodPost && !strings.HasPrefix(body, "{") {
		headers = append([]string{formType}, headers...)
	}
	a := b.site.do(method, path, body, append([]string{"Accept: text/html", "Sec-Fetch-Site: same-origin"}, headers...)...)
	for _, line := range a.header["Set-Cookie"] {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			b.Fatalf("cookie %q: %v", line, err)
		}
		if !strings.HasPrefix(c.Name, "__Host-proofline") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			b.Errorf("%s %s: cookie %q", method, path, line)
		}
		b.cookies[c.Name] = c.Value
	}
	return a
}

func (b *browser) get(path string, headers ...string) answer {
	b.Helper()
	return b.do("GET", path, "", headers...)
}

func (b *browser) post(path, body string, headers ...string) answer {
	b.Helper()
	return b.do("POST", path, body, headers...)
}

// redirected returns the target of a redirect, which must be an uncacheable 303.
func (a answer) redirected() string {
	a.Helper()
	a.want(http.StatusSeeOther)
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Referrer-Policy") != "same-origin" {
		a.Errorf("redirect with headers %v", a.header)
	}
	return a.header.Get("Location")
}

var stateForm = regexp.MustCompile(`<main id="line" [^>]*data-state="([a-z]+)"`)

// state returns the state of a page, and checks the common properties of pages.
func (a answer) state() string {
	a.Helper()
	a.want(http.StatusOK).isPage()
	found := stateForm.FindStringSubmatch(a.body)
	if found == nil {
		a.Fatalf("no state in %s", a.body)
	}
	return found[1]
}

// isPage checks the common properties of pages, including error pages.
func (a answer) isPage() {
	a.Helper()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"Permissions-Policy":          "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
		"Access-Control-Allow-Origin": "", "Access-Control-Expose-Headers": "",
	} {
		if got := a.header.Get(name); got != want {
			a.Errorf("page with %s %q, want %q", name, got, want)
		}
	}
	policy := a.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none';", "script-src 'self';", "style-src 'self';", "base-uri 'none';", "frame-ancestors 'none';", "form-action 'self'"} {
		if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			a.Errorf("page with policy %q, want %s", policy, want)
		}
	}
	for _, inline := range []string{"<style", "style=", "onclick", "javascript:"} {
		if strings.Contains(a.body, inline) {
			a.Errorf("page with %s: %s", inline, a.body)
		}
	}
}

// errorPage checks an error page.
func (a answer) errorPage(status int, kind string) {
	a.Helper()
	a.want(status).isPage()
	if !strings.Contains(a.body, `<main id="error" data-kind="`+kind+`"`) || !strings.Contains(a.body, a.header.Get("X-Request-Id")) {
		a.Errorf("error page, want %s: %s", kind, a.body)
	}
}

// entries returns the number of entries in a room's transcript.
func (s *site) entries(slug string) uint64 {
	s.Helper()
	r, err := s.rooms.Get(s.Context(), slug)
	if err != nil {
		s.Fatal(err)
	}
	return r.Snapshot().Size
}

// inFuture returns a future time in JSON.
func inFuture(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }

// TestStates checks the page in every state that a test can bring a room to.
func TestStates(t *testing.T) {
	t.Parallel()
	s, pass := newTimed(t)
	s.create(fmt.Sprintf(`{"slug":"upcoming","opens":%q}`, inFuture(12*time.Hour)))
	s.create(`{"slug":"waiting","windows":[{"length":"9h"}]}`)
	s.create(fmt.Sprintf(`{"slug":"drawn","starts":%q,"windows":[{"length":"1h"}]}`, inFuture(12*time.Hour)))
	s.create(fmt.Sprintf(`{"slug":"closed","starts":%q,"closes":%q,"windows":[{"length":"1h"}]}`, inFuture(12*time.Hour), inFuture(time.Hour)))
	s.create(`{"slug":"called","windows":[{"length":"1h"}],"outflow":{"per_minute":6000}}`)
	s.create(`{"slug":"missed","windows":[{"length":"1h"}],"outflow":{"per_minute":6000},"claim":"1s"}`)
	state := func(b *browser, slug string) string { return b.get("/r/" + slug).state() }
	expect := func(b *browser, slug, want string) {
		t.Helper()
		eventually(t, slug+" is "+want, func() bool { return state(b, slug) == want })
		fragment := b.get("/r/" + slug + "?fragment=1")
		if fragment.state() != want || !strings.HasPrefix(strings.TrimSpace(fragment.body), "<main") {
			t.Errorf("fragment, want %s: %s", want, fragment.body)
		}
	}
	b := s.browser()
	expect(b, "upcoming", "upcoming")
	for _, slug := range []string{"waiting", "drawn", "closed", "called", "missed"} {
		expect(b, slug, "joinable")
		if to := b.post("/r/"+slug+"/line", "").redirected(); to != "/r/"+slug {
			t.Errorf("after joining to %q", to)
		}
	}
	pass(61 * time.Minute)
	expect(b, "waiting", "waiting")
	expect(b, "drawn", "drawn")
	expect(b, "called", "called")
	expect(b, "closed", "drawn")
	expect(s.browser(), "closed", "closed")
	expect(b, "missed", "missed")
	b.post("/r/called/claim", "").redirected()
	expect(b, "called", "admitted")
	b.post("/r/drawn/leave", "").redirected()
	expect(b, "drawn", "left")
	s.post("/v1/rooms/waiting/pause", "").want(http.StatusOK)
	eventually(t, "the page says the pause", func() bool { return strings.Contains(b.get("/r/waiting").body, " data-paused>") })
	s.post("/v1/rooms/waiting/end", "").want(http.StatusOK)
	expect(b, "waiting", "ended")
	expect(s.browser(), "waiting", "ended")
	for reason, want := range map[fairness.Reason]page.State{
		fairness.NoShow: page.Missed, fairness.Left: page.Left, fairness.Revoked: page.Revoked, fairness.RevokedBot: page.Revoked,
	} {
		st := fairness.Standing{Status: fairness.StatusSkipped, Reason: reason}
		if got := stateOf(&st, nil); got != want {
			t.Errorf("skipped for %s: %s, want %s", reason, got, want)
		}
	}
}

// TestFragmentByTicket asks for a place without cookies.
func TestFragmentByTicket(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"by","windows":[{"length":"1h"}]}`)
	v := newVisitor("by")
	s.post("/r/by/join", v.joinBody()).want(http.StatusCreated)
	a := s.get("/r/by?fragment=1&lang=de&ticket=" + v.ticket)
	if a.state() != "waiting" || !strings.Contains(a.body, `data-ticket="`+v.ticket+`"`) || strings.Contains(a.body, " data-cookie") {
		t.Errorf("fragment %s", a.body)
	}
	if got := a.header["Set-Cookie"]; got != nil {
		t.Errorf("a fragment sets %v", got)
	}
	s.get("/r/by?fragment=1&ticket="+newVisitor("by").ticket).problem(http.StatusNotFound, "unknown-ticket")
	s.get("/r/by?fragment=1&ticket=x").problem(http.StatusBadRequest, "invalid")
	if got := s.get("/r/by?ticket=" + v.ticket).state(); got != "joinable" {
		t.Errorf("a page by ticket, without fragment=1: %s", got)
	}
	b := s.browser()
	b.post("/r/by/line", v.claimBody()).want(http.StatusOK)
	if a := b.get("/r/by?fragment=1"); a.state() != "waiting" || !strings.Contains(a.body, " data-cookie") {
		t.Errorf("fragment with cookie %s", a.body)
	}
	if a := b.get("/r/by/check"); !strings.Contains(a.body, `data-ticket="`+v.ticket+`"`) {
		t.Errorf("check %s", a.body)
	}
	s.get("/r/by/check").want(http.StatusOK).isPage()
}

// TestLanguage prefers the link, then the cookie, then the browser's settings.
func TestLanguage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"lang"}`) // its cookie must differ from the language cookie
	b := s.browser()
	expect := func(path, want string, headers ...string) answer {
		t.Helper()
		a := b.get(path, headers...)
		if !strings.Contains(a.body, `<html lang="`+want+`"`) {
			t.Errorf("%s %v: want %s: %.200s", path, headers, want, a.body)
		}
		return a
	}
	expect("/r/lang", "en")
	expect("/r/lang", "ja", "Accept-Language: ja-JP,ja;q=0.9,en;q=0.5")
	expect("/r/lang", "en", "Accept-Language: tlh")
	expect("/r/lang", "en", "Accept-Language: ;;;q=x")
	expect("/r/lang?lang=xx", "fr", "Accept-Language: fr")
	if len(b.cookies) != 0 {
		t.Errorf("cookies without a choice: %v", b.cookies)
	}
	b.get("/r/lang?lang=ja&fragment=1")
	if len(b.cookies) != 0 {
		t.Errorf("cookies of a fragment: %v", b.cookies)
	}
	if a := expect("/r/lang?lang=ar", "ar", "Accept-Language: fr"); !strings.Contains(a.body, `dir="rtl"`) {
		t.Error("Arabic is not written from right to left")
	}
	expect("/r/lang", "ar", "Accept-Language: fr")
	expect("/r/nothing", "ar")
	if a := b.get("/r/lang?lang=ar"); a.header["Set-Cookie"] != nil {
		t.Errorf("the same language again sets %v", a.header["Set-Cookie"])
	}
	expect("/r/lang/check?lang=de", "de")
	expect("/r/lang", "de")
	b.post("/r/lang/line", "").redirected()
	expect("/r/lang", "de")
	if len(b.cookies) != 2 {
		t.Errorf("cookies %v", b.cookies)
	}
}

// TestRefresh checks that visitors can choose the reload interval of the page.
func TestRefresh(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"again"}`)
	for given, want := range map[string]string{"30": "30", "1": "15", "600": "600", "65000": "600", "99999999": "", "0": "", "-5": "", "x": "", "": ""} {
		got := regexp.MustCompile(`http-equiv="refresh" content="(\d+)"`).FindStringSubmatch(s.get("/r/again?refresh=" + given).body)
		if want == "" && got != nil || want != "" && (got == nil || got[1] != want) {
			t.Errorf("refresh=%s: %v, want %q", given, got, want)
		}
	}
}

// TestErrorPages checks that browsers get error pages, and scripts get problem documents.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(fmt.Sprintf(`{"slug":"soon","opens":%q}`, inFuture(time.Hour)))
	s.create(`{"slug":"over"}`)
	s.post("/v1/rooms/over/end", "").want(http.StatusOK)
	b := s.browser()
	b.get("/r/nothing").errorPage(http.StatusNotFound, "not-found")
	b.get("/r/nothing", "Accept: */*").errorPage(http.StatusNotFound, "not-found")
	b.get("/r/nothing", "Accept: application/json").problem(http.StatusNotFound, "not-found")
	b.get("/r/nothing?fragment=1").problem(http.StatusNotFound, "not-found")
	b.get("/r/NOTHING%22%3E%3Cscript%3E").errorPage(http.StatusNotFound, "not-found")
	b.post("/r/nothing/line", `{}`).problem(http.StatusNotFound, "not-found")
	b.post("/r/nothing/line", "").errorPage(http.StatusNotFound, "not-found")
	early := b.post("/r/soon/line", "")
	early.errorPage(http.StatusConflict, "early")
	if early.header.Get("Retry-After") == "" || !strings.Contains(early.body, `href="/r/soon"`) {
		t.Errorf("early: %v %s", early.header, early.body)
	}
	if a := b.post("/r/soon/line", newVisitor("soon").claimBody()); a.problem(http.StatusConflict, "too-early").Detail == "" || a.header.Get("Retry-After") == "" {
		t.Errorf("early: %v", a.header)
	}
	b.post("/r/over/line", "").errorPage(http.StatusGone, "gone")
	if len(b.cookies) != 0 {
		t.Errorf("refused joins left %v", b.cookies)
	}
	b.get("/r/over/line").errorPage(http.StatusMethodNotAllowed, "refused")
	b.post("/r/over/line", "x", "Content-Type: text/plain").errorPage(http.StatusUnsupportedMediaType, "refused")
	b.post("/r/over/line", strings.Repeat("x", visitorBody+1)).errorPage(http.StatusRequestEntityTooLarge, "refused")
	if a := b.get("/r/over/nothing"); a.status != http.StatusNotFound || !strings.Contains(a.body, `data-kind="not-found"`) || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("mistyped: %d %v", a.status, a.header)
	}
	s.get("/r/over/nothing").problem(http.StatusNotFound, "")
}

// TestPageMethods requests pages with HEAD and OPTIONS, and from other origins.
func TestPageMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"how","brand":{"color":"#aa0000"}}`)
	for _, path := range []string{"/r/how", "/r/how/check", "/r/how/brand.css", "/r/how/line", "/r/how/claim", "/r/how/leave", "/r/how/extend", "/r/how/link", "/r/how/take", "/r/how/logo"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST"} {
			a := s.do(method, path, "", "Origin: https://evil.example.com", "Access-Control-Request-Method: POST")
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: %s", method, path, name)
				}
			}
			if method == "HEAD" && a.body != "" {
				t.Errorf("HEAD %s: %q", path, a.body)
			}
		}
	}
	if a := s.do("HEAD", "/r/how", ""); a.status != http.StatusOK || a.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
	if a := s.get("/r/how", "Accept-Encoding: gzip"); a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Vary") != "Accept-Encoding" || len(a.body) > 6<<10 {
		t.Errorf("compressed: %d bytes, %v", len(a.body), a.header)
	}
}

// TestAssets checks that built files are served as immutable, and no other files are.
func TestAssets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.get("/assets/page.A1.js").want(http.StatusOK)
	if a.body != string(built["page.A1.js"].Data) || a.header.Get("Content-Type") != "text/javascript; charset=utf-8" || a.header.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
		a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("asset %v", a.header)
	}
	if got := a.header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'; connect-src 'self';") {
		t.Errorf("the checker may not read the log: %q", got)
	}
	if z := s.get("/assets/page.A1.js", "Accept-Encoding: br, gzip"); z.header.Get("Content-Encoding") != "gzip" || len(z.body) >= len(a.body) {
		t.Errorf("compressed asset: %d bytes, %v", len(z.body), z.header)
	}
	if z := s.get("/assets/checker.B2.js", "Accept-Encoding: gzip"); z.header.Get("Content-Encoding") != "" || z.body != "check()" {
		t.Errorf("an asset that does not compress: %v", z.header)
	}
	for name, contentType := range map[string]string{"page.C3.css": "text/css; charset=utf-8", "icon.D4.svg": "image/svg+xml"} {
		if got := s.do("HEAD", "/assets/"+name, "").want(http.StatusOK).header.Get("Content-Type"); got != contentType {
			t.Errorf("%s: type %q", name, got)
		}
	}
	for _, name := range []string{"", "page.js", "manifest.json", "page.A1.js.map", "../dist.go", "%2e%2e/dist.go", "page.A1.js/"} {
		s.get("/assets/"+name).problem(http.StatusNotFound, "")
	}
	s.create(`{"slug":"a"}`)
	if a := s.get("/r/a"); !strings.Contains(a.body, `src="/assets/page.A1.js"`) || !strings.Contains(a.body, `href="/assets/page.C3.css"`) {
		t.Errorf("page %s", a.body)
	}
}

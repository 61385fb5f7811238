package web

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"html"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/web/reply"
)

// lineJSON is the response to a join by script.
type lineJSON struct {
	wire.Joined
	Kept bool `json:"kept"`
}

// TestWithoutScripts goes from the link to the shop using only links and forms.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	s, pass := newTimed(t)
	s.create(`{"slug":"plain","windows":[{"length":"1h"}],"outflow":{"per_minute":6000},
		"targets":["https://shop.example.com/sale?from=line","http://localhost:3000/"]}`)
	b := s.browser()
	a := b.get("/r/plain?to=http://localhost:3000/tickets%3Fn=2&lang=de")
	if a.state() != "joinable" || !strings.Contains(a.body, `action="/r/plain/line"`) {
		t.Fatalf("page %s", a.body)
	}
	if got := a.header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "form-action 'self' http://localhost:3000 https://shop.example.com") {
		t.Errorf("policy %q", got)
	}
	if to := b.post("/r/plain/line", "").redirected(); to != "/r/plain" {
		t.Fatalf("to %q", to)
	}
	secret := b.cookies["__Host-proofline-plain"]
	if b.get("/r/plain").state() != "waiting" || len(secret) != 43 {
		t.Fatalf("no place with cookies %v", b.cookies)
	}
	b.post("/r/plain/line", "").redirected()
	b.post("/r/plain/line", "again=1").redirected() // the place is still valid
	if got := b.cookies["__Host-proofline-plain"]; got != secret || s.entries("plain") != 2 {
		t.Errorf("joined again: secret %t, %d entries", got == secret, s.entries("plain"))
	}
	b.post("/r/plain/claim", "").errorPage(http.StatusConflict, "early")
	pass(time.Hour)
	eventually(t, "it is the visitor's turn", func() bool { return b.get("/r/plain").state() == "called" })
	if a := b.get("/r/plain"); !strings.Contains(a.body, "localhost:3000") {
		t.Errorf("the page does not say where it leads: %s", a.body)
	}
	location := b.post("/r/plain/claim", "").redirected()
	prefix, token, ok := strings.Cut(location, "&proofline_pass=")
	if prefix != "http://localhost:3000/tickets?n=2" || !ok {
		t.Fatalf("to %q", location)
	}
	if _, err := jwt.ParseWithClaims(token, jwt.MapClaims{}, s.keyOf("plain"), jwt.WithTimeFunc(s.now)); err != nil {
		t.Errorf("pass %q: %v", token, err)
	}
	if b.get("/r/plain").state() != "admitted" {
		t.Error("not admitted")
	}
	if again := b.post("/r/plain/claim", "").redirected(); !strings.HasPrefix(again, prefix) {
		t.Errorf("claimed again: to %q", again)
	}
	b.post("/r/plain/leave", "").errorPage(http.StatusGone, "gone")
	other := s.browser()
	other.post("/r/plain/line", "").redirected()
	pass(time.Hour)
	eventually(t, "the other is called", func() bool { return other.get("/r/plain").state() == "called" })
	if location := other.post("/r/plain/claim", "").redirected(); !strings.HasPrefix(location, "https://shop.example.com/sale?from=line&proofline_pass=ey") {
		t.Errorf("without a wish to %q", location)
	}
}

// keyOf returns the public key of a room's passes.
func (s *site) keyOf(slug string) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		for _, k := range decode[struct{ Keys []session.PassKey }](s.get("/r/" + slug + "/jwks.json").want(http.StatusOK)).Keys {
			if k.ID == t.Header["kid"] {
				x, err := base64.RawURLEncoding.DecodeString(k.X)
				return ed25519.PublicKey(x), err
			}
		}
		return nil, fmt.Errorf("no key %v", t.Header["kid"])
	}
}

// TestLine joins by script: from two tabs, with a link, and again.
func TestLine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"tabs","windows":[{"length":"1h"}]}`)
	b, first, second := s.browser(), newVisitor("tabs"), newVisitor("tabs")
	a := b.post("/r/tabs/line", first.claimBody())
	got := decode[lineJSON](a.want(http.StatusCreated))
	if got.Ticket != first.ticket || got.Kept || b.cookies["__Host-proofline-tabs"] != first.secret || a.header.Get("Cache-Control") != "no-store" || strings.Contains(a.body, first.secret) {
		t.Errorf("joined as %+v", got)
	}
	s.checkReceipt("tabs", got.Index, got.Ticket, got.Receipt)
	for _, body := range []string{second.claimBody(), first.claimBody(), `{}`, `{"again":true,"secret":"` + second.secret + `"}`} {
		if again := decode[lineJSON](b.post("/r/tabs/line", body).want(http.StatusOK)); again.Ticket != first.ticket || !again.Kept || again.Index != got.Index {
			t.Errorf("%s: joined again as %+v", body, again)
		}
	}
	b.post("/r/tabs/link", "").errorPage(http.StatusUnsupportedMediaType, "refused")
	elsewhere := s.browser()
	elsewhere.cookies["__Host-proofline-tabs"] = newVisitor("tabs").secret // of a join that was never recorded
	if resumed := decode[lineJSON](elsewhere.post("/r/tabs/line", first.claimBody()).want(http.StatusOK)); resumed.Ticket != first.ticket || resumed.Kept || elsewhere.cookies["__Host-proofline-tabs"] != first.secret {
		t.Errorf("resumed as %+v", resumed)
	}
	if size := s.entries("tabs"); size != 2 {
		t.Errorf("%d entries, want 2", size)
	}
	if a := b.post("/r/tabs/leave", `{}`).want(http.StatusOK); a.body != "{}" {
		t.Errorf("left: %s", a.body)
	}
	b.post("/r/tabs/leave", `{}`).want(http.StatusOK)
	elsewhere.post("/r/tabs/leave", "").redirected()
	if kept := decode[lineJSON](b.post("/r/tabs/line", second.claimBody()).want(http.StatusOK)); !kept.Kept || kept.Ticket != first.ticket {
		t.Errorf("joined after leaving: %+v", kept)
	}
	anew := decode[lineJSON](b.post("/r/tabs/line", `{"secret":"`+second.secret+`","again":true}`).want(http.StatusCreated))
	if anew.Ticket != second.ticket || anew.Kept || b.cookies["__Host-proofline-tabs"] != second.secret {
		t.Errorf("joined again as %+v", anew)
	}
	if size := s.entries("tabs"); size != 4 {
		t.Errorf("%d entries, want 4: policy, arrival, skip, arrival", size)
	}
	if kept := s.browser().post("/r/tabs/line", `{}`).want(http.StatusCreated); decode[lineJSON](kept).Ticket == second.ticket {
		t.Error("another visitor has the same ticket")
	}
}

// TestCookiesBlocked goes through the line with the secret kept by the script.
func TestCookiesBlocked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"none","windows":[{"length":"300ms"}],"outflow":{"per_minute":6000}}`)
	v, w := newVisitor("none"), newVisitor("none")
	for _, v := range []visitor{v, w} {
		s.browser().post("/r/none/line", v.claimBody()).want(http.StatusCreated)
	}
	eventually(t, "both are called", func() bool {
		return s.get("/r/none?fragment=1&ticket="+v.ticket).state() == "called" && s.get("/r/none?fragment=1&ticket="+w.ticket).state() == "called"
	})
	if a := s.browser().post("/r/none/claim", v.claimBody()).want(http.StatusOK); a.body != "{\"location\":null}\n" {
		t.Errorf("claimed: %s", a.body)
	}
	if to := `{"secret":"` + v.secret + `","to":"https://evil.example.com"}`; s.browser().post("/r/none/claim", to).problem(http.StatusBadRequest, "invalid").Errors[0].Field != "to" {
		t.Error("a target of a room without targets")
	}
	s.browser().post("/r/none/leave", w.claimBody()).want(http.StatusOK)
	s.browser().post("/r/none/claim", w.claimBody()).problem(http.StatusGone, "expired")
	s.browser().post("/r/none/leave", v.claimBody()).problem(http.StatusGone, "settled")
	s.browser().post("/r/none/link", `{}`).problem(http.StatusForbidden, "no-place")
	s.codeOf("none", s.browser().post("/r/none/link", v.claimBody()))
}

// TestExtendOnPage asks for more time with the form of the page, and by script.
func TestExtendOnPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"more","windows":[{"length":"200ms"}],"outflow":{"per_minute":6000},"claim":"1h","extend":"30m"}`)
	s.create(`{"slug":"later","windows":[{"length":"1h"}],"extend":"30m"}`)
	waits := s.browser()
	waits.post("/r/later/line", "").redirected()
	if a := waits.get("/r/later"); strings.Contains(a.body, "/r/later/extend") || !strings.Contains(a.body, "30 minutes more") {
		t.Errorf("before the call: %s", a.body)
	}
	waits.post("/r/later/extend", "").errorPage(http.StatusConflict, "early")
	called := func(b *browser) {
		b.post("/r/more/line", "").redirected()
		eventually(t, "the visitor is called", func() bool { return b.get("/r/more").state() == "called" })
		if a := b.get("/r/more"); !strings.Contains(a.body, `action="/r/more/extend"`) || !strings.Contains(a.body, "30 minutes more") {
			t.Errorf("called: %s", a.body)
		}
	}
	left := func(b *browser) time.Duration {
		a := b.get("/r/more")
		if strings.Contains(a.body, "/extend") || strings.Contains(a.body, "30 minutes more") {
			t.Errorf("the page still offers more time: %s", a.body)
		}
		ms, err := time.ParseDuration(regexp.MustCompile(`data-left="(\d+)"`).FindStringSubmatch(a.body)[1] + "ms")
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	plain, script := s.browser(), s.browser()
	called(plain)
	for range 2 {
		if to := plain.post("/r/more/extend", "").redirected(); to != "/r/more" {
			t.Errorf("redirected to %q", to)
		}
		if got := left(plain); got < 85*time.Minute || got > 90*time.Minute {
			t.Errorf("%s left", got)
		}
	}
	called(script)
	if a := script.post("/r/more/extend", `{}`).want(http.StatusOK); a.body != "{}" || left(script) < 85*time.Minute {
		t.Errorf("by script: %s", a.body)
	}
	plain.post("/r/more/claim", "").redirected()
	plain.post("/r/more/extend", "").errorPage(http.StatusGone, "gone")
}

// TestPartyOnPage joins for several seats with the form of the page, and by script.
func TestPartyOnPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"party","windows":[{"length":"1h"}],"party":4}`)
	s.create(`{"slug":"single","windows":[{"length":"1h"}]}`)
	if a := s.browser().get("/r/single"); strings.Contains(a.body, "<select") {
		t.Errorf("a choice of seats in a room without parties: %s", a.body)
	}
	if a := s.browser().get("/r/party"); strings.Count(a.body, "<option>") != 4 {
		t.Errorf("no choice of four: %s", a.body)
	}
	for _, wrong := range []string{"seats=5", "seats=0", "seats=-1", "seats=two", "seats=1.5"} {
		s.browser().post("/r/party/line", wrong).errorPage(http.StatusBadRequest, "refused")
	}
	for _, wrong := range []string{`{"seats":5}`, `{"seats":0}`, `{"seats":"2"}`, `{"seats":1.5}`} {
		s.browser().post("/r/party/line", wrong).problem(http.StatusBadRequest, "invalid")
	}
	s.browser().post("/r/single/line", "seats=2").errorPage(http.StatusBadRequest, "refused")
	if n := s.entries("party") + s.entries("single"); n != 2 {
		t.Fatalf("%d entries, want 2", n)
	}
	for body, want := range map[string]string{
		"seats=3": "3 seats", "": "1 seat.", "seats=": "1 seat.", `{"seats":2}`: "2 seats", `{"seats":null}`: "1 seat.", `{}`: "1 seat.",
	} {
		b := s.browser()
		if a := b.post("/r/party/line", body); a.status != http.StatusSeeOther && a.status != http.StatusCreated {
			t.Errorf("%q: status %d, %s", body, a.status, a.body)
		}
		if a := b.get("/r/party"); !strings.Contains(a.body, "Your place in line is for "+want) {
			t.Errorf("%q, want %s: %s", body, want, a.body)
		}
	}
}

// TestNoTrace sends invalid requests and checks that they leave no entries in the transcript.
func TestNoTrace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"trace","windows":[{"length":"1h"}]}`)
	s.create(`{"slug":"other","windows":[{"length":"1h"}]}`)
	v := newVisitor("trace")
	s.browser().post("/r/trace/line", v.claimBody()).want(http.StatusCreated)
	before := s.entries("trace")
	foreign := newVisitor("other")
	s.browser().post("/r/other/line", foreign.claimBody()).want(http.StatusCreated)
	for _, c := range []struct {
		secret string // in cookie and body
		status int
		name   string
	}{
		{"", http.StatusForbidden, "no-place"},
		{newVisitor("trace").secret, http.StatusNotFound, "unknown-ticket"},
		{foreign.secret, http.StatusNotFound, "unknown-ticket"},
		{v.secret[1:], http.StatusForbidden, "no-place"},
		{v.secret + "A", http.StatusForbidden, "no-place"},
		{strings.Repeat("=", 43), http.StatusForbidden, "no-place"},
		{v.ticket, http.StatusForbidden, "no-place"},
	} {
		b := s.browser()
		b.cookies["__Host-proofline-trace"] = c.secret
		b.cookies["__Host-proofline-other"] = v.secret // the cookie of another room does not count
		for _, action := range []string{"claim", "extend", "leave", "link"} {
			b.post("/r/trace/"+action, `{}`).problem(c.status, c.name)
		}
		kind := map[int]string{http.StatusForbidden: "refused", http.StatusNotFound: "not-found"}[c.status]
		b.post("/r/trace/claim", "").errorPage(c.status, kind)
		b.post("/r/trace/leave", "").errorPage(c.status, kind)
		if got := b.get("/r/trace").state(); got != "joinable" {
			t.Errorf("secret %q: the page is %s", c.secret, got)
		}
	}
	for _, body := range []string{
		`{"secret":"x"}`, `{"secret":"` + v.secret + `="}`, `{"secret":7}`, `{"secret":["` + v.secret + `"]}`, `{"again":"yes"}`, `{"ticket":"` + v.ticket + `"}`,
		`{"secret":"` + v.secret + `"}{}`, `{"secret":`, `{"to":{}}`,
	} {
		for _, action := range []string{"line", "claim", "extend", "leave", "link"} {
			if a := s.browser().post("/r/trace/"+action, body); strings.Contains(a.body, v.secret) {
				t.Errorf("%s: the answer has the secret", body)
			} else {
				a.problem(http.StatusBadRequest, "invalid")
			}
		}
	}
	s.browser().post("/r/trace/line", "again=%zz").errorPage(http.StatusBadRequest, "refused")
	s.browser().post("/r/trace/claim", v.claimBody()).problem(http.StatusConflict, "not-called")
	if after := s.entries("trace"); after != before {
		t.Errorf("%d entries became %d", before, after)
	}
}

// TestCrossSite sends requests that a page of another site could make a visitor's browser send.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"site","windows":[{"length":"1h"}]}`)
	b, v := s.browser(), newVisitor("site")
	b.post("/r/site/line", v.claimBody()).want(http.StatusCreated)
	before := s.entries("site")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example.org"},
		{"Sec-Fetch-Site: same-site", "Origin: https://shop.example.com"},
		{"Sec-Fetch-Site: ", "Origin: https://evil.example.org"},
		{"Sec-Fetch-Site: ", "Origin: null"},
		{"Sec-Fetch-Site: cross-site"},
	} {
		for _, action := range []string{"line", "claim", "extend", "leave", "link"} {
			b.post("/r/site/"+action, "", headers...).errorPage(http.StatusForbidden, "refused")
			b.post("/r/site/"+action, `{}`, headers...).problem(http.StatusForbidden, "cross-origin")
			stranger := s.browser()
			stranger.post("/r/site/"+action, newVisitor("site").claimBody(), headers...).problem(http.StatusForbidden, "cross-origin")
			if len(stranger.cookies) != 0 {
				t.Errorf("%s %v: cookies %v", action, headers, stranger.cookies)
			}
		}
	}
	if after := s.entries("site"); after != before || b.get("/r/site").state() != "waiting" {
		t.Errorf("%d entries became %d", before, after)
	}
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: same-origin", "Origin: " + publicURL}, {"Sec-Fetch-Site: none"}, {"Sec-Fetch-Site: ", "Origin: " + publicURL}, {"Sec-Fetch-Site: ", "Origin: " + s.url}, {"Sec-Fetch-Site: "},
	} {
		b.post("/r/site/line", `{}`, headers...).want(http.StatusOK)
	}
}

// TestOpenRedirect checks that no kind of link redirects to foreign sites.
func TestOpenRedirect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"lead","windows":[{"length":"300ms"}],"outflow":{"per_minute":6000},"targets":["https://shop.example.com/sale"]}`)
	const home = "https://shop.example.com/sale?proofline_pass="
	b := s.browser()
	b.post("/r/lead/line", "").redirected()
	eventually(t, "it is the visitor's turn", func() bool { return b.get("/r/lead").state() == "called" })
	evil := []string{
		"https://evil.example.org", "//evil.example.org", `/\evil.example.org`, "https://shop.example.com", "https://shop.example.com/sales", "https://shop.example.com.evil.example.org/sale",
		"https://shop.example.com@evil.example.org/sale", "https://shop.example.com/sale/../admin", "https://shop.example.com/sale/%2e%2e/admin", "http://shop.example.com/sale",
		"javascript:alert(1)", "https://shop.example.com/sale\r\nSet-Cookie: a=b", " ",
	}
	before := s.entries("lead")
	for _, to := range evil {
		b.post("/r/lead/claim", "to="+url.QueryEscape(to)).errorPage(http.StatusBadRequest, "refused")
		b.post("/r/lead/claim", fmt.Sprintf(`{"to":%q}`, to)).problem(http.StatusBadRequest, "invalid")
		b.get("/r/lead?to=" + url.QueryEscape(to)).state()
	}
	if len(b.cookies) != 1 || s.entries("lead") != before {
		t.Errorf("cookies %v, %d entries before and %d after", b.cookies, before, s.entries("lead"))
	}
	for _, to := range evil {
		b.cookies["__Host-proofline.to.lead"] = base64.RawURLEncoding.EncodeToString([]byte(to))
		if got := b.post("/r/lead/claim?to="+url.QueryEscape(to), "").redirected(); !strings.HasPrefix(got, home) {
			t.Errorf("to %q: redirected to %q", to, got)
		}
	}
	delete(b.cookies, "__Host-proofline.to.lead")
	got := decode[map[string]string](b.post("/r/lead/claim", `{"to":"https://shop.example.com/sale/7?size=L&proofline_pass=forged"}`).want(http.StatusOK))["location"]
	if !strings.HasPrefix(got, "https://shop.example.com/sale/7?size=L&proofline_pass=ey") || strings.Contains(got, "forged") {
		t.Errorf("redirected to %q", got)
	}
}

// TestLooks checks the organizer's colours and logo, and that hidden data in them is not published.
func TestLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	picture, place := dot(t, ""), "48.2082 N, 16.3738 E"
	logo := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(picture))
	s.create(`{"slug":"looks","title":"<script>alert(1)</script>"}`)
	for _, name := range []string{"brand.css", "logo"} {
		s.get("/r/looks/"+name, "Accept: application/json").problem(http.StatusNotFound, "")
	}
	for _, c := range []struct{ body, fields string }{
		{`{"brand":{"color":"red;}body{display:none","background":"#12","logo":"data:image/svg+xml;base64,PHN2Zz4="}}`, "brand.logo brand.color brand.background"},
		{`{"targets":["javascript:alert(1)","https://a.example.com; script-src *"],"brand":{"font":"x"}}`, "targets[0] targets[1] brand.font"},
		{`{"targets":"x","brand":[]}`, "targets brand"},
	} {
		var fields []string
		for _, e := range s.do("PATCH", "/v1/rooms/looks", c.body).problem(http.StatusBadRequest, "invalid").Errors {
			fields = append(fields, e.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: problems with %s, want %s", c.body, got, c.fields)
		}
	}
	shown := s.do("PATCH", "/v1/rooms/looks", `{"brand":{"color":"#c2185b","logo":"`+logo+`"},"targets":["https://shop.example.com"]}`).want(http.StatusOK)
	if !strings.Contains(shown.body, logo) || !strings.Contains(shown.body, `"targets":["https://shop.example.com"]`) {
		t.Errorf("shown %s", shown.body)
	}
	a := s.get("/r/looks")
	if a.state() != "joinable" || !strings.Contains(a.body, `<img src="/r/looks/logo?v=2" alt="">`) || !strings.Contains(a.body, `href="/r/looks/brand.css?v=2"`) || strings.Contains(a.body, "<script>") {
		t.Errorf("page %s", a.body)
	}
	css := s.get("/r/looks/brand.css?v=2").want(http.StatusOK)
	if !strings.Contains(css.body, "#c2185b") || css.header.Get("Content-Type") != "text/css; charset=utf-8" || css.header.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("colours %v %s", css.header, css.body)
	}
	shownLogo := s.get("/r/looks/logo").want(http.StatusOK)
	if shownLogo.body != picture || shownLogo.header.Get("Content-Type") != "image/png" || shownLogo.header.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" {
		t.Errorf("logo %v", shownLogo.header)
	}
	large := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(dot(t, place+strings.Repeat("x", 64<<10-len(picture)-len(place)-12))))
	dark := s.do("PATCH", "/v1/rooms/looks", `{"brand":{"logo":"`+large+`","dark":{"logo":"`+large+`"}}}`).want(http.StatusOK)
	if strings.Contains(dark.body, large) || strings.Count(dark.body, logo) != 2 {
		t.Errorf("metadata is kept: %s", dark.body)
	}
	if a := s.get("/r/looks/logo?scheme=dark&v=3").want(http.StatusOK); a.body != picture {
		t.Errorf("logo of the dark: %q", a.body)
	}
	if a := s.get("/r/looks"); !strings.Contains(a.body, `srcset="/r/looks/logo?scheme=dark&amp;v=3"`) || strings.Contains(a.body, "brand.css") {
		t.Errorf("page %s", a.body)
	}
}

// dot returns a PNG of one pixel, with the text in its metadata unless it is empty.
func dot(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	if text == "" {
		return b.String()
	}
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), "tEXt"+text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	const head = 33
	return b.String()[:head] + string(chunk) + b.String()[head:]
}

// TestTexts checks that an organizer's texts are escaped and in the visitor's language or the room's, and
// that only the room's languages are offered.
func TestTexts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const attack = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	text, err := json.Marshal(map[string]any{"brand": map[string]any{
		"languages": []string{"de", "fr"},
		"texts": map[string]any{
			"de": map[string]string{
				"headline": "H" + attack, "intro": "I" + attack, "help": "A" + attack, "footer": "F" + attack,
				"help_url": "mailto:help@example.com", "privacy_url": "https://example.com/?a=" + url.QueryEscape(attack), "imprint_url": "https://example.com/imprint",
			},
			"fr": map[string]string{"headline": "Bonjour"},
		},
		"css": "h2 { gap: 0 }", "font": "serif",
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.create(`{"slug":"texts"}`)
	s.do("PATCH", "/v1/rooms/texts", string(text)).want(http.StatusOK)
	escaped := html.EscapeString(attack)
	for _, c := range []struct {
		accept, path string
		want         []string
	}{
		{"en", "/r/texts", []string{`<html lang="de"`, "H" + escaped, "I" + escaped, "A" + escaped, "F" + escaped, `href="mailto:help@example.com"`, `href="https://example.com/imprint"`}},
		{"fr", "/r/texts", []string{`<html lang="fr"`, `<p class="headline"><bdi lang="fr">Bonjour</bdi></p>`, `<p class="intro"><bdi lang="de">I`}},
		{"fr", "/r/texts?lang=de", []string{`<html lang="de"`}},
		{"fr", "/r/texts?lang=en", []string{`<html lang="fr"`}},
		{"en", "/r/texts/check", []string{`<html lang="de"`, "H" + escaped, "F" + escaped}},
	} {
		a := s.get(c.path, "Accept: text/html", "Accept-Language: "+c.accept).want(http.StatusOK)
		for _, want := range c.want {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s in %s has no %s: %s", c.path, c.accept, want, a.body)
			}
		}
		if strings.Contains(a.body, "<script>alert") || strings.Contains(a.body, "<img src=x") || strings.Contains(a.body, "English") || strings.Contains(a.body, "ZgotmplZ") {
			t.Errorf("%s in %s: %s", c.path, c.accept, a.body)
		}
	}
	fails := s.get("/r/texts/nothing", "Accept: text/html", "Accept-Language: fr").want(http.StatusNotFound)
	if strings.Contains(fails.body, "<script>alert") {
		t.Errorf("error page: %s", fails.body)
	}
	for range 2 { // read, and remembered
		css := s.get("/r/texts/brand.css").want(http.StatusOK)
		if !strings.Contains(css.body, "body h2{gap: 0}") || !strings.Contains(css.body, "ui-serif") {
			t.Errorf("looks: %s", css.body)
		}
	}
	s.do("PATCH", "/v1/rooms/texts", `{"brand":{"css":"h2{gap:1rem}"}}`).want(http.StatusOK)
	if css := s.get("/r/texts/brand.css").want(http.StatusOK); !strings.Contains(css.body, "gap: 1rem") || strings.Contains(css.body, "serif") {
		t.Errorf("new looks: %s", css.body)
	}
}

// TestNotBuilt checks that pages without built assets work, and that the log says so at once.
func TestNotBuilt(t *testing.T) {
	t.Parallel()
	for name, assets := range map[string]fstest.MapFS{
		"assets are not built": {},
		"cannot load assets":   {"manifest.json": {Data: []byte(`{"page.js":"page.js"}`)}},
		"cannot load assets: ": {"manifest.json": {Data: []byte(`not JSON`)}},
	} {
		log := &safeBuffer{}
		s := newSite(t, func(o *Options) { o.Assets, o.Log = assets, slog.New(slog.NewTextHandler(log, nil)) })
		if !strings.Contains(log.String(), name) {
			t.Errorf("log %q, want %s", log, name)
		}
		s.create(`{"slug":"bare"}`)
		if got := s.browser().get("/r/bare").state(); got != "joinable" {
			t.Errorf("page is %s", got)
		}
		s.get("/assets/page.js").problem(http.StatusNotFound, "")
	}
}

// TestPageSize limits the size of pages, in the language with the most bytes per letter.
func TestPageSize(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"size","windows":[{"length":"1h"}]}`)
	b := s.browser()
	b.post("/r/size/line", "").redirected()
	a := b.get("/r/size?lang=ja", "Accept-Encoding: gzip").want(http.StatusOK)
	if n := len(a.body); n == 0 || n > 8<<10 {
		t.Errorf("%d bytes", n)
	}
}

// TestWithParameter checks that our pass replaces any in the URL, and that the rest stays unchanged.
func TestWithParameter(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                            "proofline_pass=our+own",
		"b=2&a=%20&a=+":               "b=2&a=%20&a=+&proofline_pass=our+own",
		"proofline_pass=x":            "proofline_pass=our+own",
		"a=1&proofline_pass=x&b=;%zz": "a=1&b=;%zz&proofline_pass=our+own",
		"a&proofline_pass":            "a&proofline_pass=our+own",
		"proofline%5fpass=x&":         "proofline_pass=our+own",
		"proofline_pass=%zz&a=1":      "a=1&proofline_pass=our+own", // net/url ignores it, but connectors do not
		"proofline_pass=x;y":          "proofline_pass=our+own",     // likewise
		"%zz=1&proofline_pass2=x":     "%zz=1&proofline_pass2=x&proofline_pass=our+own",
	} {
		got := reply.WithParameter(url.URL{Scheme: "https", Host: "shop.example.com", Path: "/a", RawQuery: query}, passParameter, "our own")
		if got.String() != "https://shop.example.com/a?"+want {
			t.Errorf("%q: %s", query, got.String())
		}
	}
}

// codeOf returns the transfer code in the response's link.
func (s *site) codeOf(slug string, a answer) string {
	s.Helper()
	var made struct {
		Link    string
		Seconds int
	}
	if err := json.Unmarshal([]byte(a.want(http.StatusOK).body), &made); err != nil {
		s.Fatal(err)
	}
	code, ok := strings.CutPrefix(made.Link, publicURL+"/r/"+slug+"#t=")
	if !ok || len(code) != 22 || made.Seconds != 600 {
		s.Errorf("made %+v", made)
	}
	return code
}

// TestTake moves a place to another browser, once, and only if that has no place.
func TestTake(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"taken","windows":[{"length":"1h"}]}`)
	s.create(`{"slug":"other","windows":[{"length":"1h"}]}`)
	b, v := s.browser(), newVisitor("taken")
	b.post("/r/taken/line", v.claimBody()).want(http.StatusCreated)
	earlier, code := s.codeOf("taken", b.post("/r/taken/link", `{}`)), s.codeOf("taken", b.post("/r/taken/link", `{}`))
	body := `{"code":"` + code + `"}`
	type took struct {
		Ticket, Secret string
		Kept           bool
	}
	settled, w := s.browser(), newVisitor("taken")
	settled.post("/r/taken/line", w.claimBody()).want(http.StatusCreated)
	if got := decode[took](settled.post("/r/taken/take", body).want(http.StatusOK)); got.Ticket != w.ticket || !got.Kept || got.Secret != "" {
		t.Errorf("a browser with a place takes %+v", got)
	}
	for path, body := range map[string]string{"/r/taken/take": `{"code":"` + earlier + `"}`, "/r/other/take": body} {
		s.browser().post(path, body).problem(http.StatusGone, "transfer-over")
	}
	for _, body := range []string{`{}`, `{"code":""}`, `{"code":"` + code[1:] + `"}`, `{"code":"` + v.secret + `"}`} {
		s.browser().post("/r/taken/take", body).problem(http.StatusGone, "transfer-over")
	}
	elsewhere := s.browser()
	elsewhere.post("/r/taken/take", "").errorPage(http.StatusUnsupportedMediaType, "refused")
	if got := decode[took](elsewhere.post("/r/taken/take", body).want(http.StatusOK)); got.Ticket != v.ticket || got.Secret != v.secret || got.Kept || elsewhere.cookies["__Host-proofline-taken"] != v.secret {
		t.Errorf("took %+v", got)
	}
	s.browser().post("/r/taken/take", body).problem(http.StatusGone, "transfer-over")
	if size := s.entries("taken"); size != 3 {
		t.Errorf("%d entries, want 3: policy and two arrivals", size)
	}
}

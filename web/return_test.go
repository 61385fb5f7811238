package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/session"
)

// returnKey is the part of the reply about a room's return key.
func (s *site) returnKey(slug string) [session.ReturnKeySize]byte {
	s.Helper()
	r, err := s.rooms.Get(s.Context(), slug)
	if err != nil {
		s.Fatal(err)
	}
	return r.PassKeys.ReturnKey()
}

// signedTo signs a return URL like a connector (connector/rules/FORMAT.md).
func signedTo(key [session.ReturnKeySize]byte, address, to string) string {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte("proofline-to/v1\n" + address + "\n" + to))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// wayBack has the parameters of a link.
func wayBack(to, sig string) string {
	return url.Values{"to": {to}, "to_sig": {sig}}.Encode()
}

// TestSignedReturn tries to get a pass to pages that no connector has signed, with links, forms, cookies and
// scripts.
func TestSignedReturn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"lead","windows":[{"length":"300ms"}],"outflow":{"per_minute":6000},"signed_return":true,
		"targets":["https://shop.example.com/tickets","https://shop.example.com/"]}`)
	s.create(`{"slug":"other",` + quick + `}`)
	const (
		first  = "https://shop.example.com/tickets"
		page   = "https://shop.example.com/tickets/7?row=2&seat=a%20b"
		beyond = "https://shop.example.com/out?url=https%3A%2F%2Fevil.example.net"
		cookie = "__Host-proofline.to.lead"
	)
	key, address := s.returnKey("lead"), publicURL+"/r/lead"
	sig := signedTo(key, address, page)
	b := s.browser()
	b.post("/r/lead/line", "").redirected()
	eventually(t, "it is the visitor's turn", func() bool { return b.get("/r/lead").state() == "called" })
	led := func(query, body string) string {
		t.Helper()
		to, _, _ := strings.Cut(strings.Replace(b.post("/r/lead/claim"+query, body).redirected(), "&proofline_pass=", "?proofline_pass=", 1), "?proofline_pass=")
		return to
	}
	forged := map[string]string{
		"no signature": wayBack(beyond, ""), "that of another page": wayBack(beyond, sig), "another room's": wayBack(beyond, signedTo(s.returnKey("other"), address, beyond)),
		"of another room": wayBack(beyond, signedTo(key, publicURL+"/r/other", beyond)), "cut": wayBack(page, sig[:21]), "longer": wayBack(page, sig+"A"), "with a line break": wayBack(page, sig[:3]+"\n"+sig[3:]),
		"the right one second": wayBack(page, "AAAAAAAAAAAAAAAAAAAAAA") + "&to_sig=" + sig, "the page second": wayBack(beyond, sig) + "&" + url.Values{"to": {page}}.Encode(),
		"encoded again": wayBack(url.QueryEscape(page), sig), "another encoding": wayBack(strings.Replace(page, "%20", "+", 1), sig), "another name": url.Values{"to": {page}, "To_Sig": {sig}}.Encode(),
	}
	for name, query := range forged {
		b.get("/r/lead?" + query).state()
		if _, ok := b.cookies[cookie]; ok {
			t.Errorf("%s: kept %q", name, b.cookies[cookie])
		}
		delete(b.cookies, cookie)
		if to := led("?"+query, ""); to != first {
			t.Errorf("%s: a link leads to %q", name, to)
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if values.Get("to") == url.QueryEscape(page) {
			continue // not a target, and refused as before
		}
		if to := led("", query); to != first {
			t.Errorf("%s: a form leads to %q", name, to)
		}
		script := decode[map[string]string](b.post("/r/lead/claim", fmt.Sprintf(`{"to":%q,"to_sig":%q}`, values.Get("to"), values.Get("to_sig"))).want(http.StatusOK))["location"]
		if !strings.HasPrefix(script, first+"?proofline_pass=ey") {
			t.Errorf("%s: a script is sent to %q", name, script)
		}
	}
	for name, kept := range map[string]string{"before there were signatures": beyond, "a wrong one": beyond + "\n" + sig, "two": beyond + "\n" + sig + "\n" + sig, "cut": page + "\n" + sig[:4]} {
		b.cookies[cookie] = base64.RawURLEncoding.EncodeToString([]byte(kept))
		if to := led("", ""); to != first {
			t.Errorf("cookie, %s: leads to %q", name, to)
		}
	}
	delete(b.cookies, cookie)

	signed := "?" + wayBack(page, sig)
	if to := led(signed, ""); to != page {
		t.Errorf("a signed link leads to %q", to)
	}
	if to := led("", wayBack(page, sig)); to != page {
		t.Errorf("a signed form leads to %q", to)
	}
	b.get("/r/lead" + signed).state()
	b.get("/r/lead?" + wayBack(beyond, "")).state() // a stranger's link changes nothing
	if to := led("", ""); to != page {
		t.Errorf("the saved return URL leads to %q", to)
	}
	delete(b.cookies, cookie)
	s.do("PATCH", "/v1/rooms/lead", `{"signed_return":false}`).want(http.StatusOK)
	b.get("/r/lead?" + wayBack(beyond, strings.Repeat("x", 5000))).state() // no signature is that long
	if to := led("", ""); to != beyond || len(b.cookies[cookie]) > 200 {
		t.Errorf("without signatures: leads to %q by a cookie of %d bytes", to, len(b.cookies[cookie]))
	}
}

// TestSignedReturnOfApps: the API for apps accepts the signature with the URL.
func TestSignedReturnOfApps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"app","signed_return":true,"targets":["https://shop.example.com/"],` + quick + `}`)
	const page = "https://shop.example.com/tickets/7"
	v := newVisitor("app")
	s.post("/r/app/join", v.joinBody()).want(http.StatusCreated)
	claim := func(more string) answer {
		return s.post("/r/app/tickets/"+v.ticket+"/claim", `{"secret":"`+v.secret+`"`+more+`}`)
	}
	eventually(t, "it is the visitor's turn", func() bool { return claim("").status == http.StatusOK })
	sig := signedTo(s.returnKey("app"), publicURL+"/r/app", page)
	for more, want := range map[string]string{
		`,"to":"` + page + `","to_sig":"` + sig + `"`:     page,
		`,"to":"` + page + `"`:                            "https://shop.example.com/",
		`,"to":"` + page + `","to_sig":null`:              "https://shop.example.com/",
		`,"to":"` + page + `7","to_sig":"` + sig + `"`:    "https://shop.example.com/",
		`,"to":"` + page + `","to_sig":"` + sig[1:] + `"`: "https://shop.example.com/",
		`,"to_sig":"` + sig + `"`:                         "https://shop.example.com/",
	} {
		if got := decode[map[string]any](claim(more).want(http.StatusOK))["location"]; !strings.HasPrefix(fmt.Sprint(got), want+"?proofline_pass=ey") {
			t.Errorf("%s: redirected to %v, want %s", more, got, want)
		}
	}
	claim(`,"to":"https://evil.example.net/","to_sig":"`+signedTo(s.returnKey("app"), publicURL+"/r/app", "https://evil.example.net/")+`"`).problem(http.StatusBadRequest, "invalid")
	claim(`,"to":"`+page+`","to_sig":7`).problem(http.StatusBadRequest, "invalid")
}

// FuzzParseWanted: a cookie returns what was stored in it, and nothing can break out of it.
func FuzzParseWanted(f *testing.F) {
	for _, seed := range []room.Wanted{{}, {To: "https://shop.example.com/"}, {To: "https://shop.example.com/", Sig: "z3LPevg2rewqrPbsepiHEQ"}, {To: "x", Sig: "a\nb"}} {
		f.Add(seed.To, seed.Sig, formatWanted(seed))
	}
	f.Fuzz(func(t *testing.T, to, sig, value string) {
		parseWanted(value)
		text := formatWanted(room.Wanted{To: to, Sig: sig})
		if slices.ContainsFunc([]byte(text), func(c byte) bool { return c == ';' || c == ',' || c <= ' ' || c > '~' }) {
			t.Fatalf("cookie %q", text)
		}
		if strings.Contains(to, "\n") {
			return // not a URL
		}
		if len(sig) != sigSize {
			sig = ""
		}
		if got := parseWanted(text); got != (room.Wanted{To: to, Sig: sig}) {
			t.Errorf("%q, %q became %+v", to, sig, got)
		}
	})
}

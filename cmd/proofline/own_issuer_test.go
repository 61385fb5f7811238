package main

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness"
)

// make makes codes for a method of room sale with the command.
func (b *ownBench) make(method string, count int) (codes []string) {
	b.Helper()
	out := filepath.Join(b.T.TempDir(), "codes.csv")
	stdout, stderr, code := proofline(b.T, "", "room", "codes", "sale", method, "--count", fmt.Sprint(count), "--out", out,
		"--data", b.dir)
	if code != 0 {
		b.Fatalf("%s %s", stdout, stderr)
	}
	file, err := os.Open(out)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != count+1 {
		b.Fatal(rows, err)
	}
	for _, row := range rows[1:] {
		codes = append(codes, row[0])
	}
	return codes
}

// confirm shows a code for a ticket, and returns the form that goes back to the room, or the status of the failure.
func (b *ownBench) confirm(ticket fairness.Ticket, code string) (url.Values, int) {
	b.Helper()
	at := b.url + server.IssuerPath + "/sale.presale"
	status, page := b.send(at, b.url, url.Values{"ticket": {ticket.String()}, "lane": {"early"}})
	flow := flowField.FindStringSubmatch(page)
	if status != http.StatusOK || flow == nil {
		return nil, status
	}
	status, page = b.send(at+"/prove", b.url, url.Values{"flow": {html.UnescapeString(flow[1])}, "field0": {code}})
	if status != http.StatusOK {
		return nil, status
	}
	return fieldsOf(page), status
}

const ownRoom = `{"slug": "%s", "beacon": "none", "windows": [{"length": "24h"}],
	"methods": [{"name": "presale", "kind": "signed", "key": "own", "limit": 3}, {"name": "quiet", "kind": "blind", "key": "own"}],
	"lanes": [{"name": "general", "weight": 1}, {"name": "early", "weight": 3, "needs": ["presale"]},
	          {"name": "quiet", "weight": 1, "needs": ["quiet"]}]}`

// TestOwnIssuer vouches for codes with nothing but a server: the codes are made with a command, confirmed below
// /issuer, remembered across a restart, and the auditor's program says on whose word they rest.
func TestOwnIssuer(t *testing.T) {
	t.Parallel()
	b := newOwn(t, nil)
	if err := b.create(fmt.Sprintf(ownRoom, "sale")); err != nil {
		t.Fatal(err)
	}
	codes := b.make("presale", 3)
	b.make("quiet", 1)
	form, status := b.confirm(b.ticket(1), codes[0])
	if form == nil {
		t.Fatalf("status %d", status)
	}
	join := func(form url.Values) int {
		status, _ := b.send(b.url+"/r/sale/credential", b.url, form)
		return status
	}
	if status := join(form); status != http.StatusSeeOther {
		t.Errorf("join: status %d", status)
	}
	if _, status := b.confirm(b.ticket(2), codes[0]); status != http.StatusConflict {
		t.Errorf("a used code: status %d", status)
	}
	if _, status := b.confirm(b.ticket(2), "0000-0000-0000-0000"); status != http.StatusForbidden {
		t.Errorf("no code: status %d", status)
	}
	if status, _ := b.send(b.url+"/issuer/sale.presale", "https://evil.example", url.Values{}); status != http.StatusForbidden {
		t.Errorf("the form of another site: status %d", status)
	}
	for _, path := range []string{"/issuer/sale.other", "/issuer/other.presale", "/issuer/presale", "/issuer/sale."} {
		if status, _ := b.send(b.url+path, b.url, url.Values{}); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}

	b.restart()
	if _, status := b.confirm(b.ticket(3), codes[0]); status != http.StatusConflict {
		t.Errorf("a used code after a restart: status %d", status)
	}
	leaked := filepath.Join(t.TempDir(), "leaked.csv")
	if err := os.WriteFile(leaked, []byte(codes[0]+"\n"+codes[2]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, _ := proofline(t, "", "room", "void", "sale", "presale", "--list", leaked, "--data", b.dir); !strings.HasPrefix(stdout, "1 codes are void now; 1 were used already") {
		t.Errorf("void: %s %s", stdout, stderr)
	}
	if _, status := b.confirm(b.ticket(3), codes[2]); status != http.StatusGone {
		t.Errorf("a void code: status %d", status)
	}
	if form, status := b.confirm(b.ticket(1), codes[0]); form == nil {
		t.Errorf("a code that was used before it leaked: status %d", status)
	}
	more := b.make("presale", 1)
	if form, status := b.confirm(b.ticket(4), more[0]); form == nil || join(form) != http.StatusSeeOther {
		t.Errorf("a code that was made later: status %d", status)
	}
	stdout, stderr, code := proofline(t, "", "issuer", "check", "--room", b.url+"/r/sale", "--data", filepath.Join(b.dir, server.IssuerDir))
	if code != 0 || stdout != "" || !strings.Contains(stderr, "2 tickets showed it, and this issuer has signed for 2 of them") {
		t.Errorf("check: %d %s %s", code, stdout, stderr)
	}
	if _, stderr, code := proofline(t, "", "issuer", "check", "--room", b.url+"/r/sale", "--data", t.TempDir()); code == 0 ||
		!strings.Contains(stderr, "no signed method of") {
		t.Errorf("check of another issuer: %d %s", code, stderr)
	}
	for _, secret := range append(codes, b.ticket(1).String()) {
		b.hasNot(secret)
	}

	b.restart("--issuer", "off")
	if _, status := b.confirm(b.ticket(5), codes[1]); status != http.StatusNotFound {
		t.Errorf("turned off: status %d", status)
	}
	if err := b.create(fmt.Sprintf(ownRoom, "other")); err == nil || !strings.Contains(err.Error(), "runs no issuer") {
		t.Errorf("a room with the key own: %v", err)
	}
	if err := b.manage(http.MethodPost, "/v1/rooms/sale/methods/presale/codes", `{"count": 1}`); err == nil || !strings.Contains(err.Error(), "the issuer is off") {
		t.Errorf("codes: %v", err)
	}
	if err := b.manage(http.MethodPost, "/v1/rooms/sale/end", ""); err != nil {
		t.Fatal(err)
	}
	b.audited("presale was shown by 2 tickets: the word of the issuer",
		"Whether an issuer belongs to the room's operator cannot be seen here")
	b.stop()
}

// TestOwnCaptcha confirms a visitor who solves the check of a CAPTCHA service, and nobody with a code.
func TestOwnCaptcha(t *testing.T) {
	t.Parallel()
	const secretText = "secret-of-the-service"
	siteverify := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("secret") != secretText || r.URL.RawQuery != "" {
			t.Errorf("%s %v", r.URL, r.PostForm)
		}
		fmt.Fprintf(w, `{"success": %t, "hostname": "127.0.0.1", "action": "sale_check"}`, r.PostFormValue("response") == "solved")
	}))
	t.Cleanup(siteverify.Close)
	secretFile := filepath.Join(t.TempDir(), "captcha-secret")
	if err := os.WriteFile(secretFile, []byte(secretText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newOwn(t, []string{"PROOFLINE_CAPTCHA_SECRET=" + secretFile},
		"--captcha", "turnstile", "--captcha-site-key", "site-key", "--captcha-verify", siteverify.URL)
	room := `{"slug": "sale", "beacon": "none", "windows": [{"length": "24h"}], "methods": [{"name": "check", "kind": "signed", "key": "own-captcha"}],
		"lanes": [{"name": "early", "weight": 1, "needs": ["check"]}]}`
	blind := strings.NewReplacer(`"sale"`, `"other"`, "signed", "blind").Replace(room)
	if err := b.create(blind); err == nil || !strings.Contains(err.Error(), "only a signed method") {
		t.Errorf("a blind method with a CAPTCHA: %v", err)
	}
	if err := b.create(room); err != nil {
		t.Fatal(err)
	}
	err := b.manage(http.MethodPost, "/v1/rooms/sale/methods/check/codes", `{"count": 1}`)
	if err == nil || !strings.Contains(err.Error(), "takes no codes") {
		t.Errorf("codes: %v", err)
	}
	at := b.url + server.IssuerPath + "/sale.check"
	_, page := b.send(at, b.url, url.Values{"ticket": {b.ticket(1).String()}, "lane": {"early"}})
	flow := html.UnescapeString(flowField.FindStringSubmatch(page)[1])
	if status, page := b.send(at+"/captcha", b.url, url.Values{"flow": {flow}}); status != http.StatusOK || !strings.Contains(page, `data-action="sale_check"`) {
		t.Errorf("status %d:\n%s", status, page)
	}
	if status, _ := b.send(at+"/prove", b.url, url.Values{"flow": {flow}, "cf-turnstile-response": {"wrong"}}); status != http.StatusForbidden {
		t.Errorf("a wrong response: status %d", status)
	}
	status, page := b.send(at+"/prove", b.url, url.Values{"flow": {flow}, "cf-turnstile-response": {"solved"}})
	if status != http.StatusOK {
		t.Fatalf("status %d:\n%s", status, page)
	}
	form := fieldsOf(page)
	if status, page := b.send(b.url+"/r/sale/credential", b.url, form); status != http.StatusSeeOther {
		t.Errorf("join: status %d:\n%s", status, page)
	}
	b.hasNot(secretText)

	b.restart()
	if status, _ := b.send(at, b.url, url.Values{"ticket": {b.ticket(2).String()}, "lane": {"early"}}); status != http.StatusNotFound {
		t.Errorf("without a CAPTCHA service: status %d", status)
	}
	other := strings.Replace(room, `"sale"`, `"other"`, 1)
	if err := b.create(other); err == nil || !strings.Contains(err.Error(), "start it with --captcha") {
		t.Errorf("a room without a CAPTCHA service: %v", err)
	}
	b.stop()
}

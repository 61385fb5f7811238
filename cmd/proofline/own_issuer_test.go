package main

import (
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"html"
	"io"
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

// ownBench is a server with an issuer of its own.
type ownBench struct {
	*testing.T
	dir string
	*process
}

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

// send sends a form as the page at an origin does.
func (b *ownBench) send(to, origin string, form url.Values) (int, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, string(body)
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
	form := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	return form, status
}

func (b *ownBench) ticket(n int) fairness.Ticket {
	return fairness.NewTicket(strings.TrimPrefix(b.url, "http://")+"/r/sale", sha256.Sum256(fmt.Append(nil, n)))
}

const ownRoom = `{"slug": "%s", "beacon": "none", "windows": [{"length": "24h"}],
	"methods": [{"name": "presale", "kind": "signed", "key": "own", "limit": 3}, {"name": "quiet", "kind": "blind", "key": "own"}],
	"lanes": [{"name": "general", "weight": 1}, {"name": "early", "weight": 3, "needs": ["presale"]},
	          {"name": "quiet", "weight": 1, "needs": ["quiet"]}]}`

// TestOwnIssuer vouches for codes with nothing but a server: the codes are made with a command, confirmed below
// /issuer, remembered across a restart, and the auditor's program says on whose word they rest.
func TestOwnIssuer(t *testing.T) {
	t.Parallel()
	b := &ownBench{T: t, dir: tempDir(t)}
	addr := ""
	start := func(more ...string) {
		t.Helper()
		if addr == "" {
			addr = "127.0.0.1:0"
		}
		b.process = startServer(t, nil, append([]string{"--data", b.dir, "--addr", addr}, more...)...)
		addr = strings.TrimPrefix(b.url, "http://")
	}
	call := func(method, path, body string) error {
		var text []byte
		if body != "" {
			text = []byte(body)
		}
		_, err := manager(t, b.process, b.dir).Call(t.Context(), method, path, text, &struct{}{})
		return err
	}
	start()
	if err := call(http.MethodPost, "/v1/rooms", fmt.Sprintf(ownRoom, "sale")); err != nil {
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
	b.stop()

	start()
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
	b.stop()

	start("--issuer", "off")
	if _, status := b.confirm(b.ticket(5), codes[1]); status != http.StatusNotFound {
		t.Errorf("turned off: status %d", status)
	}
	if err := call(http.MethodPost, "/v1/rooms", fmt.Sprintf(ownRoom, "other")); err == nil || !strings.Contains(err.Error(), "runs no issuer") {
		t.Errorf("a room with the key own: %v", err)
	}
	if err := call(http.MethodPost, "/v1/rooms/sale/methods/presale/codes", `{"count": 1}`); err == nil || !strings.Contains(err.Error(), "the issuer is off") {
		t.Errorf("codes: %v", err)
	}
	if err := call(http.MethodPost, "/v1/rooms/sale/end", ""); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, _ = command(t, "", "proofline-verify", "audit", b.url+"/r/sale", "--no-keep")
	if text := strings.Join(strings.Fields(stdout), " "); !strings.Contains(text, "presale was shown by 2 tickets: the word of the issuer") ||
		!strings.Contains(text, "Whether an issuer belongs to the room's operator cannot be seen here") {
		t.Errorf("audit: %s %s", stdout, stderr)
	}
	b.stop()
}

// hasNot checks that no file of the issuer and no line of the log has a text.
func (b *ownBench) hasNot(secret string) {
	b.Helper()
	if strings.Contains(b.said(), secret) {
		b.Error("the log has a code or a ticket")
	}
	err := filepath.WalkDir(filepath.Join(b.dir, server.IssuerDir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), secret) {
			b.Errorf("%s has a code or a ticket", path)
		}
		return err
	})
	if err != nil {
		b.Error(err)
	}
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
	b := &ownBench{T: t, dir: tempDir(t)}
	secretFile := filepath.Join(t.TempDir(), "captcha-secret")
	if err := os.WriteFile(secretFile, []byte(secretText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.process = startServer(t, []string{"PROOFLINE_CAPTCHA_SECRET=" + secretFile}, "--data", b.dir, "--addr", "127.0.0.1:0",
		"--captcha", "turnstile", "--captcha-site-key", "site-key", "--captcha-verify", siteverify.URL)
	room := `{"slug": "sale", "beacon": "none", "windows": [{"length": "24h"}], "methods": [{"name": "check", "kind": "signed", "key": "own-captcha"}],
		"lanes": [{"name": "early", "weight": 1, "needs": ["check"]}]}`
	blind := strings.NewReplacer(`"sale"`, `"other"`, "signed", "blind").Replace(room)
	if _, err := manager(t, b.process, b.dir).Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(blind), &struct{}{}); err == nil || !strings.Contains(err.Error(), "only a signed method") {
		t.Errorf("a blind method with a CAPTCHA: %v", err)
	}
	if _, err := manager(t, b.process, b.dir).Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(room), &struct{}{}); err != nil {
		t.Fatal(err)
	}
	_, err := manager(t, b.process, b.dir).Call(t.Context(), http.MethodPost, "/v1/rooms/sale/methods/check/codes", []byte(`{"count": 1}`), &struct{}{})
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
	form := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	if status, page := b.send(b.url+"/r/sale/credential", b.url, form); status != http.StatusSeeOther {
		t.Errorf("join: status %d:\n%s", status, page)
	}
	b.stop()
	b.hasNot(secretText)

	b.process = startServer(t, nil, "--data", b.dir, "--addr", strings.TrimPrefix(b.url, "http://"))
	if status, _ := b.send(at, b.url, url.Values{"ticket": {b.ticket(2).String()}, "lane": {"early"}}); status != http.StatusNotFound {
		t.Errorf("without a CAPTCHA service: status %d", status)
	}
	other := strings.Replace(room, `"sale"`, `"other"`, 1)
	if _, err := manager(t, b.process, b.dir).Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(other), &struct{}{}); err == nil || !strings.Contains(err.Error(), "start it with --captcha") {
		t.Errorf("a room without a CAPTCHA service: %v", err)
	}
	b.stop()
}

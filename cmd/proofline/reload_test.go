package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proofline/proofline/internal/certtest"
	"github.com/proofline/proofline/internal/doctest"
	"github.com/proofline/proofline/internal/freeport"
)

// hangup sends SIGHUP, and waits for a line of the log.
func (p *process) hangup(want string) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
	p.until(`.*(`+want+`).*`, startTime)
}

// TestHangupServe reloads a server's certificate. Without one, SIGHUP changes nothing.
func TestHangupServe(t *testing.T) {
	t.Parallel()
	dir, ca := tempDir(t), certtest.New(t)
	certFile, keyFile, _ := ca.Write(dir, "localhost")
	p := launch(t, nil, "serve", "--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0", "--tls-cert", certFile,
		"--tls-key", keyFile)
	at := p.until(`listening on (https://\S+)`, startTime)
	_, _, second := ca.Write(dir, "localhost")
	p.hangup("msg=reloaded what=certificate")
	serves := func() {
		t.Helper()
		if _, serial := ask(t, ca.Client(strings.TrimPrefix(at, "https://")), at+"/livez"); serial != second {
			t.Errorf("certificate %d, want %d", serial, second)
		}
	}
	serves()
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	p.hangup(`msg="cannot reload: what was read before stays in use" what=certificate err=`)
	serves()
	p.stop()

	p = startServer(t, nil, "--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0")
	p.hangup(`msg="nothing to reload`)
	if answer, _ := ask(t, http.DefaultClient, p.url+"/readyz"); answer.StatusCode != http.StatusOK {
		t.Errorf("after SIGHUP: %s", answer.Status)
	}
	p.stop()
}

// TestHangupProxy reloads rules and page of a proxy, whose room is away.
func TestHangupProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "the shop")
	}))
	t.Cleanup(site.Close)
	rules, page := filepath.Join(dir, "rules.json"), filepath.Join(dir, "page.html")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(rules, `{"version":1,"rules":[{"name":"all","action":"queue sale"}],"rooms":{"sale":{"url":"http://`+
		freeport.Addr(t)+`/r/sale","failure":"page"}}}`)
	write(page, "one moment")
	p := launch(t, nil, "proxy", "--rules", rules, "--to", site.URL, "--listen", "127.0.0.1:0", "--key",
		filepath.Join(dir, "key"), "--page", page)
	at := p.until(`listening on (http://\S+)`, startTime)
	get := func() string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/buy", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Accept", "text/html")
		answer, err := http.DefaultTransport.RoundTrip(r) // follows no redirect to the room
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	waitFor(t, "the room is known to be away", func() bool { return get() == "one moment" })
	write(page, "two moments")
	p.hangup(`msg=reloaded what="page, rules"`)
	if got := get(); got != "two moments" {
		t.Errorf("after a new page: %q", got)
	}
	write(rules, `{"version":1,"rules":[]}`+"x")
	p.hangup(`what=rules err=`)
	if got := get(); got != "two moments" {
		t.Errorf("after invalid rules: %q", got)
	}
	write(rules, `{"version":1,"rules":[]}`)
	write(page, "")
	p.hangup(`what=page err=`)
	p.until(`.*(msg=reloaded what=rules)`, startTime)
	if got := get(); got != "the shop" {
		t.Errorf("after new rules: %q", got)
	}
	p.stop()
}

// TestHangupIssuer gives an issuer a new list and offer. Limits and records stay.
func TestHangupIssuer(t *testing.T) {
	t.Parallel()
	b := newIssuerBench(t)
	p := b.start()
	if status := b.confirm(ticketNumber(1), b.codes[0]); status != http.StatusSeeOther {
		t.Fatalf("status %d", status)
	}
	offered := func() int {
		status, _, _ := b.post("/late", "https://queue.example.com", url.Values{"ticket": {ticketNumber(2).String()},
			"lane": {"general"}, "response": {"fragment"}})
		return status
	}
	if status := offered(); status != http.StatusNotFound {
		t.Errorf("an offer that does not exist: status %d", status)
	}
	config := doctest.Read(t, b.configured)
	more := config + fmt.Sprintf("- name: late\n  method: other\n  kind: signed\n  room: %s\n  entry: %x\n  proof: list\n"+
		"  list: late\n", issuerRoom, b.room)
	if err := os.WriteFile(b.configured, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	p.hangup(`msg="cannot reload: what was read before stays in use".*there is no list late`)
	b.run("codes", "--list", "late", "--count", "5", "--out", filepath.Join(b.dir, "late.csv"))
	p.hangup(`msg=reloaded what="configuration and lists"`)
	if status := offered(); status != http.StatusOK {
		t.Errorf("a new offer: status %d", status)
	}
	if status := b.confirm(ticketNumber(2), b.codes[0]); status != http.StatusConflict {
		t.Errorf("a used code after a reload: status %d", status)
	}
	if status := b.confirm(ticketNumber(2), b.codes[1]); status != http.StatusSeeOther {
		t.Errorf("another code after a reload: status %d", status)
	}
	p.stop()
}

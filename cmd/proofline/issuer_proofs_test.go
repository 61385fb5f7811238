package main

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudflare/circl/blindsign/blindrsa"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/oidctest"
)

// receiveMail is a mail server that passes on the text of each mail. It knows as much of RFC 5321 as the client needs.
func receiveMail(t *testing.T) (addr string, mail <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	received := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewScanner(c)
			fmt.Fprint(c, "220 test\r\n")
			for in.Scan() {
				switch verb, _, _ := strings.Cut(in.Text(), " "); verb {
				case "DATA":
					fmt.Fprint(c, "354 go on\r\n")
					var text strings.Builder
					for in.Scan() && in.Text() != "." {
						text.WriteString(in.Text() + "\n")
					}
					received <- text.String()
					fmt.Fprint(c, "250 ok\r\n")
				case "QUIT":
					fmt.Fprint(c, "221 bye\r\n")
					_ = c.Close()
				default:
					fmt.Fprint(c, "250 ok\r\n")
				}
			}
		}
	}()
	return l.Addr().String(), received
}

// TestIssuerProofs has the program vouch for an address, for an account at a provider, and blindly for a code.
func TestIssuerProofs(t *testing.T) {
	t.Parallel()
	b := newIssuerBench(t)
	provider := oidctest.Start(t)
	smtp, mail := receiveMail(t)
	secretFile := b.dir + "/oidc-secret"
	config := fmt.Sprintf("url: http://%s\nname: Example Club\n"+
		"oidc: {issuer: %q, client_id: %s, client_secret: %s}\noffers:\n", b.addr, provider.URL, oidctest.ClientID, secretFile)
	for _, offer := range []string{"name: mail, method: club, kind: signed, proof: mail, domains: [example.org]",
		"name: account, method: club, kind: signed, proof: oidc", "name: blind, method: phone, kind: blind, proof: list, list: early"} {
		config += fmt.Sprintf("- {%s, room: %q, entry: \"%x\"}\n", offer, issuerRoom, b.room)
	}
	for path, text := range map[string]string{b.configured: config, secretFile: oidctest.ClientSecret} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := launch(t, []string{"PROOFLINE_SMTP=smtp://" + smtp + "?from=club@example.org"},
		"issuer", "serve", "--config", b.configured, "--addr", b.addr, "--data", b.data())
	p.until(`listening on (http://\S+)`, startTime)

	ticket := ticketNumber(1)
	ask := url.Values{"ticket": {ticket.String()}, "lane": {"general"}, "response": {"fragment"}}
	enter := func(offer string, form url.Values) string {
		t.Helper()
		status, page, _ := b.post("/"+offer, "https://queue.example.com", form)
		if status != http.StatusOK {
			t.Fatalf("%s: status %d:\n%s", offer, status, page)
		}
		return page
	}
	flow := func(page string) string { return html.UnescapeString(flowField.FindStringSubmatch(page)[1]) }

	_, page, _ := b.post("/mail/prove", "http://"+b.addr, url.Values{"flow": {flow(enter("mail", ask))}, "address": {"anna@example.org"}})
	code := regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){3}`).FindString(<-mail)
	_, page, location := b.post("/mail/code", "http://"+b.addr, url.Values{"flow": {flow(page)}, "code": {code}})
	byMail := b.returned(location, page, ticket)

	r, cookies := b.enterAccount(ask)
	link := regexp.MustCompile(`href="(http://[^"]+/authorize[^"]*)"`).FindStringSubmatch(r)
	back := provider.Authorize(html.UnescapeString(link[1]), map[string]any{"sub": "anna"})
	byAccount := b.returned(b.callback(back, cookies), "", ticket)
	if string(byMail.Nullifier) == string(byAccount.Nullifier) {
		t.Error("an address and an account have one nullifier")
	}

	line := strings.Split(b.run("methods", "--config", b.configured), "\n")[2]
	m, err := credential.ParseMethod(strings.TrimPrefix(line, "method "))
	if err != nil {
		t.Fatal(err)
	}
	n, _ := new(big.Int).SetString(m.Key, 16)
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &rsa.PublicKey{N: n, E: credential.Exponent})
	if err != nil {
		t.Fatal(err)
	}
	subject := credential.Subject{Room: b.room, Lane: "general", Ticket: ticket}
	blinded, state, err := client.Blind(rand.Reader, subject.AppendMessage(nil, "phone", nil))
	if err != nil {
		t.Fatal(err)
	}
	page = enter("blind", url.Values{"blinded": {hex.EncodeToString(blinded)}, "response": {"fragment"}})
	_, _, location = b.post("/blind/prove", "http://"+b.addr, url.Values{"flow": {flow(page)}, "field0": {b.codes[0]}})
	_, fragment, _ := strings.Cut(location, "#blind_signature=phone+")
	response, err := hex.DecodeString(fragment)
	if err != nil {
		t.Fatal(location, err)
	}
	signature, err := client.Finalize(state, response)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := credential.NewVerifier(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(subject, credential.Credential{Method: "phone", Evidence: signature}); err != nil {
		t.Error(err)
	}
	p.stop()
	for _, secret := range []string{"anna", code, b.codes[0], ticket.String()} {
		if strings.Contains(p.said(), secret) {
			t.Errorf("the log has %q:\n%s", secret, p.said())
		}
	}
}

// enterAccount enters the offer of accounts, and returns the page and its cookies.
func (b *issuerBench) enterAccount(form url.Values) (string, []*http.Cookie) {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+b.addr+"/account", strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://queue.example.com")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.t.Fatalf("status %d, %v:\n%s", response.StatusCode, err, page)
	}
	return string(page), response.Cookies()
}

// callback returns from the provider, and gives the address of the redirect.
func (b *issuerBench) callback(query url.Values, cookies []*http.Cookie) string {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+b.addr+"/callback?"+query.Encode(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header.Get("Location")
}

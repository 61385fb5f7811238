package main

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/oidctest"
)

const accountRoom = `{"slug": "sale", "beacon": "none", "windows": [{"length": "24h"}],
	"methods": [{"name": "account", "kind": "signed", "key": "own-oidc"}],
	"lanes": [{"name": "general", "weight": 1, "needs": ["account"]}]}`

var providerLink = regexp.MustCompile(`href="(http://[^"]+/authorize[^"]*)"`)

// signIn signs a visitor in at the provider, and returns the form that goes back to the room. The browser also has a
// cookie of the room.
func (b *ownBench) signIn(provider *oidctest.Issuer, ticket fairness.Ticket, subject string) url.Values {
	b.Helper()
	ask := url.Values{"ticket": {ticket.String()}, "lane": {"general"}}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+"/issuer/sale.account", strings.NewReader(ask.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.url)
	page, cookies := b.fetch(r)
	link := providerLink.FindStringSubmatch(page)
	if link == nil || len(cookies) != 1 {
		b.Fatalf("no way to sign in, or cookies %v:\n%s", cookies, page)
	}
	back := provider.Authorize(html.UnescapeString(link[1]), map[string]any{"sub": subject})
	if r, err = http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+"/issuer/callback?"+back.Encode(), http.NoBody); err != nil {
		b.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "proofline-sale", Value: "secret"})
	r.AddCookie(cookies[0])
	page, _ = b.fetch(r)
	return fieldsOf(page)
}

// fetch returns a page and the cookies that it sets.
func (b *ownBench) fetch(r *http.Request) (page string, cookies []*http.Cookie) {
	b.Helper()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("status %d, %v:\n%s", response.StatusCode, err, body)
	}
	return string(body), response.Cookies()
}

// TestOwnOIDC has the server's own issuer vouch for accounts at a provider: one place for each.
func TestOwnOIDC(t *testing.T) {
	t.Parallel()
	provider := oidctest.Start(t)
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte(oidctest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newOwn(t, []string{"PROOFLINE_ISSUER_OIDC_SECRET=" + secretFile}, "--issuer-oidc", provider.URL, "--issuer-oidc-client", oidctest.ClientID)
	if err := b.create(accountRoom); err != nil {
		t.Fatal(err)
	}
	first, again, other := b.signIn(provider, b.ticket(1), "anna"), b.signIn(provider, b.ticket(2), "anna"), b.signIn(provider, b.ticket(3), "bob")
	if first.Get("nullifier") != again.Get("nullifier") || first.Get("nullifier") == other.Get("nullifier") {
		t.Error("an account has two nullifiers, or two accounts have one")
	}
	for _, test := range []struct {
		form url.Values
		ok   bool
	}{{first, true}, {again, false}, {other, true}} {
		if status, _ := b.send(b.url+"/r/sale/credential", b.url, test.form); (status == http.StatusSeeOther) != test.ok {
			t.Errorf("a join: status %d, want one: %t", status, test.ok)
		}
	}
	for _, secret := range []string{"anna", oidctest.ClientSecret, b.ticket(1).String()} {
		b.hasNot(secret)
	}

	b.restart()
	if err := b.create(strings.Replace(accountRoom, `"sale"`, `"other"`, 1)); err == nil || !strings.Contains(err.Error(), "start it with --issuer-oidc") {
		t.Errorf("a room without a provider: %v", err)
	}
	if err := b.manage(http.MethodPost, "/v1/rooms/sale/end", ""); err != nil {
		t.Fatal(err)
	}
	b.audited("account was shown by 2 tickets: the word of the issuer")
	b.stop()
}

// TestIssuerOIDCFlags: the provider of the own issuer is configured as a whole, or not at all.
func TestIssuerOIDCFlags(t *testing.T) {
	t.Parallel()
	for want, flags := range map[string][]string{
		"belong together":       {"--issuer-oidc", "https://login.example.org"},
		"redirect URL":          {"--issuer-oidc-client", "proofline"},
		"not an https URL":      {"--issuer-oidc", "http://login.example.org", "--issuer-oidc-client", "a", "--issuer-oidc-secret", "b"},
		"own issuer, which is":  {"--issuer-oidc", "https://login.example.org", "--issuer", "off"},
		"--issuer-oidc-secret:": {"--issuer-oidc", "https://login.example.org", "--issuer-oidc-client", "a", "--issuer-oidc-secret", "missing"},
	} {
		_, stderr, code := proofline(t, "", append([]string{"serve", "--data", t.TempDir()}, flags...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit status %d, %s", flags, code, stderr)
		}
	}
}

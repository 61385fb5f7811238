package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/servertest"
)

// protect returns the options of a connector for the site shop.
func (s *tenants) protect(keep, bearer string) connector.Options {
	s.Helper()
	key := decode[struct{ Key string }](s.get("/v1/site-key").want(http.StatusOK)).Key
	return connector.Options{
		Source: &connector.Source{URL: publicURL + "/v1/sites/shop/rules", SiteKey: key, Keep: keep}, Token: bearer,
		Key: []byte(strings.Repeat("k", 32)), Kind: "proxy", Version: "1.0", Client: &http.Client{Transport: towards{s.url}}, Log: servertest.Log(s),
	}
}

// tampered changes the server's responses on their way.
type tampered struct {
	towards
	change func(string) string
}

func (t tampered) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.towards.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/rules") {
		return answer, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(t.change(string(body)))), -1
	return answer, err
}

// TestConnectorOfSite: a real connector gets the rules of its site, applies them, and is listed; it accepts
// no others.
func TestConnectorOfSite(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","beacon":"none","targets":["https://shop.example.com"]}`)
	rules := func(action string) string {
		return `{"version": 1, "hosts": ["shop.example.com"],` + "\r\n\t" + `"rooms": {"sale": {"url": "https://example.com/r/sale"}}, "rules": [{"name": "all", "action": "` + action + `"}]}`
	}
	s.post("/v1/sites", `{"name": "shop", "rules": `+rules("block")+`}`).want(http.StatusCreated)
	token, _ := s.token(s.main, account.Connect, time.Hour)
	keep := filepath.Join(t.TempDir(), "rules")
	begin := func(o connector.Options) *connector.Connector {
		t.Helper()
		c, err := connector.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	open := func(c *connector.Connector) int {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://shop.example.com/tickets", nil)
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		c.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w.Code
	}

	c := begin(s.protect(keep, token))
	if status := open(c); status != http.StatusForbidden || c.Stats().RulesVersion != 1 {
		t.Errorf("status %d by version %d", status, c.Stats().RulesVersion)
	}
	eventually(t, "it is listed", func() bool {
		return strings.Contains(s.get("/v1/sites/shop/connectors").body, `"site":"shop","kind":"proxy","version":"1.0","rules_version":1,"behind":false,"connected":true`)
	})
	c.Close()
	first := s.get("/v1/sites/shop/rules").want(http.StatusOK).body
	s.do("PUT", "/v1/sites/shop", `{"rules": `+rules("queue sale")+`}`).want(http.StatusOK)
	c = begin(s.protect(keep, token))
	if status := open(c); status != http.StatusSeeOther && status != http.StatusFound || c.Stats().RulesVersion != 2 {
		t.Errorf("status %d by version %d", status, c.Stats().RulesVersion)
	}
	c.Close()

	// Earlier rules are not accepted again, although they are signed.
	o := s.protect(keep, token)
	o.Client = &http.Client{Transport: tampered{towards{s.url}, func(string) string { return first }}}
	c = begin(o)
	if status := open(c); status != http.StatusSeeOther && status != http.StatusFound || c.Stats().RulesVersion != 2 {
		t.Errorf("after rules of before: status %d by version %d", status, c.Stats().RulesVersion)
	}
	c.Close()

	for name, test := range map[string]struct {
		change func(*connector.Options)
		err    error
	}{
		"an edited document": {func(o *connector.Options) {
			o.Client = &http.Client{Transport: tampered{towards{s.url}, func(text string) string { return strings.Replace(text, "queue sale", "bypass", 1) }}}
		}, connector.ErrUnsigned},
		"another's key":   {func(o *connector.Options) { o.Source.SiteKey = s.keyOf(s.other) }, connector.ErrUnsigned},
		"another's token": {func(o *connector.Options) { o.Token, _ = s.token(s.other, account.Connect, time.Hour) }, nil},
		"a reader":        {func(o *connector.Options) { o.Token, _ = s.token(s.main, account.Read, time.Hour) }, nil},
		"no token":        {func(o *connector.Options) { o.Token = "" }, nil},
	} {
		o := s.protect("", token)
		test.change(&o)
		if c, err := connector.New(o); err == nil || test.err != nil && !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				c.Close()
			}
		}
	}
}

// keyOf returns the site key of an organization.
func (s *tenants) keyOf(in account.Actor) string {
	s.Helper()
	key, err := s.sites.Key(s.Context(), in)
	if err != nil {
		s.Fatal(fmt.Errorf("site key: %w", err))
	}
	return key
}

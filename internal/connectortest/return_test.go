package connectortest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/internal/servertest"
)

// logged is a site that logs the URLs of its pages, as many do. Its page /out is an open redirect.
type logged struct {
	mu  sync.Mutex
	log []string
}

func (l *logged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, r.URL.String())
	if to := r.URL.Query().Get("url"); r.URL.Path == "/out" {
		http.Redirect(w, r, to, http.StatusFound)
	}
}

// hasPass reports whether the log contains a pass.
func (l *logged) hasPass() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.log, "\n"), "proofline_pass")
}

// TestSignedReturn checks that with signed_return a stranger's link cannot send a visitor's pass to
// an unprotected page, and that visitors redirected by a connector return to the page they came
// from.
func TestSignedReturn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	site := &logged{}
	front := httptest.NewUnstartedServer(nil)
	mux := http.NewServeMux()
	front.Config.Handler = mux
	front.Start()
	t.Cleanup(front.Close)
	shop := front.URL
	s.manage(t, "POST", "rooms", `{"slug":"sale","windows":[{"length":"200ms"}],"outflow":{"per_minute":6000},"signed_return":true,"targets":["`+shop+`/tickets","`+shop+`/"]}`, http.StatusCreated)
	rules := `{"version":1,"hosts":["127.0.0.1"],"rooms":{"sale":{"url":"` + s.address +
		`/r/sale"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`
	s.manage(t, "POST", "sites", `{"name":"shop","rules":`+rules+`}`, http.StatusCreated)
	c, err := connector.New(connector.Options{
		Source: &connector.Source{URL: s.address + "/v1/sites/shop/rules",
			SiteKey: textOf(t, s.manage(t, "GET", "site-key", "", http.StatusOK),
				"key"), Keep: filepath.Join(t.TempDir(), "rules")},
		Token: textOf(t, s.manage(t, "POST", "tokens", `{"name":"the shop","scopes":["connect"]}`, http.StatusCreated),
			"token"),
		Key: []byte(strings.Repeat("k", 32)), Log: servertest.Log(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	mux.Handle("/", c.Middleware(site))
	mux.Handle("/out", site) // not protected by the connector

	// come follows a link to the room, waits in line, and returns the URL with the pass.
	come := func(link string) string {
		t.Helper()
		u, err := url.Parse(link)
		if err != nil || !strings.HasPrefix(link, s.address+"/r/sale?") {
			t.Fatalf("link %q, %v", link, err)
		}
		_, location := wait(t, s.address, u.Query())
		return location
	}
	// enter opens a URL with a pass, and returns the final URL.
	enter := func(location string) string {
		t.Helper()
		v := &visitor{T: t, shop: shop}
		for range 5 {
			r := v.get(strings.TrimPrefix(location, shop))
			if r.StatusCode == http.StatusOK {
				return location
			}
			next, err := r.Location()
			if err != nil || !strings.HasPrefix(next.String(), shop) {
				t.Fatalf("%s: status %d to %q, %v", location, r.StatusCode, next, err)
			}
			location = next.String()
		}
		return location
	}
	led := func(target string, headers ...string) string {
		t.Helper()
		r, body := send(t, "GET", shop+target, "", headers...)
		var said struct{ Join string }
		if r.StatusCode == http.StatusForbidden && json.Unmarshal([]byte(body), &said) == nil {
			return said.Join
		}
		return r.Header.Get("Location")
	}

	out := shop + "/out?url=https%3A%2F%2Fevil.example.net%2F"
	mine, err := url.Parse(led("/tickets/1", page))
	if err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]url.Values{
		"made by hand":                  {"to": {out}},
		"with the signature of another": {"to": {out}, "to_sig": {mine.Query().Get("to_sig")}},
	} {
		if to := come(s.address + "/r/sale?" + link.Encode()); !strings.HasPrefix(to, shop+
			"/tickets?proofline_pass=ey") || enter(to) != shop+"/tickets" {
			t.Errorf("a link %s redirects to %q", name, to)
		}
	}
	if to := enter(come(led("/tickets/7?row=2", page))); to != shop+"/tickets/7?row=2" {
		t.Errorf("a visitor of a page that waits is at %q", to)
	}
	for _, from := range []string{shop + "/cart?a=1", shop + "/tickets/form"} {
		if to := enter(come(led("/tickets/left", "Sec-Fetch-Mode: cors", "Referer: "+from))); to != from {
			t.Errorf("a visitor of %s whose script was refused is at %q", from, to)
		}
	}
	s.manage(t, "POST", "rooms/sale/rotate-keys", "", http.StatusOK)
	if to := enter(come(led("/tickets/8", page))); to != shop+"/tickets/8" {
		t.Errorf("after a rotation of keys a visitor is at %q", to)
	}
	if site.hasPass() {
		t.Errorf("the site has seen a pass: %q", site.log)
	}

	s.manage(t, "PATCH", "rooms/sale", `{"signed_return":false}`, http.StatusOK)
	to := come(s.address + "/r/sale?" + url.Values{"to": {out}}.Encode())
	if send(t, "GET", to, "", page); !strings.HasPrefix(to, out+"&proofline_pass=ey") || !site.hasPass() {
		t.Errorf("without signatures the targets decide, but a stranger's link leads to %q", to)
	}
}

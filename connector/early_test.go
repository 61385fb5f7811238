package connector

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/sourcetest"
)

// earlyShop is a site whose connector loads its rules from a server.
func earlyShop(t *testing.T, o Options) (*Connector, http.Handler, error) {
	t.Helper()
	o.Key = testKey
	if o.Log == nil {
		o.Log = quiet()
	}
	c, err := New(o)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(c.Close)
	return c, c.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "shop")
	})), nil
}

func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "shop.example.com"
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestEarly tests a start while the rules' server is away, without a saved copy.
func TestEarly(t *testing.T) {
	t.Parallel()
	s, server := sourcetest.NewSigner(t), newHost(t)
	server.has("", http.StatusBadGateway)
	c, shop, err := earlyShop(t, Options{Source: &Source{URL: server.url(), SiteKey: s.Key, Keep: filepath.Join(t.TempDir(), "kept")}})
	if err != nil {
		t.Fatal(err)
	}
	if c.HasRules() || c.Stats().HasRules {
		t.Error("there are rules")
	}
	for _, what := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/", 503}, {"GET", "/tickets", 503}, {"POST", "/buy", 503}, {"GET", "/tickets?proofline_pass=x", 503},
		{"POST", "/webhooks/stripe", 200}, {"POST", "/stripe/webhook", 200}, {"GET", "/healthz", 200}, {"GET", "/robots.txt", 200}, {"GET", "/.well-known/acme-challenge/x", 200},
		{"GET", "/webhooks/stripe", 503}, {"POST", "/healthz", 503}, {"POST", "/webhooks/..;/tickets", 503}, {"POST", "/webhooks/%2e%2e/tickets", 503},
		{"GET", "/app.css", 503}, {"OPTIONS", "/tickets", 503}, // which the rules may let wait
		{"GET", "/a%00", 400},
		{"GET", ScriptPath, 200}, {"GET", EnterPath + "?to=http%3A%2F%2Fshop.example.com%2F", 503}, {"POST", ReleasePath, 503}, {"GET", OwnPath + "other", 503},
	} {
		w := ask(shop, what.method, what.target, "Accept: text/html")
		if w.Code != what.status || (w.Code == http.StatusServiceUnavailable) != (w.Header().Get("Retry-After") != "") ||
			w.Header().Get("Location") != "" {
			t.Errorf("%s %s: %d, want %d, %v", what.method, what.target, w.Code, what.status, w.Header())
		}
	}
	if w := ask(shop, "GET", "/tickets", "Accept: text/html", "Accept-Language: de"); !strings.Contains(w.Body.String(),
		`http-equiv="refresh"`) || w.Header().Get("Content-Language") != "de" {
		t.Errorf("a page: %q", w.Body)
	}
	if w := ask(shop, "GET", "/tickets", "Sec-Fetch-Mode: cors"); w.Body.String() != "{\"error\":\"unavailable\"}\n" {
		t.Errorf("a script: %q", w.Body)
	}
	for target, want := range map[string]bool{"/tickets": false, "/robots.txt": true} { // as nginx asks
		if got := c.Allows(http.Header{}, httptest.NewRequest(http.MethodGet, target, nil)); got != want {
			t.Errorf("Allows is %t for %s", got, target)
		}
	}
	server.has(s.Rules("shop", 7, "one"))
	eventually(t, "rules are asked for again", c.HasRules)
	if n := c.Stats(); !n.HasRules || n.RulesVersion != 7 || !isBlocked(c, "/one") ||
		ask(shop, "GET", "/tickets").Code != http.StatusOK {
		t.Errorf("rules are not in force: %+v", n)
	}
	eventually(t, "they are kept for a start", func() bool { _, err := os.Stat(c.options.Source.Keep); return err == nil })
	server.has("", http.StatusBadGateway)
	c.loader.Reload(t.Context(), c.use)
	if !c.HasRules() || !isBlocked(c, "/one") {
		t.Error("the rules are gone")
	}
	eventually(t, "they are kept", func() bool {
		_, err := os.Stat(c.options.Source.Keep)
		return err == nil
	})
	again, _, err := earlyShop(t, Options{Source: c.options.Source})
	if err != nil || !again.HasRules() || !isBlocked(again, "/one") {
		t.Errorf("after a restart: %v", err)
	}
}

// TestAway tests that a start fails if the server refuses, but not if it is away.
func TestAway(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, status := range []int{500, 502, 503, 504, 408, 429} {
		h.has("", status)
		if c, _, err := earlyShop(t, Options{Source: &Source{URL: h.url()}}); err != nil || c.HasRules() {
			t.Errorf("status %d: %v", status, err)
		}
	}
	for _, status := range []int{301, 400, 401, 403, 404, 410} {
		h.has("", status)
		if _, _, err := earlyShop(t, Options{Source: &Source{URL: h.url()}}); err == nil {
			t.Errorf("a start succeeds with status %d", status)
		}
	}
	h.has("no rules")
	if _, _, err := earlyShop(t, Options{Source: &Source{URL: h.url()}}); err == nil {
		t.Error("malformed rules are accepted")
	}
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(slow.Close)
	if c, _, err := earlyShop(t, Options{Source: &Source{URL: slow.URL},
		Client: &http.Client{Timeout: 50 * time.Millisecond}}); err != nil || c.HasRules() {
		t.Errorf("no answer: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	f := &faulty{}
	f.isFaulty.Store(true)
	for what, client := range map[string]*http.Client{"no server": nil, "a panic": {Transport: f}} {
		log := make(loggedLines, 100)
		if c, _, err := earlyShop(t, Options{Source: &Source{URL: gone.URL}, Client: client,
			Log: slog.New(slog.NewTextHandler(log, nil))}); err != nil || c.HasRules() {
			t.Errorf("%s: %v", what, err)
		}
		if all := strings.Join(log.all(), ""); strings.Count(all, "cannot load any rules") != 1 {
			t.Errorf("%s: the log says %s", what, all)
		}
	}
}

// TestEarlyGate tests that a gate is known at once when its rules arrive late.
func TestEarlyGate(t *testing.T) {
	t.Parallel()
	n, server := newNetted(t), newHost(t)
	n.says(GateOpen, 100)
	server.has("", http.StatusBadGateway)
	c, shop, err := earlyShop(t, Options{Source: &Source{URL: server.url()}, Server: n.URL, Token: testToken, Now: n.clock.now, reportInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	server.has(`{"version":1,"rooms":{"sale":{"url":"` + n.queue.url() + `","mode":"safety-net"}},"rules":[{"name":"all","action":"queue sale"}]}`)
	eventually(t, "visitors get in", func() bool { return c.HasRules() && ask(shop, "GET", "/tickets").Code == http.StatusOK })
}

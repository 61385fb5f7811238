package connector

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/sourcetest"
)

// host is a server with responses set by the test, and remembers requests.
type host struct {
	*httptest.Server
	mu     sync.Mutex
	text   string
	status int // 0: 200
	asked  []http.Header
}

func newHost(t testing.TB) *host {
	h := &host{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked = append(h.asked, r.Header)
		if h.status != 0 {
			w.Header().Set("Location", "https://elsewhere.example.net/")
			w.WriteHeader(h.status)
			return
		}
		_, _ = w.Write([]byte(h.text))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *host) has(text string, status ...int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text, h.status = text, 0
	if len(status) > 0 {
		h.status = status[0]
	}
}

// heard returns the headers of the requests so far.
func (h *host) heard() []http.Header {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

func (h *host) url() string { return h.URL + "/v1/sites/shop/rules" }

func TestSigned(t *testing.T) {
	t.Parallel()
	s, h := sourcetest.NewSigner(t), newHost(t)
	h.has(s.Rules("shop", 7, "one"))
	o := Options{Key: testKey, Log: quiet(), Source: &Source{URL: h.url(), SiteKey: s.Key, Keep: filepath.Join(t.TempDir(), "kept")}, Token: testToken, reportInterval: time.Hour}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := c.Stats(); !isBlocked(c, "/one") || n.RulesVersion != 7 || h.heard()[0].Get("Authorization") != "Bearer "+testToken {
		t.Errorf("version %d, asked with %v", n.RulesVersion, h.heard())
	}
	other := sourcetest.NewSigner(t)
	good := s.Rules("shop", 8, "two")
	document := sourcetest.Blocking("two")
	for name, c2 := range map[string]struct {
		text string
		want error
	}{
		"another key":             {other.Rules("shop", 8, "two"), ErrUnsigned},
		"no signature":            {good[:strings.Index(good, "\n\n")+1], ErrUnsigned},
		"plain rules":             {document, ErrUnsigned},
		"a changed path":          {strings.Replace(good, "/two", "/tw0", 1), ErrUnsigned},
		"a changed version":       {strings.Replace(good, "\n8\n", "\n9\n", 1), ErrUnsigned},
		"cut":                     {good[:len(good)-1], ErrUnsigned},
		"empty":                   {"", ErrUnsigned},
		"another site":            {s.Rules("shop2", 8, "two"), ErrOtherSite},
		"no site":                 {s.Rules("", 8, "two"), ErrOtherSite},
		"an older version":        {s.Rules("shop", 6, "two"), ErrOlder},
		"the same version":        {s.Rules("shop", 7, "two"), ErrOlder},
		"another first line":      {s.Sign("proofline-rules/v2\nshop\n8\n" + document + "\n"), ErrUnsigned},
		"something else signed":   {s.Sign("queue.example.com/r/sale\n8\nabc\n"), ErrUnsigned},
		"a version with zeros":    {s.Sign("proofline-rules/v1\nshop\n08\n" + document + "\n"), ErrUnsigned},
		"version zero":            {s.Sign("proofline-rules/v1\nshop\n0\n" + document + "\n"), ErrUnsigned},
		"a negative version":      {s.Sign("proofline-rules/v1\nshop\n-8\n" + document + "\n"), ErrUnsigned},
		"a version that is large": {s.Sign("proofline-rules/v1\nshop\n9999999999999999999\n" + document + "\n"), ErrUnsigned},
		"beyond the largest":      {s.Sign("proofline-rules/v1\nshop\n9223372036854775808\n" + document + "\n"), ErrUnsigned},
		"long":                    {s.Sign("proofline-rules/v1\nshop\n8\n" + document + strings.Repeat(" ", 1_000_000) + "\n"), ErrUnsigned},
	} {
		h.has(c2.text)
		if err := c.loader.Reload(t.Context(), c.use); !errors.Is(err, c2.want) {
			t.Errorf("%s: %v, want %v", name, err, c2.want)
		}
		if !isBlocked(c, "/one") || isBlocked(c, "/two") || c.Stats().RulesVersion != 7 {
			t.Fatalf("%s: is in force", name)
		}
	}
	h.has(good)
	c.loader.Reload(t.Context(), c.use)
	if !isBlocked(c, "/two") || isBlocked(c, "/one") || c.Stats().RulesVersion != 8 {
		t.Error("newer rules are not in force")
	}
	h.has(s.Rules("shop", 7, "one"))
	c.loader.Reload(t.Context(), c.use)
	if !isBlocked(c, "/two") {
		t.Error("older rules are in force again")
	}
	h.has(s.Sign("proofline-rules/v1\nshop\n9\n{}\n"))
	c.loader.Reload(t.Context(), c.use)
	if !isBlocked(c, "/two") {
		t.Error("broken rules took the others away")
	}
}

// TestKeptRules tests starts without the server, and with one that has older rules.
func TestKeptRules(t *testing.T) {
	t.Parallel()
	s, h := sourcetest.NewSigner(t), newHost(t)
	keep := filepath.Join(t.TempDir(), "kept")
	start := func() (*Connector, error) {
		c, err := New(Options{Key: testKey, Log: quiet(), Source: &Source{URL: h.url(), SiteKey: s.Key, Keep: keep}})
		if err == nil {
			t.Cleanup(c.Close)
		}
		return c, err
	}
	h.has("", http.StatusBadGateway)
	if c, err := start(); err != nil || c.HasRules() {
		t.Fatalf("there are rules from nowhere: %v", err)
	}
	h.has(s.Rules("shop", 7, "one"))
	if _, err := start(); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(keep)
	if err != nil || string(kept) != s.Rules("shop", 7, "one") {
		t.Fatalf("kept %q, %v", kept, err)
	}
	h.has(s.Rules("shop", 6, "before"))
	c, err := start()
	if err != nil || !isBlocked(c, "/one") || isBlocked(c, "/before") {
		t.Errorf("a start takes older rules than those kept: %v", err)
	}
	h.has(s.Rules("shop", 7, "one"))
	if c, err = start(); err != nil || !isBlocked(c, "/one") || c.Stats().RulesVersion != 7 {
		t.Errorf("the same rules as those kept: %v", err)
	}
	h.has("", http.StatusBadGateway)
	if c, err = start(); err != nil || !isBlocked(c, "/one") {
		t.Errorf("without the server: %v", err)
	}
	for name, text := range map[string]string{
		"changed": strings.Replace(string(kept), "/one", "/two", 1), "of another key": sourcetest.NewSigner(t).Rules("shop", 9, "two"), "of another site": s.Rules("shop2", 9, "two"),
		"plain": sourcetest.Blocking("two"), "empty": "",
	} {
		if err := os.WriteFile(keep, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := start(); err != nil || c.HasRules() {
			t.Errorf("%s: the saved rules are in force: %v", name, err)
		}
	}
	h.has(s.Rules("shop", 5, "five"))
	if c, err = start(); err != nil || !isBlocked(c, "/five") {
		t.Errorf("the saved rules are invalid, the server is reachable: %v", err)
	}
	if c.Close(); !bytes.Equal(mustRead(t, keep), []byte(s.Rules("shop", 5, "five"))) {
		t.Error("the rules of the server are not kept")
	}
}

// TestTokenStays tests that the token is sent to the server only.
func TestTokenStays(t *testing.T) {
	t.Parallel()
	s, h, other := sourcetest.NewSigner(t), newHost(t), newHost(t)
	h.has(s.Rules("shop", 1, "one"))
	source := &Source{URL: h.url(), SiteKey: s.Key}
	c, err := New(Options{Key: testKey, Log: quiet(), Source: source, Server: other.URL, Token: testToken, reportInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a report comes", func() bool {
		other.mu.Lock()
		defer other.mu.Unlock()
		return len(other.asked) == 1
	})
	c.Close()
	if h.heard()[0].Get("Authorization") != "" || other.heard()[0].Get("Authorization") != "Bearer "+testToken {
		t.Errorf("asked with %v, and %v", h.heard(), other.heard())
	}
	h.has("", http.StatusFound)
	if _, err := New(Options{Key: testKey, Log: quiet(), Source: source, Token: testToken}); err == nil ||
		!strings.Contains(err.Error(), "status 302") {
		t.Errorf("redirected elsewhere: %v", err)
	}
	h.has("", http.StatusForbidden)
	if _, err := New(Options{Key: testKey, Log: quiet(), Source: source, Token: testToken}); !errors.Is(err, ErrToken) ||
		!strings.Contains(err.Error(), "scope connect") || strings.Contains(err.Error(), testToken) {
		t.Errorf("refused: %v", err)
	}
}

func TestSourceErrors(t *testing.T) {
	t.Parallel()
	s, h := sourcetest.NewSigner(t), newHost(t)
	h.has(s.Rules("shop", 1, "one"))
	net := newNetted(t)
	for name, c := range map[string]struct {
		o    Options
		want error
	}{
		"no site key":            {Options{Source: &Source{URL: h.url()}}, ErrNeedsKey},
		"a malformed site key":   {Options{Source: &Source{URL: h.url(), SiteKey: "shop"}}, ErrSiteKey},
		"a changed site key":     {Options{Source: &Source{URL: h.url(), SiteKey: s.Key[:len(s.Key)-2] + "AA"}}, ErrSiteKey},
		"not the address":        {Options{Source: &Source{URL: h.URL + "/rules.json", SiteKey: s.Key}}, ErrSiteKey},
		"with a query":           {Options{Source: &Source{URL: h.url() + "?a", SiteKey: s.Key}}, ErrSiteKey},
		"a file with a site key": {Options{Source: &Source{File: "x", SiteKey: s.Key}}, ErrSource},
		"a file that is kept":    {Options{Source: &Source{File: "x", Keep: "y"}}, ErrSource},
		"a token without server": {Options{Source: &Source{File: "x"}, Token: testToken}, ErrServer},
		"a server without TLS":   {Options{Source: &Source{File: "x"}, Token: testToken, Server: "http://queue.example.com"}, ErrServer},
		"a server with a path":   {Options{Source: &Source{File: "x"}, Token: testToken, Server: "https://queue.example.com/v1"}, ErrServer},
		"a server with a user":   {Options{Source: &Source{File: "x"}, Token: testToken, Server: "https://a:b@queue.example.com"}, ErrServer},
		"no token":               {Options{Site: net.site(`,"mode":"safety-net"`)}, ErrReports},
	} {
		c.o.Key, c.o.Log = testKey, quiet()
		if _, err := New(c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

package connector

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/connector/rules"

	"github.com/proofline/proofline/connector/internal/source"
)

// TestScript tests that the script is served whatever the rules say, and can be cached.
func TestScript(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	first := s.send(http.MethodGet, ScriptPath)
	body, err := io.ReadAll(first.Body)
	h := first.Header
	if err != nil || first.StatusCode != http.StatusOK || !bytes.Equal(body, script) ||
		h.Get("Content-Type") != "text/javascript; charset=utf-8" ||
		!strings.HasPrefix(h.Get("Cache-Control"), "public, max-age=") {
		t.Fatalf("status %d, header %v, %d bytes: %v", first.StatusCode, h, len(body), err)
	}
	for name, tt := range map[string]struct {
		method, target string
		header         []string
		want           int
	}{
		"again":              {http.MethodGet, ScriptPath, []string{"If-None-Match: " + h.Get("ETag")}, http.StatusNotModified},
		"with a query":       {http.MethodGet, ScriptPath + "?v=2", nil, http.StatusOK},
		"head":               {http.MethodHead, ScriptPath, nil, http.StatusOK},
		"a post":             {http.MethodPost, ScriptPath, nil, http.StatusMethodNotAllowed},
		"nothing":            {http.MethodGet, OwnPath + "else", nil, http.StatusNotFound},
		"the way out":        {http.MethodGet, OwnPath + "../tickets", nil, http.StatusNotFound},
		"the way out, twice": {http.MethodGet, OwnPath + "..%2ftickets", nil, http.StatusNotFound},
		"parameters":         {http.MethodGet, OwnPath + "..;/tickets", nil, http.StatusNotFound},
		"another host":       {http.MethodGet, ScriptPath, []string{"Host: shop.example.net"}, http.StatusOK},
	} {
		if got := s.send(tt.method, tt.target, tt.header...); got.StatusCode != tt.want {
			t.Errorf("%s: status %d, want %d", name, got.StatusCode, tt.want)
		}
	}
	if n := s.Stats(); len(s.got) != 0 || n.Blocked+n.Bypassed+n.Passed+n.Queued != 0 {
		t.Errorf("the site got %d requests: %+v", len(s.got), n)
	}
	for _, other := range []string{"/%2eproofline/wait.js", "/.Proofline/wait.js", "/.proofline",
		"/x/../.proofline/wait.js"} {
		before := len(s.got)
		if s.send(http.MethodGet, other); len(s.got) != before+1 {
			t.Errorf("%s is not for the rules", other)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, ScriptPath, nil)
	if s.Allows(http.Header{}, r) {
		t.Error("the rules allow the script, so the request would reach the site")
	}
}

// TestScriptIsBuilt compares the built files with the hash of their sources.
func TestScriptIsBuilt(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("client/src/*.ts")
	if err != nil || len(sources) < 3 {
		t.Fatalf("%d sources: %v", len(sources), err)
	}
	slices.Sort(sources)
	for _, name := range []string{"client/wait.js", "client/wait.mjs"} {
		sum := sha256.New()
		for _, source := range append([]string{"client/build.mjs"}, sources...) {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		body, last, _ := bytes.Cut(text, []byte("\n// "+string(text[max(0, len(text)-17):])))
		sum.Write(append(body, '\n'))
		if want := hex.EncodeToString(sum.Sum(nil))[:16]; len(last) != 0 ||
			strings.TrimSpace(string(text[len(text)-17:])) != want {
			t.Errorf("%s is not what its sources make: cd connector/client && npm ci && npm run build", name)
		}
	}
}

// TestEnter tests that EnterPath gives a visitor a session for a page at another host,
// and redirects to hosts of the site only.
func TestEnter(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", func(o *Options) { o.Site.Hosts = []string{"shop.example.com", "www.example.com", "*.example.net"} })
	page := "http://www.example.com/cart?a=1&b=%2F"
	enter := EnterPath + "?to=" + url.QueryEscape(page)
	entered := s.send(http.MethodGet, enter+"&proofline_pass="+s.queue.pass())
	if to := entered.Header.Get("Location"); entered.StatusCode != http.StatusSeeOther || to != enter ||
		len(entered.Cookies()) != 1 {
		t.Fatalf("with a pass: status %d, to %q, %v", entered.StatusCode, to, entered.Cookies())
	}
	cookie := "Cookie: " + entered.Cookies()[0].Name + "=" + entered.Cookies()[0].Value
	if next := s.send(http.MethodGet, enter, cookie); next.StatusCode != http.StatusSeeOther ||
		next.Header.Get("Location") != page {
		t.Errorf("with a session: status %d, to %q", next.StatusCode, next.Header.Get("Location"))
	}
	if got := s.send(http.MethodGet, "/tickets", cookie,
		"Origin: http://www.example.com"); got.StatusCode != http.StatusOK || len(s.got) != 1 {
		t.Errorf("the session: status %d", got.StatusCode)
	}
	for _, bad := range []string{s.queue.pass() + "x", "", "x"} {
		if got := s.send(http.MethodGet, enter+"&proofline_pass="+bad); got.Header.Get("Location") != enter ||
			len(got.Cookies()) != 0 {
			t.Errorf("an invalid pass: status %d, to %q, %v", got.StatusCode, got.Header.Get("Location"), got.Cookies())
		}
	}
	for _, to := range []string{
		"", "/cart", "//www.example.com/", "https://www.example.com/", "http://evil.example.org/", "http://www.example.com.evil.example.org/", "http://www.example.com@evil.example.org/",
		"http://evil.example.org#@www.example.com/", `http://evil.example.org\@www.example.com/`, `http://www.example.com\@evil.example.org/`, "http://user@www.example.com/",
		"http:www.example.com/", "http:///www.example.com/", "javascript://www.example.com/%0aalert(1)", "http://a.example.net/", "http://*.example.net/", "http://www.example.com:x/", "http://www.example.com./",
	} {
		if got := s.send(http.MethodGet, EnterPath+"?to="+url.QueryEscape(to)); got.StatusCode != http.StatusNotFound ||
			got.Header.Get("Location") != "" {
			t.Errorf("to %q: status %d, to %q", to, got.StatusCode, got.Header.Get("Location"))
		}
	}
	if got := s.send(http.MethodPost, enter); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a post: status %d", got.StatusCode)
	}
	if len(s.got) != 1 {
		t.Errorf("the site got %d requests", len(s.got))
	}
}

// TestSiteOrigins tests that scripts of the site's other hosts can read where to wait,
// and no others.
func TestSiteOrigins(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", func(o *Options) { o.Site.Hosts = []string{"shop.example.com", "www.example.com", "*.example.net"} })
	for origin, want := range map[string]string{
		"http://www.example.com": "http://www.example.com", "http://shop.example.com": "http://shop.example.com", "http://www.example.com:8080": "http://www.example.com:8080",
		"": "", "null": "", "https://www.example.com": "", "http://evil.example.org": "", "http://a.example.net": "", "http://www.example.com.evil.example.org": "",
	} {
		got := s.send(http.MethodGet, "/tickets", "Sec-Fetch-Mode: cors", "Origin: "+origin)
		h := got.Header
		if got.StatusCode != http.StatusForbidden || h.Get(QueueHeader) == "" ||
			h.Get("Access-Control-Allow-Origin") != want ||
			(h.Get("Access-Control-Expose-Headers") == QueueHeader) != (want != "") || (h.Get("Access-Control-Allow-Credentials") == "true") != (want != "") {
			t.Errorf("%q: status %d, header %v", origin, got.StatusCode, h)
		}
	}
}

// FuzzSitePage tests that redirects go to the site's hosts only, as browsers parse
// them (https://url.spec.whatwg.org/#url-parsing): they read \ as / and ignore tabs
// and line ends.
func FuzzSitePage(f *testing.F) {
	for _, seed := range []string{"http://www.example.com/a?b#c", `http://evil.example.org\@www.example.com/`,
		"http://www.example.com:80@evil.example.org", "http://www.example.com\t.evil.example.org/", "http://WWW.example.com",
		"http://[::1]/", "http://%77ww.example.com/"} {
		f.Add(seed)
	}
	site, err := rules.Parse([]byte(`{"version":1,"hosts":["www.example.com","*.example.net"]}`))
	if err != nil {
		f.Fatal(err)
	}
	q := &requestCheck{from: origin{scheme: "http"}, config: &config{Rules: source.Rules{Site: site}}}
	after := regexp.MustCompile(`^http://(?i:www\.example\.com)(:[0-9]*)?([/?#]|$)`)
	f.Fuzz(func(t *testing.T, address string) {
		u, ok := q.sitePage(address)
		if !ok {
			return
		}
		if to := u.String(); !after.MatchString(to) || strings.ContainsAny(to, "\t\r\n\\ ") {
			t.Errorf("%q redirects to %q", address, to)
		}
	})
}

package connector

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestScript gives out the script whatever the rules say, and lets caches keep it.
func TestScript(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	first := s.send(http.MethodGet, ScriptPath)
	body, err := io.ReadAll(first.Body)
	h := first.Header
	if err != nil || first.StatusCode != http.StatusOK || !bytes.Equal(body, script) || h.Get("Content-Type") != "text/javascript; charset=utf-8" || !strings.HasPrefix(h.Get("Cache-Control"), "public, max-age=") {
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
	for _, other := range []string{"/%2eproofline/wait.js", "/.Proofline/wait.js", "/.proofline", "/x/../.proofline/wait.js"} {
		before := len(s.got)
		if s.send(http.MethodGet, other); len(s.got) != before+1 {
			t.Errorf("%s is not for the rules", other)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, ScriptPath, nil)
	if s.Allows(http.Header{}, r) {
		t.Error("the script is allowed, so that the site would be asked for it")
	}
}

// TestScriptIsBuilt compares both files with the sum that their build leaves.
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
		if want := hex.EncodeToString(sum.Sum(nil))[:16]; len(last) != 0 || strings.TrimSpace(string(text[len(text)-17:])) != want {
			t.Errorf("%s is not what its sources make: cd connector/client && npm ci && npm run build", name)
		}
	}
}

package local_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
)

func request(b *local.Beacon, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// TestJSON compares with the responses of drand's relays, member by member.
func TestJSON(t *testing.T) {
	b := newBeacon(t, local.NewKey(), &clock{seconds: 299})
	c, hash := b.Chain(), fmt.Sprintf("%x", b.Chain().Hash())
	round := func(n uint64) any {
		signature, err := b.Sign(n)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"round": float64(n), "signature": fmt.Sprintf("%x", signature), "randomness": fmt.Sprintf("%x", sha256.Sum256(signature))}
	}
	info := map[string]any{
		"public_key": fmt.Sprintf("%x", c.PublicKey), "period": 3., "genesis_time": float64(genesis), "hash": hash,
		"groupHash": fmt.Sprintf("%x", c.GroupHash), "schemeID": beacon.Scheme, "metadata": map[string]any{"beaconID": "test"},
	}
	for path, want := range map[string]any{
		"/info": info, "/public/1": round(1), "/public/42": round(42), "/public/100": round(100), "/public/latest": round(100), "/public/0": round(100),
		"/health": map[string]any{"current": 100., "expected": 100.},
	} {
		for _, prefix := range []string{"", "/" + hash} {
			w := request(b, http.MethodGet, prefix+path)
			var got any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
				t.Errorf("%s: status %d, %v", path, w.Code, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
			if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %v", path, w.Header())
			}
		}
	}
	if w := request(b, http.MethodGet, "/chains"); w.Body.String() != `["`+hash+"\"]\n" {
		t.Errorf("/chains: %s", w.Body)
	}
	if w := request(b, http.MethodGet, "/"); !strings.Contains(w.Body.String(), "proves nothing") {
		t.Errorf("/: %s", w.Body)
	}
}

func TestStatuses(t *testing.T) {
	b := newBeacon(t, local.NewKey(), &clock{seconds: 299})
	for _, c := range []struct {
		method, path string
		code         int
		caching      string
	}{
		{"GET", "/public/100", 200, "public, max-age=604800, immutable"},
		{"HEAD", "/public/100", 200, "public, max-age=604800, immutable"},
		{"GET", "/public/latest", 200, "no-store"},
		{"GET", "/public/0", 200, "no-store"},
		{"GET", "/health", 200, "no-store"},
		{"GET", "/info", 200, "public, max-age=604800, immutable"},
		{"GET", "/public/101", 404, "no-store"},
		{"GET", "/public/18446744073709551615", 404, "no-store"},
		{"GET", "/public/18446744073709551616", 400, ""},
		{"GET", "/public/-1", 400, ""},
		{"GET", "/public/next", 400, ""},
		{"GET", "/public/", 404, ""},
		{"POST", "/public/100", 405, ""},
		{"GET", "/" + strings.Repeat("ab", 32) + "/info", 404, ""},
		{"GET", "/" + strings.Repeat("ab", 32) + "/public/1", 404, ""},
		{"GET", "/elsewhere", 404, ""},
	} {
		w := request(b, c.method, c.path)
		if w.Code != c.code || w.Header().Get("Cache-Control") != c.caching {
			t.Errorf("%s %s: status %d, caching %q, want %d, %q", c.method, c.path, w.Code, w.Header().Get("Cache-Control"), c.code, c.caching)
		}
	}
	if w := request(b, http.MethodGet, "/public/101"); w.Body.String() != "round 101 appears at 2027-01-15T08:05:00Z\n" {
		t.Errorf("a future round: %s", w.Body)
	}
}

func TestBeforeGenesis(t *testing.T) {
	b := newBeacon(t, local.NewKey(), &clock{seconds: -5})
	for path, want := range map[string]int{"/info": 200, "/health": 200, "/public/latest": 404, "/public/0": 404, "/public/1": 404} {
		if w := request(b, http.MethodGet, path); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}

package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWithoutCookies checks that the issuer sees its own cookie, and never those with visitors' secrets.
func TestWithoutCookies(t *testing.T) {
	t.Parallel()
	var got []string
	h := withoutCookies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Values("Cookie")...) }), "flow")
	r := httptest.NewRequest(http.MethodPost, "/issuer/sale.presale", http.NoBody)
	r.Header.Add("Cookie", "__Host-proofline-sale=secret")
	r.Header.Add("Cookie", "more=1")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got != nil {
		t.Errorf("cookies %q", got)
	}
	r.Header.Add("Cookie", "flow=sealed")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if len(got) != 1 || got[0] != "flow=sealed" {
		t.Errorf("cookies %q", got)
	}
}

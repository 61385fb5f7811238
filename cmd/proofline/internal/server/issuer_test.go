package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWithoutCookies checks that the issuer never sees the cookies with visitors' secrets.
func TestWithoutCookies(t *testing.T) {
	t.Parallel()
	var got []string
	h := withoutCookies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Values("Cookie")...) }))
	r := httptest.NewRequest(http.MethodPost, "/issuer/sale.presale", http.NoBody)
	r.Header.Add("Cookie", "__Host-proofline-sale=secret")
	r.Header.Add("Cookie", "more=1")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got != nil {
		t.Errorf("cookies %q", got)
	}
}

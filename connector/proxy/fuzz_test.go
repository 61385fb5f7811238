package proxy

import (
	"net/http"
	"net/netip"
	"net/url"
	"testing"
)

// FuzzOriginal tests that the request checked for nginx is the original one, without
// the headers of the subrequest.
func FuzzOriginal(f *testing.F) {
	for _, text := range []string{"/tickets?a=b", "//tickets", "/a%2f..;/b", "http://other.example.com/", "*", "", "/a b",
		"/\x00"} {
		f.Add(text, "GET")
	}
	f.Fuzz(func(t *testing.T, target, method string) {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: AuthPath}, Header: http.Header{TargetName: {target}, MethodName: {method}, "Accept": {"text/html"}}}
		asked, ok := original(r)
		if !ok {
			return
		}
		if asked.RequestURI != target || asked.Method != method || asked.URL == r.URL || len(asked.Header) != 1 ||
			len(r.Header) != 3 {
			t.Errorf("%s %q is read as %s %q, %v", method, target, asked.Method, asked.RequestURI, asked.Header)
		}
	})
}

// FuzzClient tests that clients cannot choose their address.
func FuzzClient(f *testing.F) {
	for _, text := range []string{"", "192.0.2.1", "192.0.2.1, 127.0.0.9", "unknown", "::ffff:192.0.2.1",
		"127.0.0.1, 127.0.0.2", ", ,", "192.0.2.1:80"} {
		f.Add(text)
	}
	o := &Options{TrustedProxies: loopback}
	f.Fuzz(func(t *testing.T, text string) {
		stranger := &http.Request{RemoteAddr: "198.51.100.7:1", Header: http.Header{"X-Forwarded-For": {text}}}
		if got := o.clientOf(stranger); got != netip.MustParseAddr("198.51.100.7") {
			t.Errorf("%q makes a stranger %s", text, got)
		}
		own := &http.Request{RemoteAddr: "127.0.0.1:1", Header: http.Header{"X-Forwarded-For": {"203.0.113.5", text + ", 192.0.2.7", "127.0.0.3"}}}
		if got := o.clientOf(own); got != netip.MustParseAddr("192.0.2.7") {
			t.Errorf("%q before the client's address makes it %s", text, got)
		}
	})
}

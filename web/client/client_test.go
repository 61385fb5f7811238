package client

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestAddress checks that only trusted proxies can set a client's address.
func TestAddress(t *testing.T) {
	t.Parallel()
	proxies := netip.MustParsePrefix("192.0.2.0/24")
	for _, c := range []struct {
		trusted         []netip.Prefix
		remote, forward string
		want            string
	}{
		{nil, "192.0.2.1:1", "198.51.100.7", "192.0.2.1"},
		{nil, "127.0.0.1:1", "198.51.100.7", "127.0.0.1"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "198.51.100.7", "198.51.100.7"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "203.0.113.9, 198.51.100.7", "198.51.100.7"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "nonsense, 198.51.100.7", "198.51.100.7"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "198.51.100.7, nonsense", "192.0.2.1"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "203.0.113.9, 198.51.100.7, 192.0.2.2", "198.51.100.7"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "198.51.100.7:4711", "198.51.100.7"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "[2001:db8::1]:4711", "2001:db8::1"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "[2001:db8::1]", "2001:db8::1"},
		{[]netip.Prefix{proxies}, "[::ffff:192.0.2.1]:1", "::ffff:198.51.100.7", "198.51.100.7"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "192.0.2.9, 192.0.2.8", "192.0.2.9"},
		{[]netip.Prefix{proxies}, "192.0.2.1:1", "", "192.0.2.1"},
		{[]netip.Prefix{proxies}, "203.0.113.5:1", "198.51.100.7", "203.0.113.5"},
		{[]netip.Prefix{proxies}, "127.0.0.1:1", "198.51.100.7", "127.0.0.1"},
		{[]netip.Prefix{proxies}, "10.0.0.1:1", "198.51.100.7", "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		r.Header.Set("X-Forwarded-For", c.forward)
		if got := New(c.trusted, slog.New(slog.DiscardHandler)).Extractor()(r); got != c.want {
			t.Errorf("%s for %s: %s, want %s", c.remote, c.forward, got, c.want)
		}
	}
}

// TestUnknownProxy checks that an untrusted proxy is logged once, and that clients from the Internet
// cannot suppress that line.
func TestUnknownProxy(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	as := New(nil, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for _, peer := range []string{"203.0.113.5:1", "127.0.0.1:1", "10.0.0.1:1"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.RemoteAddr = peer
		as.Of(r)
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		for range 3 {
			if got := as.Of(r); got != addressOf(peer) {
				t.Errorf("%s: %v", peer, got)
			}
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "--trusted-proxies") || !strings.Contains(got, "peer=127.0.0.1") {
		t.Errorf("the log: %s", got)
	}
}

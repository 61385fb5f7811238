package webhook

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/outbound"
)

// TestURLs checks which URLs are refused when an endpoint is created.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, wrong, wrongAllowed string }{
		{"https://example.com/hooks?x=1", "", ""},
		{"https://example.com:8443/", "", ""},
		{"https://example.com:443", "", ""},
		{"", "is required", "is required"},
		{"example.com", "must be a URL", "must be a URL"},
		{"https://", "must be a URL", "must be a URL"},
		{"https:example.com", "must be a URL", "must be a URL"},
		{"https://exa mple.com", "must be a URL", "must be a URL"},
		{"https://example.com/" + strings.Repeat("x", maxURL), "must be a URL", "must be a URL"},
		{"http://example.com", "https://", ""},
		{"ftp://example.com", "https://", "https://"},
		{"gopher://127.0.0.1", "https://", "https://"},
		{"file:///etc/passwd", "must be a URL", "must be a URL"},
		{"https://user:pass@example.com", "user or password", "user or password"},
		{"https://example.com/#x", "fragment", "fragment"},
		{"https://example.com:22", "port", "port"},
		{"https://example.com:25", "port", "port"},
		{"https://example.com:0", "port", "port"},
		{"https://127.0.0.1/", "public address", ""},
		{"https://[::1]/", "public address", "public address"},
		{"https://[::ffff:8.8.8.8]/", "public address", "public address"},
		{"https://[fe80::1%25eth0]/", "public address", "public address"},
		{"https://169.254.169.254/latest/meta-data", "public address", "public address"},
		{"http://127.0.0.1:8000/", "https://", ""},
		{"http://8.8.8.8/", "https://", "public address"},
	} {
		for allowed, want := range map[string]string{"": c.wrong, "127.0.0.0/8": c.wrongAllowed} {
			var g outbound.Guard
			if allowed != "" {
				g.Allowed = []netip.Prefix{netip.MustParsePrefix(allowed)}
			}
			if got := checkURL(g, c.url); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%.60q allowing %q: %q, want %q", c.url, allowed, got, want)
			}
		}
	}
}

// FuzzURL checks that no accepted URL has a literal address that would be refused, or a password.
func FuzzURL(f *testing.F) {
	for _, text := range []string{"https://example.com", "https://127.0.0.1", "https://[::1]:443/x", "https://a:b@c",
		"http://x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkURL(outbound.Guard{}, text) != "" {
			return
		}
		if !strings.HasPrefix(strings.ToLower(text), "https://") || strings.Contains(text, "127.0.0.1:443@") {
			t.Errorf("taken: %q", text)
		}
	})
}

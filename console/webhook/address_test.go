package webhook

import (
	"net/netip"
	"strings"
	"testing"
)

// TestAddresses checks that non-public addresses are refused in every notation.
func TestAddresses(t *testing.T) {
	t.Parallel()
	allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}
	for _, c := range []struct {
		address        string
		public, opened bool // without and with the allowed networks
	}{
		{"0.0.0.0", false, false},
		{"0.1.2.3", false, false},
		{"10.0.0.1", false, false},
		{"10.1.2.3", false, true},
		{"100.64.0.1", false, false},      // carrier-grade NAT
		{"100.127.255.255", false, false}, //
		{"100.128.0.1", true, true},
		{"127.0.0.1", false, false},
		{"127.255.255.254", false, false},
		{"169.254.169.254", false, false}, // metadata service of clouds
		{"172.15.255.255", true, true},
		{"172.16.0.1", false, false},
		{"172.31.255.255", false, false},
		{"172.32.0.1", true, true},
		{"192.0.0.8", false, false},
		{"192.0.2.1", false, false}, // documentation
		{"192.88.99.1", false, false},
		{"192.168.1.1", false, false},
		{"198.18.0.1", false, false}, // benchmarks
		{"198.19.255.255", false, false},
		{"198.51.100.1", false, false},
		{"203.0.113.1", false, false},
		{"224.0.0.1", false, false}, // multicast
		{"239.255.255.255", false, false},
		{"240.0.0.1", false, false},
		{"255.255.255.255", false, false},
		{"1.1.1.1", true, true},
		{"8.8.8.8", true, true},
		{"::", false, false},
		{"::1", false, false},
		{"::ffff:127.0.0.1", false, false}, // IPv4-mapped
		{"::ffff:8.8.8.8", false, false},
		{"::127.0.0.1", false, false},     // IPv4-compatible
		{"64:ff9b::7f00:1", false, false}, // NAT64
		{"64:ff9b:1::1", false, false},    //
		{"100::1", false, false},          // discard
		{"2001::1", false, false},         // Teredo
		{"2001:20::1", false, false},      // ORCHID
		{"2001:db8::1", false, false},     // documentation
		{"2002:7f00:1::1", false, false},  // 6to4
		{"3fff::1", false, false},         // documentation
		{"5f00::1", false, false},         // segment routing
		{"fc00::1", false, false},         // unique local
		{"fd00:1::1", false, true},        //
		{"fe80::1", false, false},         // link-local
		{"fe80::1%eth0", false, false},    //
		{"fec0::1", false, false},         // site-local
		{"ff02::1", false, false},         // multicast
		{"2606:4700:4700::1111", true, true},
		{"2a00:1450:4001::1", true, true},
	} {
		a := netip.MustParseAddr(c.address)
		if err := (guard{}).check(a, false); (err == nil) != c.public {
			t.Errorf("%s: %v, want public %t", c.address, err, c.public)
		}
		if err := (guard{allowed}).check(a, false); (err == nil) != c.opened {
			t.Errorf("%s with allowed networks: %v, want %t", c.address, err, c.opened)
		}
		if err := (guard{allowed}).check(a, true); (err == nil) != (c.opened && !c.public) {
			t.Errorf("%s over plain HTTP: %v", c.address, err)
		}
	}
}

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
			var g guard
			if allowed != "" {
				g.allowed = []netip.Prefix{netip.MustParsePrefix(allowed)}
			}
			if got := g.checkURL(c.url); (got == "") != (want == "") || !strings.Contains(got, want) {
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
		if (guard{}).checkURL(text) != "" {
			return
		}
		if !strings.HasPrefix(strings.ToLower(text), "https://") || strings.Contains(text, "127.0.0.1:443@") {
			t.Errorf("taken: %q", text)
		}
	})
}

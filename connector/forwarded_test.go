package connector

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/proofline/proofline/connector/internal/source"
)

// TestForwardedHosts tests that the strictest decision counts if a load balancer passes
// on a client's header, because the site may believe any host.
func TestForwardedHosts(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")} })
	site := mustSite(t, fmt.Sprintf(`{"version":1,"hosts":["shop.example.com","static.example.com","staff.example.com"],"rooms":{"sale":{"url":%q}},"rules":[
		{"name":"static","when":{"host":{"equals":"static.example.com"}},"action":"bypass"},{"name":"staff","when":{"host":{"equals":"staff.example.com"}},"action":"block"},
		{"name":"all","action":"queue sale"}]}`, s.queue.url()))
	if err := s.use(&source.Rules{Site: site}); err != nil {
		t.Fatal(err)
	}
	s.isThrough("a host that needs no pass", s.get("/tickets", "Host: static.example.com",
		"X-Forwarded-Host: static.example.com"))
	for _, header := range []string{
		"X-Forwarded-Host: static.example.com", "X-Forwarded-Host: static.example.com, shop.example.com", "X-Forwarded-Host: shop.example.com, static.example.com",
		"Forwarded: host=static.example.com", `Forwarded: for=192.0.2.1;Host="static.example.com";proto=https`,
	} {
		s.isQueued(header, s.get("/tickets", header))
		if r := s.get("/tickets", "Host: static.example.com", "X-Forwarded-Host: shop.example.com",
			header); r.StatusCode == http.StatusOK || len(s.got) > 0 {
			t.Errorf("the other way round, %s: status %d, and the site got %d requests", header, r.StatusCode, len(s.got))
		}
	}
	for _, headers := range [][]string{
		{"X-Forwarded-Host: staff.example.com"}, {"X-Forwarded-Host: evil.example.net"}, {"Forwarded: for=1, host=evil.example.net"},
		{"X-Forwarded-Host: static.example.com", "X-Forwarded-Host: a b"},
	} {
		if r := s.get("/tickets", headers...); r.StatusCode < 400 || r.StatusCode >= 500 || len(s.got) > 0 {
			t.Errorf("%s: status %d, want a refusal", headers, r.StatusCode)
		}
	}
	many := "X-Forwarded-Host: shop.example.com"
	for range maxForwardedHosts + 1 {
		many += ", static.example.com"
	}
	if r := s.get("/tickets", many); r.StatusCode != http.StatusBadRequest {
		t.Errorf("many hosts: status %d", r.StatusCode)
	}
	s.isThrough("another client's word", s.get("/tickets", "Client: 192.0.2.1", "Host: static.example.com",
		"X-Forwarded-Host: staff.example.com"))
}

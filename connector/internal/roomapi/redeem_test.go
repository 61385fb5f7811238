package roomapi

import (
	"net/netip"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/id"
)

// TestClientVector tests the client pseudonym that connectors in all languages share.
func TestClientVector(t *testing.T) {
	t.Parallel()
	r := NewRedeemer([]byte("0123456789abcdef0123456789abcdef"), time.Now)
	for address, want := range map[string]string{"198.51.100.7": "vfEqlNafQbCz2B71wOYCIw",
		"198.51.100.200": "vfEqlNafQbCz2B71wOYCIw", "2001:db8:1:2::3": "IswYhhsbXmupm_v4fEEcPQ"} {
		if got := id.Text(r.clientName("https://queue.example.com/r/sale", netip.MustParseAddr(address),
			"Mozilla/5.0")); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

package demo

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/proofline/proofline/verifier/numeral"
)

// networks are those that a script joins from. All addresses are those for private networks, benchmarks
// and documents.
type networks struct {
	name    string // in the table
	slug    string
	isOne   bool // the server takes them for one network
	address func(room, n int) netip.Addr
}

// scriptNetworks are a /24, a /48, and as many networks as the script asks for tickets. Each room has others, because a
// network's limit of joins is for all rooms.
func scriptNetworks(tickets int) []networks {
	return []networks{
		{"one /24", "v4", true, func(room, n int) netip.Addr {
			return netip.AddrFrom4([4]byte{198, 18, byte(room), byte(1 + n%254)}) //nolint:gosec // a few rooms
		}},
		{"one /48", "v6", true, func(room, n int) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, byte(room), byte(n >> 8), byte(n), 15: 1}) //nolint:gosec // see above
		}},
		{numeral.Group(tickets) + " networks", "many", false, func(room, n int) netip.Addr {
			return netip.AddrFrom4([4]byte{100, byte(64 + room/3<<3 + n>>8), byte(n), 7}) //nolint:gosec // at most 2,000 tickets
		}},
	}
}

// peopleInNetwork is how many people share a network, such as a household, on average.
const peopleInNetwork = 4

// personAddress returns the address of one of so many people.
func personAddress(n, people int) netip.Addr {
	network, host := n%max(people/peopleInNetwork, 1), n/max(people/peopleInNetwork, 1)
	return netip.AddrFrom4([4]byte{10, byte(network >> 8), byte(network), byte(1 + host)}) //nolint:gosec // at most MaxVisitors
}

// ticketLimit returns how many tickets the server lets one network have: a tenth of those that the script asks for.
func ticketLimit(people int) int { return max(asked(people)/10, peopleInNetwork+1) }

// proxies are the networks of this machine: the demo stands for a proxy, which says where requests come from.
var proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// fromKey is the key of the address in a context.
type fromKey struct{}

// from returns a context whose requests come from an address.
func from(ctx context.Context, a netip.Addr) context.Context {
	return context.WithValue(ctx, fromKey{}, a)
}

// forwarding names the address that a request comes from, like a proxy.
type forwarding struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (f forwarding) RoundTrip(r *http.Request) (*http.Response, error) {
	if a, ok := r.Context().Value(fromKey{}).(netip.Addr); ok {
		r = r.Clone(r.Context())
		r.Header.Set("X-Forwarded-For", a.String())
	}
	return f.RoundTripper.RoundTrip(r)
}

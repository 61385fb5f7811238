package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
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
		if err := (Guard{}).Check(a, false); (err == nil) != c.public {
			t.Errorf("%s: %v, want public %t", c.address, err, c.public)
		}
		if err := (Guard{allowed}).Check(a, false); (err == nil) != c.opened {
			t.Errorf("%s with allowed networks: %v, want %t", c.address, err, c.opened)
		}
		if err := (Guard{allowed}).Check(a, true); (err == nil) != (c.opened && !c.public) {
			t.Errorf("%s over plain HTTP: %v", c.address, err)
		}
	}
}

// TestClient checks that no proxy is used, because a proxy resolves names itself, and that only web servers' ports are.
func TestClient(t *testing.T) {
	t.Parallel()
	c := Guard{}.Client(Options{Timeout: time.Second})
	for _, one := range []*http.Client{c.plain, c.secure} {
		if tr, ok := one.Transport.(*http.Transport); !ok || tr.Proxy != nil {
			t.Error("it uses a proxy")
		}
	}
	c = Guard{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.Client(Options{Timeout: time.Second})
	for _, address := range []string{"http://127.0.0.1:22/", "https://127.0.0.1:25", "ftp://127.0.0.1/", "gopher://127.0.0.1:70"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(r); !errors.Is(err, ErrAddress) { //nolint:bodyclose // there is none
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestFailure checks that what users read has nothing of the error, and the operator's log all of it.
func TestFailure(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 587}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	const failed = "the connection failed"
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, failed},
		{fmt.Errorf("send mail: %w", refused), failed},
		{&url.Error{Op: "Get", URL: "http://10.1.2.3/", Err: refused}, failed},
		{&textproto.Error{Code: 554, Msg: "mx.10.1.2.3.internal takes no mail"}, failed},
		{tls.RecordHeaderError{Msg: "first record of 10.1.2.3 is none"}, failed},
		{&net.AddrError{Err: "mismatch", Addr: "10.1.2.3"}, failed},
		{errors.New("an error that nobody foresaw at 10.1.2.3"), failed},
		{&net.OpError{Op: "read", Net: "tcp", Addr: at, Err: os.ErrDeadlineExceeded}, "no response in time"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "mail.internal",
			Server: "10.1.2.3:53", IsNotFound: true}}, "the host name cannot be resolved"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: ErrAddress}, ErrAddress.Error()},
		{&tls.CertificateVerificationError{Err: errors.New("10.1.2.3 is not in it")}, "the host's certificate is not trusted"},
	} {
		shown := Hide(t.Context(), c.err)
		if got := shown.Error(); got != c.want || Failure(t.Context(), c.err) != c.want {
			t.Errorf("%v: %q", c.err, got)
		}
		if text := fmt.Sprintf("%v %+v %s %q", shown, shown, shown, shown); strings.Contains(text, "10.1.2.3") {
			t.Errorf("%v: %s", c.err, text)
		}
		if Detail(shown).Error() != c.err.Error() || Detail(c.err).Error() != c.err.Error() {
			t.Errorf("%v: the operator reads %v", c.err, Detail(shown))
		}
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if got := Failure(late, refused); got != "no response in time" {
		t.Error(got)
	}
}

package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
)

// Attack is a hostile request for a protected page.
type Attack struct {
	Method string
	Target string
	Header []string
}

// oddHeaders are headers that servers reject or interpret differently.
func oddHeaders() []string {
	list := []string{
		"X-A : b", " X-A: b", "X A: b", ": b", "X-A", "X-A:", "X\x01A: b", "X-\u00e9: b", "X-A: \u00e9", "X-A: \xff",
		"X-A: b\r\n c", "X-A: b\n\tc",
		"Host: shop.example.com", "Host: other.example.com", "host: ", "Content-Length: 0", "Content-Length: -1",
		"Content-Length: 1x", "Content-Length: 5",
		"Transfer-Encoding: chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: identity",
		"Content-Length: 0\r\nTransfer-Encoding: chunked",
		"Expect: 100-continue", "Expect: 200-never",
		"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
		"Upgrade: websocket\r\nConnection: upgrade",
		"Connection: X-Original-URI, X-Original-Method", "Connection: Cookie, X-Forwarded-Host",
		"Connection: keep-alive, close", "Keep-Alive: timeout=0", "TE: trailers",
		"X-Original-URI: /about", "X-Original-Method: OPTIONS", "X-Original-URL: /about", "X-Rewrite-URL: /about",
		"X_Original_URI: /about", "X-HTTP-Method-Override: OPTIONS",
		"X-Proofline-Ticket: 00000000-0000-4000-8000-000000000001", "X-Proofline-Room: sale", "X_Proofline_Ticket: x",
		"X-Proofline-Status: 502", "X-Proofline-Verdict: score=100", "Proofline-Command: release",
		"X-Forwarded-Host: about.example.com", "X-Forwarded-Prefix: /about", "Forwarded: host=about.example.com",
		"X-Accel-Redirect: /about", "Authorization: Bearer x",
		"Cookie: __Host-proofline-pass.sale=", "Cookie: __Host-proofline-pass.sale=" + strings.Repeat("A", 3000),
		"Cookie: " + strings.Repeat("a=b; ", 1500), "Range: bytes=0-0", "If-None-Match: *",
		"Accept-Encoding: gzip", "Origin: null", "Referer: http://shop.example.com/" + strings.Repeat("x", 5000),
		"User-Agent: " + strings.Repeat("x", 6000),
	}
	for c := byte(0); c <= ' '; c++ {
		if c != '\n' && c != '\r' && c != '\t' && c != ' ' {
			list = append(list, "X-A: "+string(rune(c)))
		}
	}
	for _, size := range []int{7 << 10, 9 << 10, 20 << 10, 40 << 10, 70 << 10, 1 << 20} {
		list = append(list, "X-A: "+strings.Repeat("x", size))
	}
	for _, count := range []int{90, 110, 1100} {
		list = append(list, strings.TrimSuffix(strings.Repeat("X-A: b\r\n", count), "\r\n"))
	}
	return append(list, "X-A: \x7f", "X-A: \x80", "X-A: a\x00b", "Cookie: a=\x01", "Accept: \x02", "User-Agent: \x03",
		"Cookie: a=\x7f\r\nCookie: b=\x1f")
}

// Climbs returns targets that some servers resolve to a protected page outside of the folder that
// the target begins with.
func Climbs() []string {
	var list []string
	for _, up := range []string{"..", "%2e%2e", ".%2e", "%2E.", "..;", "..;a=b", "..%3b", "..%20", "%252e%252e",
		"\uff0e\uff0e", "..%00", "...", ".."} {
		for _, slash := range []string{"/", "//", "%2f", "%2F", `\`, "%5c", "%252f", "/./", "/;/", "%2f%2f", `\/`} {
			for _, folder := range []string{"app/", ""} {
				list = append(list, "/"+up+slash+folder+"tickets", "/about/"+up+slash+up+slash+folder+"tickets",
					"/about"+slash+up+slash+up+slash+folder+"tickets")
			}
		}
	}
	return list
}

// Attacks returns hostile requests: a protected page with odd headers, and odd
// methods and protocols.
func Attacks() []Attack {
	var list []Attack
	for _, header := range oddHeaders() {
		list = append(list, Attack{http.MethodGet, "/tickets", []string{"Accept: text/html", header}})
	}
	for _, method := range []string{"get", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT",
		"PROPFIND", "PRI", "X", "GE\x01T", "GET\t", "@"} {
		list = append(list, Attack{method, "/tickets", []string{"Accept: text/html"}})
	}
	return list
}

// RunAttacks sends all attacks to a connector in front of [Site], and reports those
// that reach the site.
func RunAttacks(t *testing.T, addr string) {
	t.Helper()
	sendAll(t, addr, Attacks(), func(a Attack, r reply) {
		if r.header.Get(SiteHeader) != "" {
			t.Errorf("%s %s with %.80q gets past the line: status %d", a.Method, a.Target, a.Header, r.status)
		}
	})
}

// sendAll sends several attacks at a time, because some are answered only after a
// timeout of the connector, and checks the answers.
func sendAll(t *testing.T, addr string, attacks []Attack, check func(Attack, reply)) {
	t.Helper()
	const senders = 16
	replies, errs := make([]reply, len(attacks)), make([]error, len(attacks))
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for i := sender; i < len(attacks); i += senders {
				a := attacks[i]
				replies[i], errs[i] = try(t.Context(), addr, Case{Method: a.Method, Target: a.Target, Header: a.Header})
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	answers := map[int]int{}
	for i, r := range replies {
		answers[r.status]++
		check(attacks[i], r)
	}
	t.Logf("answers by status: %v", answers)
}

// RunClimbs sends all climbs to a connector in front of [Site], whose pages are
// below a folder such as /app. The site must not get a target that any server
// resolves to a path outside of the folder, or to a protected page.
func RunClimbs(t *testing.T, addr, folder string) {
	t.Helper()
	var climbs []Attack
	for _, target := range Climbs() {
		climbs = append(climbs, Attack{http.MethodGet, target, []string{"Accept: text/html"}})
	}
	sendAll(t, addr, climbs, func(a Attack, r reply) {
		if r.header.Get(SiteHeader) == "" {
			return
		}
		for _, seen := range []string{r.header.Get(seenTarget), r.header.Get(seenPath)} {
			if why := escapes(seen, folder); why != "" {
				t.Errorf("%q reaches the site as %q, which %s", a.Target, seen, why)
			}
		}
	})
}

// escapes describes how some server would misread a target; empty: no server would.
func escapes(target, folder string) string {
	for _, p := range Origins(target) {
		below, ok := strings.CutPrefix(path.Clean("/"+p), folder)
		switch {
		case !ok:
			return fmt.Sprintf("some server reads as %q, outside of %s", p, folder)
		case isProtected(below):
			return fmt.Sprintf("some server reads as %q, a page of the line", p)
		}
	}
	return ""
}

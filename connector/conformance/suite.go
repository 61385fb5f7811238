package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// fill returns a function that replaces these placeholders in a case:
//
//	{room} {net}                    URLs of the rooms
//	{rooms}                         prefix of the other rooms' URLs
//	{pass} {netpass}                new passes of these rooms
//	{used}                          pass of sale, redeemed by a client without a user agent
//	{cookie} {netcookie}            cookies of sessions with passes, as NAME=VALUE
//	{free}                          cookie of an unqueued session of market
//	{freechanging}                    the same; its visitor returns with a pass
//	{leaving} {freeleaving}         cookies of sessions that the site ends
//	{going} {freegoing}             cookies of sessions that the visitor ends
//	{over} {freeover}               cookies of sessions ended at another node, once the gate was set
//	{tied}                          cookie of a session bound to the network 127.0.0.0/24
//	{retry} {failopen}                 cookies of sessions of rooms that can fail
//	{retrypass} {failopenpass}         new passes of these rooms
//	{value} {netvalue} {freevalue}  values of these cookies
//	{foreign}                       pass signed with another key; see forgeries for more
func (s *suite) fill() func(string) string {
	pairs := []string{"{room}", s.URL(), "{rooms}", s.room(""), "{net}", s.Net(), "{pass}", s.pass(s.URL()),
		"{netpass}", s.pass(s.Net()), "{used}", s.used, "{retrypass}", s.pass(s.room("retry-page")),
		"{failopenpass}", s.pass(s.room("fail-open"))}
	for name, cookie := range s.cookies {
		_, value, _ := strings.Cut(cookie, "=")
		pairs = append(pairs, "{"+name+"}", cookie, "{"+strings.TrimSuffix(name, "cookie")+"value}", value)
	}
	if s.platform.isHTTPS {
		pairs = append(pairs, "http%3A%2F%2Fshop.example.com", "https%3A%2F%2Fshop.example.com",
			"http%253A%252F%252Fshop.example.com", "https%253A%252F%252Fshop.example.com",
			"Referer: http://shop.example.com",
			"Referer: https://shop.example.com",
			"Origin: http://shop.example.com", "Origin: https://shop.example.com", "Origin: https://shop.example.com",
			"Origin: http://shop.example.com")
	}
	for name, token := range s.forged {
		pairs = append(pairs, "{"+name+"}", token)
	}
	return strings.NewReplacer(pairs...).Replace
}

// suite is the test of one connector.
type suite struct {
	*Room
	platform   Platform
	addr       string
	used       string
	cookies    map[string]string
	forged     map[string]string
	gateState  string            // state of the gate, as in Case.Gate
	begun      map[string]bool   // ids of unqueued sessions
	passes     map[string]string // passes of sessions, by name of the cookie
	left       map[string]bool   // ended sessions, by kind of visitor or name
	turned     uint64            // visitors turned away at the open gate
	failedOpen uint64            // requests admitted while a room was out of reach
	observed   uint64            // requests for the room that is off
	brief      string            // pass of a session that was extended
}

// Settings of the gate. gateCrowded has the lowest possible limit for a network.
var (
	gateOpen    = gate{true, 1000, 10_000}
	gateFull    = gate{true, 0, 10_000}
	gateCrowded = gate{true, 1000, 1}
	gateShut    = gate{false, 0, 10_000}
)

// crowd is the lowest limit of unqueued sessions that a network may begin in a minute.
const crowd = 10

// enterAll begins sessions of every kind.
func (s *suite) enterAll(t *testing.T) {
	t.Helper()
	s.used, s.passes, s.left, s.forged = s.pass(s.URL()), map[string]string{}, map[string]bool{}, s.forgeries(t)
	s.cookies = map[string]string{"cookie": enter(t, s.addr, s.used), "netcookie": enter(t, s.addr, s.pass(s.Net()))}
	for name, room := range map[string]string{"tied": "tied", "retry": "retry-page", "failopen": "fail-open"} {
		s.cookies[name] = enter(t, s.addr, s.pass(s.room(room)))
	}
	for _, name := range []string{"leaving", "going", "over"} {
		s.passes[name] = s.pass(s.URL())
		s.cookies[name] = enter(t, s.addr, s.passes[name])
	}
	s.setGate(t, "open")
	for _, name := range []string{"free", "freeleaving", "freechanging", "freegoing", "freeover"} {
		cookie, isBegun := s.enterUnqueued(t)
		if !isBegun {
			t.Fatal("no unqueued session begins")
		}
		s.cookies[name] = cookie
	}
	pass, err := base64ID(idOf(s.passes["over"]))
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isForged = true
	s.ended = map[string][]string{s.URL(): {pass}, s.Net(): {s.unqueuedID(t, "freeover")}}
}

// enterUnqueued requests a page of market, and returns the cookie if an unqueued
// session begins.
func (s *suite) enterUnqueued(t testing.TB) (cookie string, isBegun bool) {
	t.Helper()
	r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/market", Header: []string{"Accept: text/html"}})
	switch s.kind(r) {
	case "begun":
		s.begun[parseUnqueuedID(t, r.cookies[0].Value)] = true
		return r.cookies[0].Name + "=" + r.cookies[0].Value, true
	case "market":
	default:
		t.Fatalf("a page of market: status %d, header %v", r.status, r.header)
	}
	return "", false
}

// unqueuedID returns the id of the unqueued session with a name.
func (s *suite) unqueuedID(t testing.TB, name string) string {
	_, value, _ := strings.Cut(s.cookies[name], "=")
	return parseUnqueuedID(t, value)
}

// base64ID returns a pass's id in the form used in reports.
func base64ID(id string) (string, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	return base64.RawURLEncoding.EncodeToString(b), err
}

// forgeries returns invalid passes.
func (s *suite) forgeries(t *testing.T) map[string]string {
	t.Helper()
	public, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now, own := time.Now(), s.private.Public()
	with := func(name string, value any) jwt.MapClaims {
		claims := s.claims(s.URL())
		claims[name] = value
		return claims
	}
	eddsa := jwt.SigningMethodEdDSA
	publicBytes, _ := own.(ed25519.PublicKey)
	return map[string]string{
		"foreign":       s.sign(eddsa, foreign, s.claims(s.URL()), nil),
		"none":          s.sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, s.claims(s.URL()), nil),
		"confused":      s.sign(jwt.SigningMethodHS256, []byte(publicBytes), s.claims(s.URL()), nil),
		"confused-text": s.sign(jwt.SigningMethodHS256, []byte(s.publicKey()), s.claims(s.URL()), nil),
		"own-key": s.sign(eddsa, foreign, s.claims(s.URL()), map[string]any{"jwk": map[string]string{
			"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(public),
		}}),
		"own-address": s.sign(eddsa, foreign, s.claims(s.URL()), map[string]any{"jku": "http://127.0.0.1:1/jwks.json"}),
		"other-kid":   s.sign(eddsa, s.private, s.claims(s.URL()), map[string]any{"kid": "../k"}),
		"expired":     s.sign(eddsa, s.private, with("exp", now.Add(-time.Minute).Unix()), nil),
		"future":      s.sign(eddsa, s.private, with("nbf", now.Add(time.Minute).Unix()), nil),
		"issued":      s.sign(eddsa, s.private, with("iat", now.Add(time.Minute).Unix()), nil),
		"endless":     s.sign(eddsa, s.private, with("exp", nil), nil),
		"elsewhere":   s.sign(eddsa, s.private, s.claims(s.URL()+"2"), nil),
		"other-site":  s.sign(eddsa, s.private, with("aud", "queue.example.net/r/sale"), nil),
		"mixed":       s.sign(eddsa, s.private, with("aud", strings.TrimPrefix(s.Net(), "http://")), nil),
		"notuuid":     s.sign(eddsa, s.private, with("sub", "me"), nil),
		"id-path":     s.sign(eddsa, s.private, with("jti", "../../market/passes/x"), nil),
	}
}

// setGate sets the gate, and waits until all nodes know. A node's second report
// after the change proves that it has read the reply to the first. Platforms that
// send no reports learn of the change with the next visitor.
func (s *suite) setGate(t testing.TB, to string) {
	t.Helper()
	s.mu.Lock()
	s.gateState = to
	for node := range s.reports {
		s.reports[node] = 0
	}
	s.gate = map[string]gate{"open": gateOpen, "full": gateFull, "shut": gateShut, "crowded": gateCrowded}[to]
	s.mu.Unlock()
	if s.platform.isSplit {
		time.Sleep(replyTTL + 100*time.Millisecond)
		return
	}
	s.untilReceived(t, "the gate is "+to, func() bool {
		for _, reports := range s.reports {
			if reports < 2 {
				return false
			}
		}
		return len(s.reports) > 0
	})
	if to == "crowded" {
		s.fillNetwork(t)
	}
}

// fillNetwork begins as many unqueued sessions as one network may, including those
// begun before.
func (s *suite) fillNetwork(t testing.TB) {
	t.Helper()
	for range crowd {
		if _, isBegun := s.enterUnqueued(t); !isBegun {
			return
		}
	}
}

// untilReceived sends requests until the server has received something, because at the edge nothing
// happens between requests. If there are two connectors behind an address, one of them gets the
// requests with cookies.
func (s *suite) untilReceived(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		for _, header := range [][]string{nil, {"Cookie: a=b"}} {
			ask := Case{Method: http.MethodGet, Target: "/about", Header: header}
			if r := exchange(t, s.addr, ask); s.kind(r) != "site" {
				t.Fatalf("an unprotected page: status %d, header %v", r.status, r.header)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return ok()
	})
}

// checkReceived checks what the server has received, and that forged rules are refused.
func (s *suite) checkReceived(t *testing.T) {
	t.Helper()
	s.untilReceived(t, "all events", func() bool {
		for id := range s.begun {
			if !s.received.started[id] {
				return false
			}
		}
		isCounted := s.received.turned >= s.turned && s.received.failedOpen >= s.failedOpen &&
			s.receivedObserved() >= s.observed
		return isCounted && s.hasReceivedEnds(t) && s.received.touched[idOf(s.brief)]
	})
	s.mu.Lock()
	observed := s.receivedObserved()
	s.mu.Unlock()
	if observed > s.observed {
		t.Errorf("the server received %d observed requests, want %d", observed, s.observed)
	}
	if s.received.failedOpen != s.failedOpen {
		t.Errorf("the server received %d fail-open requests, want %d", s.received.failedOpen, s.failedOpen)
	}
	if s.received.turned > s.turned {
		t.Errorf("the server received %d turned away, want at most %d", s.received.turned, s.turned)
	}
	if testing.Short() {
		return // connectors poll the rules every 10 s
	}
	s.untilReceived(t, "forged rules were served", func() bool { return s.forgedServed > 0 })
	for range 5 {
		ask := Case{Method: http.MethodGet, Target: "/tickets", Header: []string{"Accept: text/html"}}
		r := exchange(t, s.addr, ask)
		if s.kind(r) != "room" {
			t.Errorf("with forged rules: status %d, header %v", r.status, r.header)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// receivedObserved returns the reported number of requests for the room that is off.
// The caller holds the lock.
func (s *suite) receivedObserved() (all uint64) {
	for _, n := range s.received.observed {
		all += n
	}
	if s.platform.isSplit { // such platforms do not report counts
		return s.observed
	}
	return all
}

// hasReceivedEnds reports whether the server has received the ends of all sessions
// that ended. The caller holds the lock.
func (s *suite) hasReceivedEnds(t testing.TB) bool {
	for what, name := range map[string]string{"ticket": "leaving", "free": "freeleaving", "changed": "freechanging",
		"going": "going", "freegoing": "freegoing"} {
		if !s.left[what] {
			continue
		}
		if pass, ok := s.passes[name]; ok && !s.received.released[idOf(pass)] || !ok &&
			!s.received.ended[s.unqueuedID(t, name)] {
			return false
		}
	}
	return true
}

// Enter enters a connector with a new pass, and returns the session cookie as
// NAME=VALUE.
func (r *Room) Enter(t testing.TB, addr string) string {
	t.Helper()
	return enter(t, addr, r.pass(r.URL()))
}

func enter(t testing.TB, addr, pass string) string {
	t.Helper()
	first := exchange(t, addr, Case{Method: http.MethodGet, Target: "/tickets?proofline_pass=" + pass,
		Header: []string{"Accept: text/html"}})
	if len(first.cookies) != 1 {
		t.Fatalf("cannot enter: status %d, header %v", first.status, first.header)
	}
	return first.cookies[0].Name + "=" + first.cookies[0].Value
}

// parseUnqueuedID returns the id of an unqueued session in a cookie's value, which
// has no ticket and no pass.
func parseUnqueuedID(t testing.TB, value string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(b) != 97+32 || !bytes.Equal(b[9:25], make([]byte, 16)) {
		t.Errorf("%q is not the cookie of an unqueued session", value)
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b[25:41])
}

// reply is a response; zero: none.
type reply struct {
	status  int
	body    string // the body, up to a limit
	header  http.Header
	cookies []*http.Cookie
}

// exchange sends a request as it is, because HTTP clients refuse to send some of them.
func exchange(t testing.TB, addr string, c Case) reply {
	t.Helper()
	r, err := try(t.Context(), addr, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try does the same outside of a test's goroutine.
func try(ctx context.Context, addr string, c Case) (reply, error) {
	var d net.Dialer
	if c.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.From)}
	}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return reply{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	protocol := c.Protocol
	if protocol == "" {
		protocol = "HTTP/1.1"
	}
	lines := append([]string{c.Method + " " + c.Target + " " + protocol}, c.Header...)
	has := func(name string) bool {
		return slices.ContainsFunc(c.Header, func(h string) bool { return strings.HasPrefix(h, name+":") })
	}
	if !has("Host") {
		lines = append(lines, "Host: shop.example.com")
	}
	if !has("Connection") {
		lines = append(lines, "Connection: close")
	}
	if _, err := io.WriteString(conn, strings.Join(append(lines, "", ""), "\r\n")); err != nil {
		return reply{}, err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.Method})
	if err != nil {
		return reply{header: http.Header{}}, nil
	}
	var body []byte
	if r.StatusCode != http.StatusSwitchingProtocols {
		body, _ = io.ReadAll(io.LimitReader(r.Body, 1<<20))
		_ = r.Body.Close()
	}
	return reply{r.StatusCode, string(body), r.Header, r.Cookies()}, nil
}

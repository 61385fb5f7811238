package conformance

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// In targets and headers of cases stand for:
//
//	{room} {net}          the URLs of the rooms
//	{pass} {netpass}      fresh passes of them
//	{used}                a pass of sale that was used up by who sent no user agent
//	{cookie} {netcookie}  the cookies of sessions with passes, as NAME=VALUE
//	{free}                that of a free session of market
//	{freechanging}        that of one whose visitor comes with a pass
//	{leaving} {freeleaving}  those of sessions that end
//	{value} {netvalue} {freevalue}  the values of these cookies alone
//	{foreign}             a pass of another key, and so on: see forged
func (s *suite) fill() func(string) string {
	pairs := []string{"{room}", s.URL(), "{net}", s.Net(), "{pass}", s.pass(s.URL()), "{netpass}", s.pass(s.Net()), "{used}", s.used}
	for name, cookie := range s.cookies {
		_, value, _ := strings.Cut(cookie, "=")
		pairs = append(pairs, "{"+name+"}", cookie, "{"+strings.TrimSuffix(name, "cookie")+"value}", value)
	}
	if s.platform.isHTTPS {
		pairs = append(pairs, "http%3A%2F%2Fshop.example.com", "https%3A%2F%2Fshop.example.com")
	}
	for name, token := range s.forged {
		pairs = append(pairs, "{"+name+"}", token)
	}
	return strings.NewReplacer(pairs...).Replace
}

// suite is a connector under test.
type suite struct {
	*Room
	platform Platform
	addr     string
	used     string
	leaves   string // a pass whose session ends
	cookies  map[string]string
	forged   map[string]string
	at       string          // what the gate is
	begun    map[string]bool // ids of free sessions
	ends     string          // that of one that ends
	changes  string          // that of one whose visitor comes with a pass
	left     map[string]bool // kinds of visitors who left
	isFull   bool            // somebody was turned away
}

// begin has visitors with all kinds of sessions.
func (s *suite) begin(t *testing.T) {
	t.Helper()
	s.used, s.leaves = s.pass(s.URL()), s.pass(s.URL())
	s.cookies = map[string]string{
		"cookie": enter(t, s.addr, s.used), "netcookie": enter(t, s.addr, s.pass(s.Net())), "leaving": enter(t, s.addr, s.leaves),
	}
	s.set(t, "open")
	for _, name := range []string{"free", "freeleaving", "freechanging"} {
		r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/market", Header: []string{"Accept: text/html"}})
		if s.kind(r) != "begun" {
			t.Fatalf("no free session begins: status %d, header %v", r.status, r.header)
		}
		s.cookies[name] = r.cookies[0].Name + "=" + r.cookies[0].Value
		s.begun[freeID(t, r.cookies[0].Value)] = true
	}
	id := func(name string) string {
		_, value, _ := strings.Cut(s.cookies[name], "=")
		return freeID(t, value)
	}
	s.ends, s.changes, s.left, s.forged = id("freeleaving"), id("freechanging"), map[string]bool{}, s.forgeries(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isForged = true
}

// forgeries are passes that are none.
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
		"nobody":      s.sign(eddsa, s.private, with("sub", "me"), nil),
		"id-path":     s.sign(eddsa, s.private, with("jti", "../../market/passes/x"), nil),
	}
}

// set changes the gate, and waits until all nodes know: the report after the
// one that is answered first was made by somebody who has read that answer.
// Where nothing is reported the next visitor asks.
func (s *suite) set(t testing.TB, to string) {
	t.Helper()
	s.mu.Lock()
	s.at = to
	for node := range s.reports {
		s.reports[node] = 0
	}
	s.gate = map[string]gate{"open": {true, 1000}, "full": {true, 0}, "shut": {false, 0}}[to]
	s.mu.Unlock()
	if s.platform.isSplit {
		time.Sleep(answerLate + 100*time.Millisecond)
		return
	}
	s.untilHeard(t, "the gate is "+to, func() bool {
		for _, reports := range s.reports {
			if reports < 2 {
				return false
			}
		}
		return len(s.reports) > 0
	})
}

// untilHeard sends requests until the server has heard something: at the edge
// nothing happens between them. Of two connectors behind one address, one gets
// those with cookies.
func (s *suite) untilHeard(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		for _, header := range [][]string{nil, {"Cookie: a=b"}} {
			if r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/about", Header: header}); s.kind(r) != "site" {
				t.Fatalf("a free page: status %d, header %v", r.status, r.header)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return ok()
	})
}

// end looks at what the server was told, and whether forged rules were taken.
func (s *suite) end(t *testing.T) {
	t.Helper()
	s.untilHeard(t, "all that happened", func() bool {
		for id := range s.begun {
			if !s.told.started[id] {
				return false
			}
		}
		return (!s.left["ticket"] || s.told.released[idOf(s.leaves)]) && (!s.left["free"] || s.told.ended[s.ends]) && (!s.left["changed"] || s.told.ended[s.changes]) && (!s.isFull || s.told.turned > 0)
	})
	if testing.Short() {
		return // rules are asked for every 10 s
	}
	s.untilHeard(t, "forged rules were had", func() bool { return s.given > 0 })
	for range 5 {
		r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/tickets", Header: []string{"Accept: text/html"}})
		if s.kind(r) != "room" {
			t.Errorf("with forged rules: status %d, header %v", r.status, r.header)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Enter comes to a connector with a fresh pass, and returns the cookie of the
// session as NAME=VALUE.
func (r *Room) Enter(t testing.TB, addr string) string {
	t.Helper()
	return enter(t, addr, r.pass(r.URL()))
}

func enter(t testing.TB, addr, pass string) string {
	t.Helper()
	first := exchange(t, addr, Case{Method: http.MethodGet, Target: "/tickets?proofline_pass=" + pass, Header: []string{"Accept: text/html"}})
	if len(first.cookies) != 1 {
		t.Fatalf("nobody enters: status %d, header %v", first.status, first.header)
	}
	return first.cookies[0].Name + "=" + first.cookies[0].Value
}

// freeID returns the id of the free session in a cookie's value, which has no
// ticket and no pass.
func freeID(t testing.TB, value string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(b) != 81+32 || !bytes.Equal(b[9:25], make([]byte, 16)) {
		t.Errorf("%q is no cookie of a free session", value)
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b[25:41])
}

// reply is an answer; zero: there was none.
type reply struct {
	status  int
	body    string // as much of it as is looked at
	header  http.Header
	cookies []*http.Cookie
}

// exchange sends a request as it is: no client would send all of them.
func exchange(t testing.TB, addr string, c Case) reply {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
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
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.Method})
	if err != nil {
		return reply{header: http.Header{}}
	}
	var body []byte
	if r.StatusCode != http.StatusSwitchingProtocols {
		body, _ = io.ReadAll(io.LimitReader(r.Body, 1<<20))
		_ = r.Body.Close()
	}
	return reply{r.StatusCode, string(body), r.Header, r.Cookies()}
}

package conformance

import (
	"bufio"
	"bytes"
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

// In targets and headers of cases stand for:
//
//	{room} {net}          the URLs of the rooms
//	{rooms}               what those of the others begin with
//	{pass} {netpass}      fresh passes of them
//	{used}                a pass of sale that was used up by who sent no user agent
//	{cookie} {netcookie}  the cookies of sessions with passes, as NAME=VALUE
//	{free}                that of a free session of market
//	{freechanging}        that of one whose visitor comes with a pass
//	{leaving} {freeleaving}  those of sessions that the site ends
//	{going} {freegoing}   those of sessions that the visitor ends
//	{over} {freeover}     those of sessions that ended at another node, once the gate was set
//	{tied}                that of a session that is tied to the network 127.0.0.0/24
//	{held} {opened}       those of sessions of rooms that may fail
//	{heldpass} {openedpass}  fresh passes of these
//	{value} {netvalue} {freevalue}  the values of these cookies alone
//	{foreign}             a pass of another key, and so on: see forged
func (s *suite) fill() func(string) string {
	pairs := []string{"{room}", s.URL(), "{rooms}", s.room(""), "{net}", s.Net(), "{pass}", s.pass(s.URL()), "{netpass}", s.pass(s.Net()), "{used}", s.used, "{heldpass}", s.pass(s.room("holding")), "{openedpass}", s.pass(s.room("opening"))}
	for name, cookie := range s.cookies {
		_, value, _ := strings.Cut(cookie, "=")
		pairs = append(pairs, "{"+name+"}", cookie, "{"+strings.TrimSuffix(name, "cookie")+"value}", value)
	}
	if s.platform.isHTTPS {
		pairs = append(pairs, "http%3A%2F%2Fshop.example.com", "https%3A%2F%2Fshop.example.com",
			"http%253A%252F%252Fshop.example.com", "https%253A%252F%252Fshop.example.com", "Referer: http://shop.example.com", "Referer: https://shop.example.com",
			"Origin: http://shop.example.com", "Origin: https://shop.example.com", "Origin: https://shop.example.com", "Origin: http://shop.example.com")
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
	cookies  map[string]string
	forged   map[string]string
	at       string            // what the gate is
	begun    map[string]bool   // ids of free sessions
	passes   map[string]string // of sessions, by the names of their cookies
	left     map[string]bool   // what ended: kinds of visitors, and names of sessions
	turned   uint64            // visitors who were turned away
	opened   uint64            // requests let in while a room was out of reach
	observed uint64            // requests that would have waited for the room off
	brief    string            // a pass whose session slid
}

// What the gate may be. With gateCrowded one network may begin as little as ever.
var (
	gateOpen    = gate{true, 1000, 10_000}
	gateFull    = gate{true, 0, 10_000}
	gateCrowded = gate{true, 1000, 1}
	gateShut    = gate{false, 0, 10_000}
)

// crowd is how many free sessions of one network begin in a minute at least.
const crowd = 10

// begin has visitors with all kinds of sessions.
func (s *suite) begin(t *testing.T) {
	t.Helper()
	s.used, s.passes, s.left, s.forged = s.pass(s.URL()), map[string]string{}, map[string]bool{}, s.forgeries(t)
	s.cookies = map[string]string{"cookie": enter(t, s.addr, s.used), "netcookie": enter(t, s.addr, s.pass(s.Net()))}
	for name, room := range map[string]string{"tied": "tied", "held": "holding", "opened": "opening"} {
		s.cookies[name] = enter(t, s.addr, s.pass(s.room(room)))
	}
	for _, name := range []string{"leaving", "going", "over"} {
		s.passes[name] = s.pass(s.URL())
		s.cookies[name] = enter(t, s.addr, s.passes[name])
	}
	s.set(t, "open")
	for _, name := range []string{"free", "freeleaving", "freechanging", "freegoing", "freeover"} {
		cookie, isBegun := s.start(t)
		if !isBegun {
			t.Fatal("no free session begins")
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
	s.over = map[string][]string{s.URL(): {pass}, s.Net(): {s.freeID(t, "freeover")}}
}

// start asks for a page of market, and returns the cookie of the free session if
// one begins.
func (s *suite) start(t testing.TB) (cookie string, isBegun bool) {
	t.Helper()
	r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/market", Header: []string{"Accept: text/html"}})
	switch s.kind(r) {
	case "begun":
		s.begun[freeID(t, r.cookies[0].Value)] = true
		return r.cookies[0].Name + "=" + r.cookies[0].Value, true
	case "market":
	default:
		t.Fatalf("a page of market: status %d, header %v", r.status, r.header)
	}
	return "", false
}

// freeID returns the id of the free session of a name.
func (s *suite) freeID(t testing.TB, name string) string {
	_, value, _ := strings.Cut(s.cookies[name], "=")
	return freeID(t, value)
}

// base64ID returns the id of a pass as reports have it.
func base64ID(id string) (string, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	return base64.RawURLEncoding.EncodeToString(b), err
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
	s.gate = map[string]gate{"open": gateOpen, "full": gateFull, "shut": gateShut, "crowded": gateCrowded}[to]
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
	if to == "crowded" {
		s.crowd(t)
	}
}

// crowd has as many free sessions begin as one network may have, most of them
// perhaps before.
func (s *suite) crowd(t testing.TB) {
	t.Helper()
	for range crowd {
		if _, isBegun := s.start(t); !isBegun {
			return
		}
	}
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
		return s.hasHeardOfEnds(t) && s.told.turned >= s.turned && s.told.opened >= s.opened && s.told.touched[idOf(s.brief)] && s.toldObserved() >= s.observed
	})
	s.mu.Lock()
	observed := s.toldObserved()
	s.mu.Unlock()
	if observed > s.observed {
		t.Errorf("the server heard of %d that would have waited, but there were %d", observed, s.observed)
	}
	if s.told.opened != s.opened {
		t.Errorf("the server heard of %d who were let in, but there were %d", s.told.opened, s.opened)
	}
	if s.told.turned > s.turned {
		t.Errorf("the server heard of %d who were turned away, but there were %d", s.told.turned, s.turned)
	}
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

// toldObserved returns how many would have waited, as the server was told. The
// caller holds the lock.
func (s *suite) toldObserved() (all uint64) {
	for _, n := range s.told.observed {
		all += n
	}
	if s.platform.isSplit { // which reports what happens to sessions alone
		return s.observed
	}
	return all
}

// hasHeardOfEnds tells whether the server knows of all sessions that ended. The
// caller holds the lock.
func (s *suite) hasHeardOfEnds(t testing.TB) bool {
	for what, name := range map[string]string{"ticket": "leaving", "free": "freeleaving", "changed": "freechanging", "going": "going", "freegoing": "freegoing"} {
		if !s.left[what] {
			continue
		}
		if pass, ok := s.passes[name]; ok && !s.told.released[idOf(pass)] || !ok && !s.told.ended[s.freeID(t, name)] {
			return false
		}
	}
	return true
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
	if err != nil || len(b) != 97+32 || !bytes.Equal(b[9:25], make([]byte, 16)) {
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
	if c.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.From)}
	}
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

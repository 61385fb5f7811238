package connector

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/connector/conformance"

	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/session"
)

// TestForgedPasses tests that invalid passes are refused.
func TestForgedPasses(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	q := s.queue
	public, _ := q.private.Public().(ed25519.PublicKey)
	_, foreign, _ := ed25519.GenerateKey(rand.Reader)
	with := func(name string, value any) jwt.MapClaims {
		c := q.claims()
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return c
	}
	by := func(method jwt.SigningMethod, key any, header map[string]any) string {
		token := jwt.NewWithClaims(method, q.claims())
		token.Header["kid"] = q.kid
		for name, value := range header {
			token.Header[name] = value
		}
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	now := s.clock.now()
	good := q.pass()
	parts := strings.Split(good, ".")
	own := map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(foreign.Public().(ed25519.PublicKey))}
	forged := map[string]string{
		"empty": "", "text": "pass", "dots": "..", "no signature": parts[0] + "." + parts[1] + ".", "truncated": good[:len(good)-1], "cut": good[:len(good)/2],
		"two more parts":     good + ".a.b",
		"padding":            good + "=",
		"alg none":           by(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"HS256 with x":       by(jwt.SigningMethodHS256, []byte(public), nil),
		"HS256 with text":    by(jwt.SigningMethodHS256, []byte(base64.RawURLEncoding.EncodeToString(public)), nil),
		"HS256 with PEM":     by(jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil),
		"foreign key":        by(jwt.SigningMethodEdDSA, foreign, nil),
		"own key in header":  by(jwt.SigningMethodEdDSA, foreign, map[string]any{"jwk": own}),
		"address of a key":   by(jwt.SigningMethodEdDSA, foreign, map[string]any{"jku": "https://evil.example.net/jwks.json"}),
		"good with jwk":      q.sign(q.claims(), map[string]any{"jwk": own}),
		"critical":           q.sign(q.claims(), map[string]any{"crit": []string{"exp"}}),
		"wrong kid":          q.sign(q.claims(), map[string]any{"kid": "k2"}),
		"no kid":             q.sign(q.claims(), map[string]any{"kid": nil}),
		"kid as number":      q.sign(q.claims(), map[string]any{"kid": 1}),
		"kid as path":        q.sign(q.claims(), map[string]any{"kid": "../../k1"}),
		"kid as SQL":         q.sign(q.claims(), map[string]any{"kid": "k1' or '1'='1"}),
		"kid as list":        q.sign(q.claims(), map[string]any{"kid": []string{"k1"}}),
		"expired":            q.sign(with("exp", now.Add(-6*time.Second).Unix()), nil),
		"no expiry":          q.sign(with("exp", nil), nil),
		"future":             q.sign(with("nbf", now.Add(6*time.Second).Unix()), nil),
		"no nbf":             q.sign(with("nbf", nil), nil),
		"made in future":     q.sign(with("iat", now.Add(time.Hour).Unix()), nil),
		"other room":         q.sign(with("iss", q.url()+"2"), nil),
		"other spelling":     q.sign(with("iss", strings.ToUpper(q.url())), nil),
		"no issuer":          q.sign(with("iss", nil), nil),
		"other origin":       q.sign(with("aud", "queue.example.net/r/sale"), nil),
		"one origin of two":  q.sign(with("aud", []string{q.origin(), "other"}), nil),
		"no audience":        q.sign(with("aud", nil), nil),
		"no ticket":          q.sign(with("sub", nil), nil),
		"ticket as text":     q.sign(with("sub", "me"), nil),
		"ticket in capitals": q.sign(with("sub", strings.ToUpper(newUUID())+""), nil),
		"no id":              q.sign(with("jti", nil), nil),
		"id as path":         q.sign(with("jti", "../sessions/touch?"), nil),
		"id as other path":   q.sign(with("jti", newUUID()[:35]+"/"), nil),
		"long":               q.sign(with("x", strings.Repeat("x", 2048)), nil),
	}
	for name, token := range forged {
		r := s.get("/tickets?proofline_pass=" + url.QueryEscape(token))
		s.isQueued(name, r)
		if len(r.Cookies()) > 0 || strings.Contains(r.Header.Get("Location"), "proofline_pass") {
			t.Errorf("%s: cookies %v, to %s", name, r.Cookies(), r.Header.Get("Location"))
		}
	}
	if heard := q.said(); len(heard) != 0 {
		t.Errorf("the room was asked: %q", heard)
	}
	s.enter(good)
	for range 3 {
		s.isQueued("replayed by another", s.get("/tickets?proofline_pass="+good, "User-Agent: other"))
	}
	if heard := q.said(); len(heard) != 2 {
		t.Errorf("the room was asked again: %q", heard)
	}
	s.clock.pass(30 * time.Second)
	for _, agent := range []string{"", "other", "third"} {
		s.isQueued("replayed later", s.get("/tickets?proofline_pass="+good, "User-Agent: "+agent))
	}
	if heard := q.said(); len(heard) != 2 {
		t.Errorf("the room was asked later: %q", heard)
	}
	elsewhere := q.claims()
	q.mu.Lock()
	q.redeemed["/passes/"+elsewhere["jti"].(string)+"/redeem"] = use{"another", now} // by another node
	q.mu.Unlock()
	for range 3 {
		s.isQueued("replayed at another node", s.get("/tickets?proofline_pass="+q.sign(elsewhere, nil)))
	}
	if heard := q.said(); len(heard) != 3 {
		t.Errorf("the room was asked again: %q", heard)
	}
}

// TestLostResponse loses the room's response to a pass: for a while the same client
// enters with it, at every node, and other clients do not.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")} })
	const agent, from = "User-Agent: phone", "X-Forwarded-For: 203.0.113.5"
	pass := s.queue.pass()
	s.queue.isLost.Store(true)
	if r := s.get("/tickets?proofline_pass="+pass, agent, from); r.StatusCode != http.StatusServiceUnavailable ||
		len(s.got) > 0 {
		t.Fatalf("status %d", r.StatusCode)
	}
	for what, headers := range map[string][]string{"another program": {"User-Agent: other", from},
		"another network": {agent, "X-Forwarded-For: 203.0.112.5"}} {
		s.queue.isDown.Store(false)
		s.isQueued(what, s.get("/tickets?proofline_pass="+pass, headers...))
	}
	s.clock.pass(10 * time.Second)
	for range 2 { // the second one because the response to us was lost
		if r := s.get("/tickets?proofline_pass="+pass, agent,
			"X-Forwarded-For: 203.0.113.77"); r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
			t.Errorf("the same client: status %d", r.StatusCode)
		}
	}
	s.clock.pass(21 * time.Second)
	s.isQueued("later", s.get("/tickets?proofline_pass="+pass, agent, from))
	if n := s.Stats(); n.Redeemed != 2 || n.Refused != 3 {
		t.Errorf("counts %+v", n)
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	seen := map[string]bool{}
	for _, who := range s.queue.clients {
		if seen[who] = true; len(who) != 22 {
			t.Errorf("client %q", who)
		}
	}
	if len(seen) != 3 || s.queue.clients[0] != s.queue.clients[len(s.queue.clients)-1] {
		t.Errorf("clients %q", s.queue.clients)
	}
}

// TestUnknownKeys tests that keys are fetched again, but not for every forged pass.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	before := s.queue.fetched.Load()
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	s.queue.mu.Lock()
	s.queue.private, s.queue.kid = private, "k2"
	s.queue.mu.Unlock()
	s.enter(s.queue.pass())
	for range 20 {
		s.isQueued("wrong kid",
			s.get("/tickets?proofline_pass="+s.queue.sign(s.queue.claims(), map[string]any{"kid": newUUID()})))
	}
	if n := s.queue.fetched.Load() - before; n != 1 {
		t.Errorf("keys were fetched %d times", n)
	}
	s.clock.pass(10 * time.Second)
	s.get("/tickets?proofline_pass=" + s.queue.sign(s.queue.claims(), map[string]any{"kid": "k3"}))
	if n := s.queue.fetched.Load() - before; n != 2 {
		t.Errorf("keys were fetched %d times", n)
	}
}

// TestTamperedCookies tests that no cookie is accepted with a changed byte, or elsewhere.
func TestTamperedCookies(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	name, value, _ := strings.Cut(strings.TrimPrefix(cookie, "Cookie: "), "=")
	rm := s.current.Load().rooms["sale"]
	signer := session.NewSigner(testKey)
	var v session.Session
	for i := range len(value) {
		for _, c := range []byte("AB_-9%") {
			if changed := value[:i] + string(c) + value[i+1:]; changed != value && signer.Parse(changed, &v) {
				t.Fatalf("byte %d may be %c", i, c)
			}
		}
	}
	for what, c := range map[string]string{
		"truncated": name + "=" + value[:len(value)-1], "longer": name + "=" + value + "A", "padded": name + "=" + value + "=", "doubled": name + "=" + value + value,
		"empty": name + "=", "short": name + "=AAAA", "of another room": name + "2=" + value, "in capitals": strings.ToUpper(name) + "=" + value,
		"without prefix": "proofline-pass.sale=" + value, "huge": name + "=" + strings.Repeat("A", 10_000),
	} {
		s.isQueued(what, s.get("/tickets", "Cookie: "+c))
	}
	s.isThrough("behind another of that name", s.get("/tickets", "Cookie: "+name+"=forged; "+name+"="+value))

	other := rm.Room.Room
	other.Origin += "x"
	if !signer.Parse(value, &v) {
		t.Fatal("own cookie is not read")
	}
	v.Room = session.NewRoom("other", other).New(v.Pass, netip.Addr{}, "", s.clock.now()).Room
	s.isQueued("signed for another room", s.get("/tickets", "Cookie: "+name+"="+signer.Format(&v)))
}

// TestTricks requests a protected page in ways that could bypass the check.
func TestTricks(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, target := range []string{
		"/TICKETS", "/%74ickets", "//tickets", "/x/../tickets", "/x/%2e%2e/tickets", "/tickets%2f7", `/tickets%5c7`, "/tickets/..;/a.css", "/tickets;a=b", "/;/tickets",
		"/tickets/x.css", "/tickets/favicon.ico", "http://shop.example.com/tickets", "http://evil.example.net/tickets", "/tickets?x=/free", "/tickets/../tickets",
	} {
		s.isQueued(target, s.get(target))
	}
	for _, h := range []string{
		"X-HTTP-Method-Override: OPTIONS", "X-Original-URL: /free", "X-Rewrite-URL: /free", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: localhost", "X-Forwarded-Proto: https",
		"Forwarded: for=127.0.0.1;host=localhost", "X-Proofline-Ticket: " + newUUID(), "X-Proofline-Room: sale", "Upgrade: websocket", "Connection: close, Cookie", "Host: localhost",
		"Host: evil.example.net", "Authorization: Bearer " + s.queue.pass(), "X-Real-IP: 127.0.0.1", "Cookie: __Host-proofline-pass.sale=1", "Purpose: prefetch", "Range: bytes=0-1",
	} {
		s.isQueued(h, s.get("/tickets", h))
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD", "PROPFIND"} {
		s.isQueued(method, s.send(method, "/tickets"))
	}
	r := s.get("/tickets", "X-Forwarded-Host: evil.example.net", "X-Forwarded-Proto: https")
	if got := toOf(t, r); got != "http://shop.example.com/tickets" {
		t.Errorf("an untrusted header sets the return URL %q", got)
	}
}

// TestOpenRedirect tests that redirects only go to the room or the connector's own host.
func TestOpenRedirect(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, target := range []string{"//evil.example.net/x/%2e%2e/tickets", "///evil.example.net/x/../tickets",
		`/%5cevil.example.net/x/../tickets`, "/tickets//evil.example.net", "http://evil.example.net/tickets"} {
		r := s.get(target + "?to=https://evil.example.net&proofline_pass=" + s.queue.pass())
		location := r.Header.Get("Location")
		u, err := url.Parse("http://shop.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		if u, err = u.Parse(strings.ReplaceAll(location, `\`, "/")); err != nil || u.Host != "shop.example.com" ||
			r.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %d to %q", target, r.StatusCode, location)
		}
	}
	r := s.get("/tickets?to=https://evil.example.net")
	s.isQueued("to", r)
	if got := toOf(t, r); got != "http://shop.example.com/tickets?to=https://evil.example.net" {
		t.Errorf("back to %q", got)
	}
}

func TestSplitQuery(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][2]string{
		"proofline_pass=a":                        {"a", ""},
		"b=1&proofline_pass=a&c=%20&c=2":          {"a", "b=1&c=%20&c=2"},
		"proofline_pass=a&proofline_pass=b&x&&y=": {"a", "x&&y="},
		"proofline%5fpass=a&x=proofline_pass":     {"a", "x=proofline_pass"},
		"%70roofline_pass=a%2Eb":                  {"a.b", ""},
		"proofline_pass":                          {"", ""},
		"proofline_pass=%zz&proofline_pass=b":     {"", ""},
	} {
		if token, rest, ok := splitQuery(query); !ok || token != want[0] || rest != want[1] {
			t.Errorf("%q: %q, %q, %t", query, token, rest, ok)
		}
	}
	for _, query := range []string{"", "a=proofline_pass=b", "Proofline_Pass=a", "proofline_passes=a",
		"%zzproofline_pass=a"} {
		if _, rest, ok := splitQuery(query); ok || rest != query {
			t.Errorf("%q has a pass", query)
		}
	}
}

// FuzzPass tests that changed passes are refused.
func FuzzPass(f *testing.F) {
	s := newShop(f, "")
	good := s.queue.pass()
	f.Add(good[1:])
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		if token == good {
			return
		}
		rm := s.current.Load().rooms["sale"]
		roomapi.IssuerOf(token)
		if _, err := rm.state.server.Verify(t.Context(), token); err == nil {
			t.Errorf("%q is taken for a pass", token)
		}
	})
}

// FuzzRequest tests that a site that reads paths like the standard library gets no
// protected one, whatever the HTTP server accepts.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{"/tickets", "/x/../tickets", "/tickets%2f..%2fx", "//tickets/;/..",
		"http://a/tickets", "/free?proofline_pass=x", "*", "//x/tickets", "/tickets#x", "/;%2F{/tickets",
		"/;%2fx/%2ftickets", `/\x/tickets`} {
		f.Add("GET " + target + " HTTP/1.1\r\nHost: shop.example.com\r\nAccept: text/html\r\n\r\n")
	}
	f.Add("POST /tickets HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 127.0.0.1\r\nUpgrade: websocket\r\nX-Proofline-Ticket: a\r\nCookie: __Host-proofline-pass.sale=AAAA\r\n\r\n")
	s := newShop(f, "")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		r.RemoteAddr = "198.51.100.7:1234"
		s.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for _, read := range append(conformance.Origins(r.URL.EscapedPath()), conformance.Origins(r.RequestURI)...) {
				if first, _, _ := strings.Cut(strings.TrimPrefix(read, "/"), "/"); lowerASCII(first) == "tickets" {
					t.Errorf("the site sees %q of %q", read, text)
				}
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Proofline-") {
					t.Errorf("the site sees %s of %q", name, text)
				}
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

// lowerASCII lowers only ASCII letters, as servers do.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// FuzzQuery tests that no pass stays in a query.
func FuzzQuery(f *testing.F) {
	f.Add("a=1&proofline_pass=x&b")
	f.Add("proofline%5Fpass=%")
	f.Fuzz(func(t *testing.T, query string) {
		_, rest, ok := splitQuery(query)
		if _, again, more := splitQuery(rest); more || again != rest || !ok && rest != query {
			t.Errorf("%q leaves %q", query, rest)
		}
		if values, err := url.ParseQuery(rest); err == nil && values.Has(PassParameter) {
			t.Errorf("%q leaves a pass: %q", query, rest)
		}
	})
}

// TestSecretsStayOut tests that passes appear neither in the log nor at the site.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	r := s.send("GET", "/tickets?proofline_pass="+s.queue.pass()+"x")
	var got map[string]string
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.StatusCode != http.StatusForbidden {
		t.Fatalf("status %d, %v", r.StatusCode, err)
	}
	for name, value := range got {
		if strings.Contains(value, "eyJ") {
			t.Errorf("%s is %q", name, value)
		}
	}
}

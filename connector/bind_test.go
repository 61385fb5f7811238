package connector

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	escape "html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/session"
)

const (
	phone   = "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
	updated = "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_2_1 like Mac OS X) AppleWebKit/606.2 (KHTML, like Gecko) Version/18.2 Mobile/15E149 Safari/605.1"
	laptop  = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
)

// opens are the headers of a browser that loads a page.
var opens = []string{"Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}

// fetches are the headers of a page's script.
var fetches = []string{"Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty", "Sec-Fetch-Site: same-origin"}

// browser is a browser with a key, like one with the connector's script.
type browser struct {
	*shop
	key     *ecdsa.PrivateKey
	session string // cookie
	subject string
}

// prove returns a proof cookie with a time.
func (b *browser) prove(at time.Time) string {
	b.Helper()
	hash := sha256.Sum256([]byte("proofline proof 1\n" + b.subject + "\n" + strconv.FormatInt(at.UnixMilli(), 10)))
	r, s, err := ecdsa.Sign(rand.Reader, b.key, hash[:])
	if err != nil {
		b.Fatal(err)
	}
	public, err := b.key.PublicKey.Bytes()
	if err != nil {
		b.Fatal(err)
	}
	var sum [64]byte
	r.FillBytes(sum[:32])
	s.FillBytes(sum[32:])
	whole := append(append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())), public...), sum[:]...)
	return "Cookie: __Host-proofline-proof.sale=" + base64.RawURLEncoding.EncodeToString(whole)
}

// visitsOn returns the data for the script of a page.
func visitsOn(t testing.TB, body string) (visits []visitToProve) {
	t.Helper()
	m := regexp.MustCompile(`data-visit="([^"]*)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no data in %s", body)
	}
	var said struct {
		Visits []visitToProve `json:"visits"`
	}
	if err := json.Unmarshal([]byte(escape.UnescapeString(m[1])), &said); err != nil {
		t.Fatal(err)
	}
	return said.Visits
}

// arrives returns a browser that has entered with a pass and tied its session to a key.
func (s *shop) arrives() *browser {
	s.Helper()
	r := s.get("/tickets?a=1&proofline_pass="+s.queue.pass(), append(opens, phone)...)
	if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther ||
		to != "/.proofline/bind?to="+url.QueryEscape("/tickets?a=1") {
		s.Fatalf("a browser with a pass: status %d to %q", r.StatusCode, to)
	}
	b := &browser{shop: s, session: "Cookie: " + strings.Split(r.Header.Get("Set-Cookie"), ";")[0]}
	page := s.get(r.Header.Get("Location"), append(opens, phone, b.session)...)
	body := bodyOf(s, page)
	visits := visitsOn(s, body)
	if len(visits) != 1 || visits[0].Name != "sale" || visits[0].IsBound ||
		!strings.Contains(body, `<noscript><meta http-equiv="refresh" content="0;url=/tickets?a=1"></noscript>`) {
		s.Fatalf("the page has %+v: %s", visits, body)
	}
	b.subject = visits[0].Subject
	var err error
	if b.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		s.Fatal(err)
	}
	done := s.send(http.MethodPost, BindPath, append(fetches, phone, b.session, b.prove(s.clock.now()))...)
	if done.StatusCode != http.StatusNoContent || len(done.Cookies()) != 1 {
		s.Fatalf("status %d, %v", done.StatusCode, done.Header)
	}
	b.session = "Cookie: " + strings.Split(done.Header.Get("Set-Cookie"), ";")[0]
	return b
}

// isSentToBind fails unless the browser is redirected to prove its key.
func (s *shop) isSentToBind(what string, r *http.Response) {
	s.Helper()
	if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), BindPath+"?to=") ||
		len(s.got) > 0 {
		s.Errorf("%s: status %d to %q, and the site got %d requests", what, r.StatusCode, r.Header.Get("Location"),
			len(s.got))
	}
	s.got = nil
}

// TestBrowserKey tests that a copied cookie is worthless without the browser's key.
func TestBrowserKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	b := s.arrives()
	proof := b.prove(s.clock.now())
	s.isThrough("the browser", s.get("/tickets", append(opens, phone, b.session, proof)...))
	s.isThrough("its scripts", s.get("/tickets", append(fetches, phone, b.session, proof)...))
	s.isThrough("after an update, in another network", s.get("/tickets",
		append(opens, updated, b.session, proof, someone(1))...))
	for i := range 100 {
		thief := []string{phone, b.session, someone(i)}
		s.isSentToBind("a copy", s.get("/tickets", append(opens, thief...)...))
		if r := s.get("/tickets", append(fetches, thief...)...); r.StatusCode != http.StatusForbidden || len(s.got) > 0 {
			t.Fatalf("a script with a copy: status %d, and the site got %d requests", r.StatusCode, len(s.got))
		}
	}
	page := bodyOf(t, s.get(BindPath+"?to=/tickets", append(opens, phone, b.session)...))
	if visits := visitsOn(t, page); len(visits) != 1 || !visits[0].IsBound || strings.Contains(page, "refresh") {
		t.Errorf("the page of a copy has %+v: %s", visits, page)
	}
	forger := &browser{shop: s, subject: b.subject}
	forger.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	forged := forger.prove(s.clock.now())
	s.isSentToBind("another key", s.get("/tickets", append(opens, phone, b.session, forged)...))
	if r := s.send(http.MethodPost, BindPath, append(fetches, phone, b.session, forged)...); len(r.Cookies()) != 0 {
		t.Errorf("another key takes the session over: %v", r.Header)
	}
	for what, at := range map[string]time.Duration{"of tomorrow": 24 * time.Hour, "of 1969": -1 << 62} {
		s.isSentToBind("a proof "+what, s.get("/tickets", append(opens, phone, b.session, b.prove(s.clock.now().Add(at)))...))
	}
	s.clock.pass(session.PageProofTTL)
	s.isSentToBind("an old proof", s.get("/tickets", append(opens, phone, b.session, proof)...))
	s.isThrough("a script with it", s.get("/tickets", append(fetches, phone, b.session, proof)...))
	s.isThrough("a form with it", s.send(http.MethodPost, "/tickets", append(opens, phone, b.session, proof)...))
	s.isThrough("a new proof", s.get("/tickets", append(opens, phone, b.session, b.prove(s.clock.now()))...))
	s.clock.pass(14 * time.Minute)
	for _, header := range []string{"Sec-Fetch-Mode: cors", "Upgrade: websocket"} {
		if r := s.get("/tickets", phone, b.session, proof, header); r.StatusCode != http.StatusForbidden || len(s.got) > 0 {
			t.Errorf("%s with a proof of long ago: status %d, and the site got %d requests", header, r.StatusCode, len(s.got))
		}
	}
}

// TestSharedKey tests the limit of clients of a session, even if a program shares its
// proofs, or ties the session to a key for each client.
func TestSharedKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	b := s.arrives()
	proof := b.prove(s.clock.now())
	s.isThrough("the program", s.get("/tickets", append(opens, phone, b.session, proof)...))
	for i := range session.MaxClients - 1 {
		s.isThrough("on the way", s.get("/tickets", append(opens, phone, b.session, proof, someone(i))...))
	}
	for i := range 100 {
		s.isSentToBind("a copy with its proof", s.get("/tickets", append(opens, phone, b.session, proof, someone(1000+i))...))
	}
	if n := s.Stats(); n.Copied != 100 || n.Sharing != session.MaxClients {
		t.Errorf("counts %+v", n)
	}
	s.clock.pass(10 * time.Minute)
	s.isThrough("another network, later", s.get("/tickets",
		append(opens, phone, b.session, b.prove(s.clock.now()), someone(2000))...))

	r := s.get("/tickets?proofline_pass="+s.queue.pass(), append(opens, phone)...)
	untied := "Cookie: " + strings.Split(r.Header.Get("Set-Cookie"), ";")[0]
	subject := visitsOn(t, bodyOf(t, s.get(BindPath+"?to=/tickets", append(opens, phone, untied)...)))[0].Subject
	in := 0
	for i := range 100 {
		b := &browser{shop: s, subject: subject}
		b.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		proof := b.prove(s.clock.now())
		tied := s.send(http.MethodPost, BindPath, append(fetches, phone, untied, proof)...)
		own := "Cookie: " + strings.Split(tied.Header.Get("Set-Cookie"), ";")[0]
		s.get("/tickets", append(opens, phone, own, proof, someone(3000+i))...)
		in += len(s.got)
		s.got = nil
	}
	if in >= session.MaxClients {
		t.Errorf("%d clients got in with keys of their own", in)
	}
}

// TestManyProofs tests the limit of proofs read per request.
func TestManyProofs(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	b := s.arrives()
	other := *b
	other.subject = "another"
	wrong, proof := other.prove(s.clock.now()), b.prove(s.clock.now())
	headers := append(opens, phone, b.session, proof)
	for range 16 {
		headers = append(headers, wrong)
	}
	s.isThrough("the first is right", s.get("/tickets", headers...))
	headers = append(opens, phone, b.session)
	for range 16 {
		headers = append(headers, wrong)
	}
	s.isSentToBind("too many", s.get("/tickets", append(headers, proof)...))
}

// TestProofsAreExact tests that a proof has one spelling.
func TestProofsAreExact(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	b := s.arrives()
	proof := b.prove(s.clock.now())
	name, value, _ := strings.Cut(strings.TrimPrefix(proof, "Cookie: "), "=")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	spellings := []string{"", value[:len(value)-1], value + "A", value + "=", " " + value[1:]}
	for i := range raw {
		changed := append([]byte{}, raw...)
		changed[i] ^= 1
		spellings = append(spellings, base64.RawURLEncoding.EncodeToString(changed))
	}
	for _, text := range spellings {
		s.isSentToBind(fmt.Sprintf("the proof %q", text), s.get("/tickets",
			append(opens, phone, b.session, "Cookie: "+name+"="+text)...))
	}
	s.isThrough("as it is", s.get("/tickets", append(opens, phone, b.session, proof)...))
}

// TestWithoutScripts tests that browsers without scripts keep their sessions, whose
// clients are counted.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	r := s.get("/tickets?proofline_pass="+s.queue.pass(), phone)
	if r.Header.Get("Location") != "/tickets" {
		t.Errorf("to %q", r.Header.Get("Location"))
	}
	cookie := "Cookie: " + strings.Split(r.Header.Get("Set-Cookie"), ";")[0]
	s.isThrough("the browser", s.get("/tickets", phone, cookie))
	s.isThrough("after an update", s.get("/tickets", updated, cookie))
	s.isQueued("another browser", s.get("/tickets", laptop, cookie))
	for i := range session.MaxClients - 1 {
		s.isThrough("on the way", s.get("/tickets", phone, cookie, someone(i)))
	}
	for i := range 100 {
		s.isQueued("a copy", s.get("/tickets", phone, cookie, someone(1000+i)))
	}
	s.isThrough("the browser, still", s.get("/tickets", phone, cookie))
	if n := s.Stats(); n.Copied != 100 || n.Sharing != session.MaxClients {
		t.Errorf("counts %+v", n)
	}
	s.clock.pass(10 * time.Minute)
	s.isThrough("another network, later", s.get("/tickets", phone, cookie, someone(2000)))
}

// TestBindGoesOnHere tests that BindPath redirects to pages of this host only.
func TestBindGoesOnHere(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, to := range []string{"", "tickets", "//evil.example.net/", `/\evil.example.net`, "https://evil.example.net/",
		"/tickets\n", "javascript:alert(1)"} {
		if r := s.get(BindPath+"?to="+url.QueryEscape(to), opens...); r.StatusCode != http.StatusNotFound {
			t.Errorf("to %q: status %d", to, r.StatusCode)
		}
	}
	r := s.get(BindPath+"?to="+url.QueryEscape(`/x"><script>alert(1)</script>`), opens...)
	if body := bodyOf(t, r); r.StatusCode != http.StatusOK || strings.Contains(body, "<script>alert") ||
		!strings.Contains(r.Header.Get("Content-Security-Policy"), "script-src 'self'; connect-src 'self'") {
		t.Errorf("status %d, %v: %s", r.StatusCode, r.Header, body)
	}
	for header, want := range map[string]int{"Sec-Fetch-Site: cross-site": http.StatusForbidden,
		"Origin: http://evil.example.net": http.StatusForbidden, "Sec-Fetch-Site: same-origin": http.StatusNoContent} {
		if r := s.send(http.MethodPost, BindPath, header); r.StatusCode != want {
			t.Errorf("%s: status %d", header, r.StatusCode)
		}
	}
}

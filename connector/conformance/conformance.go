// Package conformance holds connectors of every kind to the same answers: it
// sends the requests of connector/testdata/conformance.json to an address and
// looks at what comes back. A room that signs passes is part of it.
//
// A connector under test is given [Room.Rules] and stands in front of [Site].
package conformance

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed" // for the rules
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Case is one request and what happens to it.
type Case struct {
	Name   string   `json:"name"`
	Method string   `json:"method"`
	Target string   `json:"target"`           // as it stands in the request line
	Header []string `json:"header,omitempty"` // such as "Accept: text/html"
	// Want is "site", "room", "entered" (a cookie, and 303 to Location),
	// "refused" (4xx, not to the room) or "connector" (200, not from the site).
	Want     string `json:"want"`
	Status   int    `json:"status,omitempty"`   // 0: any that fits
	Location string `json:"location,omitempty"` // where it leads; empty: not looked at
}

// In targets and headers stand for:
//
//	{pass}    a fresh pass          {used}    a pass that was used up
//	{foreign} one of another key    {cookie}  the cookie of a session, as NAME=VALUE
//	{room}    the room's URL
var placeholders = []string{"{pass}", "{used}", "{foreign}", "{cookie}", "{room}"}

// SiteHeader is in every answer of [Site].
const SiteHeader = "X-Site"

// Site returns the site behind the connector: it answers with SiteHeader, and
// with what it was told about the visitor.
func Site() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(SiteHeader, "site")
		w.Header().Set("X-Seen-Ticket", r.Header.Get("X-Proofline-Ticket"))
		w.Header().Set("X-Seen-Room", r.Header.Get("X-Proofline-Room"))
		w.WriteHeader(http.StatusOK)
	})
}

// Room is a room whose passes are made on the spot.
type Room struct {
	testing.TB
	server  *httptest.Server
	private ed25519.PrivateKey

	mu   sync.Mutex
	used map[string]bool
}

// NewRoom starts a room.
func NewRoom(t testing.TB) *Room {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{TB: t, private: private, used: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /r/sale/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]string{"issuer": r.URL(), "jwks_uri": r.URL() + "/jwks.json"})
	})
	mux.HandleFunc("GET /r/sale/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		public, _ := private.Public().(ed25519.PublicKey)
		send(w, map[string]any{"keys": []any{map[string]string{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(public)}}})
	})
	mux.HandleFunc("POST /r/sale/passes/{id}/redeem", r.redeem)
	mux.HandleFunc("POST /r/sale/sessions/{what}", func(http.ResponseWriter, *http.Request) {})
	r.server = httptest.NewServer(mux)
	t.Cleanup(r.server.Close)
	return r
}

func send(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func (r *Room) redeem(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := q.PathValue("id")
	if r.used[id] {
		w.WriteHeader(http.StatusConflict)
		return
	}
	r.used[id] = true
	send(w, map[string]any{"pass_id": id, "ends": time.Now().Add(time.Hour), "ends_at_most": time.Now().Add(4 * time.Hour)})
}

// URL is the room's address.
func (r *Room) URL() string { return r.server.URL + "/r/sale" }

//go:embed rules.json
var rulesJSON string

// Rules returns the rules that the cases are about.
func (r *Room) Rules() []byte { return []byte(strings.Replace(rulesJSON, "{room}", r.URL(), 1)) }

// Pass returns a fresh pass, signed by a key.
func (r *Room) pass(key ed25519.PrivateKey) string {
	now := time.Now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": r.URL(), "aud": []string{strings.TrimPrefix(r.URL(), "http://")}, "sub": newID(), "jti": newID(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "position": 1, "lane": "general",
	})
	t.Header["kid"] = "k"
	text, err := t.SignedString(key)
	if err != nil {
		r.Fatal(err)
	}
	return text
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Run sends all cases to a connector that listens on addr.
func Run(t *testing.T, room *Room, addr string, cases []Case) {
	t.Helper()
	used := room.pass(room.private)
	cookie := enter(t, addr, used)
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			values := []string{room.pass(room.private), used, room.pass(foreign), cookie, room.URL()}
			var pairs []string
			for i, name := range placeholders {
				pairs = append(pairs, name, values[i])
			}
			fill := strings.NewReplacer(pairs...).Replace
			c.Target, c.Location = fill(c.Target), fill(c.Location)
			header := make([]string, len(c.Header))
			for i, h := range c.Header {
				header[i] = fill(h)
			}
			c.Header = header
			c.check(t, room, exchange(t, addr, c))
		})
	}
}

// Enter comes to a connector with a fresh pass, and returns the cookie of the
// session as NAME=VALUE.
func (r *Room) Enter(t testing.TB, addr string) string {
	t.Helper()
	return enter(t, addr, r.pass(r.private))
}

func enter(t testing.TB, addr, pass string) string {
	t.Helper()
	first := exchange(t, addr, Case{Method: http.MethodGet, Target: "/tickets?proofline_pass=" + pass, Header: []string{"Accept: text/html"}})
	if len(first.cookies) != 1 {
		t.Fatalf("nobody enters: status %d, header %v", first.status, first.header)
	}
	return first.cookies[0].Name + "=" + first.cookies[0].Value
}

// check compares an answer with what is wanted.
func (c *Case) check(t *testing.T, room *Room, r reply) {
	t.Helper()
	location := r.header.Get("Location")
	leads := location
	if r.status == http.StatusForbidden {
		leads = r.header.Get("Proofline-Queue")
	}
	base, _, _ := strings.Cut(leads, "?")
	got := "refused"
	switch {
	case r.header.Get(SiteHeader) != "":
		got = "site"
	case base == room.URL():
		got = "room"
	case r.status == http.StatusSeeOther && len(r.cookies) == 1:
		got = "entered"
	case r.status == http.StatusOK:
		got = "connector"
	case r.status < 400 || r.status >= 500:
		got = "something else"
	}
	if got != c.Want || c.Status != 0 && r.status != c.Status || c.Location != "" && path(location) != c.Location {
		t.Errorf("%s: status %d to %q, want %s %d %q", got, r.status, location, c.Want, c.Status, c.Location)
	}
	if got != "entered" && len(r.cookies) > 0 {
		t.Errorf("cookies %v", r.cookies)
	}
	if ticket := r.header.Get("X-Seen-Ticket"); got == "site" && (ticket != "") != strings.Contains(strings.Join(c.Header, ""), "__Host-proofline-pass") || strings.Contains(ticket, "forged") {
		t.Errorf("the site was told of ticket %q", ticket)
	}
}

// path returns a location as it is below the own host, which some servers add.
func path(location string) string {
	rest, ok := strings.CutPrefix(location, "http://shop.example.com")
	if ok {
		return rest
	}
	return location
}

// reply is an answer without its body.
type reply struct {
	status  int
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
	lines := append([]string{c.Method + " " + c.Target + " HTTP/1.1"}, c.Header...)
	if !slices.ContainsFunc(c.Header, func(h string) bool { return strings.HasPrefix(h, "Host: ") }) {
		lines = append(lines, "Host: shop.example.com")
	}
	lines = append(lines, "Connection: close", "", "")
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.Method})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return reply{r.StatusCode, r.Header, r.Cookies()}
}

// Parse reads cases.
func Parse(text []byte) ([]Case, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var list []Case
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	return list, nil
}

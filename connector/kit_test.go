package connector

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/internal/testlog"
)

// queue is a server with one room, whose responses a test sets. The real one is tested in
// internal/connectortest.
type queue struct {
	testing.TB
	*httptest.Server
	private ed25519.PrivateKey
	kid     string

	mu       sync.Mutex
	redeemed map[string]use // by path
	heard    []string       // paths of POST requests; each update of a batch counts as a request
	clients  []string       // the pseudonyms of clients in the POST requests
	batches  int
	reports  []report.Report                                          // intervals that were received
	reply    func(said *report.Report) (status int, re *report.Reply) // for reports; nil: 404
	status   int                                                      // of responses to POST; 0: the normal one
	isDown   atomic.Bool                                              // responds with 503 to everything
	isPicky  atomic.Bool                                              // responds with 503 to requests of visitors
	isLost   atomic.Bool                                              // the next response to a redemption is lost
	life     time.Duration                                            // of sessions
	clock    *clock
	fetched  atomic.Int64 // number of requests for the keys
}

// use is the first redemption of a pass.
type use struct {
	client string
	at     time.Time
}

func newQueue(t testing.TB, k *clock) *queue {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{TB: t, private: private, kid: "k1", redeemed: map[string]use{}, life: 15 * time.Minute, clock: k}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /r/sale/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": q.url(), "jwks_uri": q.url() + "/jwks.json"})
	})
	mux.HandleFunc("GET /r/sale/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		q.fetched.Add(1)
		q.mu.Lock()
		defer q.mu.Unlock()
		public, _ := q.private.Public().(ed25519.PublicKey)
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": q.kid, "x": base64.RawURLEncoding.EncodeToString(public),
		}}})
	})
	mux.HandleFunc("POST /r/sale/", q.post)
	mux.HandleFunc("POST /v1/connectors/report", q.report)
	q.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q.isDown.Load() || q.isPicky.Load() && r.Method == http.MethodPost {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(q.Close)
	return q
}

func (q *queue) post(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/r/sale")
	if path == "/sessions/batch" {
		q.batch(w, r)
		return
	}
	q.heard = append(q.heard, path)
	q.clients = append(q.clients, r.Header.Get("Proofline-Client"))
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ey") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if q.status != 0 {
		w.WriteHeader(q.status)
		return
	}
	if id, ok := strings.CutSuffix(path, "/redeem"); ok {
		now := q.clock.now()
		first, ok := q.redeemed[path]
		if !ok {
			first = use{r.Header.Get("Proofline-Client"), now}
			q.redeemed[path] = first
		} else if first.client != r.Header.Get("Proofline-Client") || now.Sub(first.at) > 30*time.Second {
			w.WriteHeader(http.StatusConflict)
			return
		}
		if q.isLost.Swap(false) {
			panic(http.ErrAbortHandler)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"pass_id": strings.TrimPrefix(id, "/passes/"), "ends": first.at.Add(q.life), "ends_at_most": first.at.Add(4 * q.life)})
	}
}

// report receives a report.
func (q *queue) report(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	text, err := io.ReadAll(r.Body)
	if err != nil || len(text) > 1<<20 || r.Header.Get("Authorization") != "Bearer "+testToken {
		q.Errorf("a report of %d bytes, %v, %v", len(text), err, r.Header)
	}
	var said report.Report
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		q.Errorf("report: %v", err)
	}
	q.reports = append(q.reports, said)
	if q.reply == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	status, re := q.reply(&said)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(re)
}

// batch receives updates, and records them one by one.
func (q *queue) batch(w http.ResponseWriter, r *http.Request) {
	var b roomapi.Batch
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil || len(b.Touch)+len(b.Release) > 500 ||
		r.Header.Get("Authorization") != "" {
		q.Errorf("a batch of %d and %d, %v, %v", len(b.Touch), len(b.Release), err, r.Header)
	}
	q.batches++
	if q.status != 0 && q.status != http.StatusGone {
		w.WriteHeader(q.status)
		return
	}
	word := "ok"
	if q.status == http.StatusGone {
		word = "over"
	}
	for i := range b.Touch {
		q.heard, b.Touch[i] = append(q.heard, "/sessions/touch"), word
	}
	for i := range b.Release {
		q.heard, b.Release[i] = append(q.heard, "/sessions/release"), word
	}
	_ = json.NewEncoder(w).Encode(b)
}

func (q *queue) url() string    { return q.URL + "/r/sale" }
func (q *queue) origin() string { return strings.TrimPrefix(q.URL, "http://") + "/r/sale" }

// said returns the paths of the POST requests so far.
func (q *queue) said() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string(nil), q.heard...)
}

func (q *queue) answers(status int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.status = status
}

// claims returns the claims of a new pass.
func (q *queue) claims() jwt.MapClaims {
	now := q.clock.now()
	return jwt.MapClaims{
		"iss": q.url(), "aud": []string{q.origin()}, "sub": newUUID(), "jti": newUUID(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(q.life).Unix(), "position": 1, "lane": "general",
	}
}

func newUUID() string {
	return id.UUID(id.New())
}

// sign returns a pass with claims and headers.
func (q *queue) sign(claims jwt.MapClaims, header map[string]any) string {
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	t.Header["kid"] = q.kid
	for name, value := range header {
		t.Header[name] = value
		if value == nil {
			delete(t.Header, name)
		}
	}
	text, err := t.SignedString(q.private)
	if err != nil {
		q.Fatal(err)
	}
	return text
}

func (q *queue) pass() string { return q.sign(q.claims(), nil) }

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)} }

func (k *clock) now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

func (k *clock) pass(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = k.at.Add(d)
}

// shop is a site behind a connector.
type shop struct {
	testing.TB
	*Connector
	clock   *clock
	queue   *queue
	handler http.Handler
	got     []*http.Request // requests that the site received
	answer  func(http.ResponseWriter, *http.Request)
}

const testToken = "the-token-of-the-organization"

var testKey = []byte("0123456789abcdef0123456789abcdef")

// newShop returns a site that protects /tickets, with further members of the room.
func newShop(t testing.TB, members string, change ...func(*Options)) *shop {
	t.Helper()
	k := newClock()
	return newShopAt(t, newQueue(t, k), members, change...)
}

// site returns rules that protect /tickets, with further members of the room.
func (q *queue) site(members string) *rules.Site {
	q.Helper()
	return mustSite(q, fmt.Sprintf(`{"version":1,"rooms":{"sale":{"url":%q%s}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},{"name":"secret","when":{"path":{"prefix":"/secret"}},"action":"block"}]}`, q.url(), members))
}

func mustSite(t testing.TB, text string) *rules.Site {
	t.Helper()
	site, err := rules.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// newShopAt is newShop for an existing room.
func newShopAt(t testing.TB, q *queue, members string, change ...func(*Options)) *shop {
	t.Helper()
	k := q.clock
	s := &shop{TB: t, clock: k, queue: q}
	o := Options{Site: q.site(members), Key: testKey, Now: k.now, Probe: time.Hour, batchInterval: 5 * time.Millisecond, reportInterval: -1, Log: testlog.New(t, slog.LevelInfo)}
	for _, f := range change {
		f(&o)
	}
	var err error
	if s.Connector, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Connector.Close)
	eventually(t, "the keys are fetched", func() bool { return s.current.Load().rooms["sale"].state.server.HasKeys() })
	s.handler = s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.got = append(s.got, r)
		if s.answer != nil {
			s.answer(w, r)
			return
		}
		_, _ = io.WriteString(w, "tickets")
	}))
	return s
}

// send sends a request. Headers are "Name: value"; "Client: ADDRESS" sets the client's
// address.
func (s *shop) send(method, target string, headers ...string) *http.Response {
	s.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Host = "shop.example.com"
	r.RemoteAddr = "198.51.100.7:1234"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			r.Host = value
			continue
		case "Client":
			r.RemoteAddr = value + ":1234"
			continue
		}
		r.Header[http.CanonicalHeaderKey(name)] = append(r.Header[http.CanonicalHeaderKey(name)], value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Result()
}

// someone returns a header that sets a client address in a new network.
func someone(n int) string { return "Client: " + addressOf(n).String() }

// addressOf returns an address of the nth network.
func addressOf(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 7})
}

const html = "Accept: text/html"

// get loads a page.
func (s *shop) get(target string, headers ...string) *http.Response {
	s.Helper()
	return s.send("GET", target, append(headers, html)...)
}

// enter enters with a pass, and returns the cookie as a header.
func (s *shop) enter(pass string) string {
	s.Helper()
	r := s.get("/tickets?proofline_pass=" + pass)
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		s.Fatalf("entered with %d and cookies %v", r.StatusCode, r.Cookies())
	}
	return "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
}

// isQueued fails unless a response sends the visitor to the room.
func (s *shop) isQueued(what string, r *http.Response) {
	s.Helper()
	to := r.Header.Get("Location")
	if r.StatusCode == http.StatusForbidden {
		to = r.Header.Get(QueueHeader)
	}
	if base, _, _ := strings.Cut(to, "?"); base != s.queue.url() || r.StatusCode != http.StatusFound &&
		r.StatusCode != http.StatusSeeOther && r.StatusCode != http.StatusForbidden {
		s.Errorf("%s: status %d, to %q", what, r.StatusCode, to)
	}
	if len(s.got) > 0 {
		s.Errorf("%s: the site saw it", what)
		s.got = nil
	}
}

// isThrough fails unless the site responded.
func (s *shop) isThrough(what string, r *http.Response) *http.Request {
	s.Helper()
	if len(s.got) != 1 {
		s.Fatalf("%s: the site saw %d requests, status %d", what, len(s.got), r.StatusCode)
	}
	got := s.got[0]
	s.got = nil
	return got
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}

// bodyOf returns a response's body.
func bodyOf(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// toOf returns the return URL in a redirect to the room.
func toOf(t testing.TB, r *http.Response) string {
	t.Helper()
	u, err := url.Parse(r.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("to")
}

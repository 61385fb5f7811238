package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
)

const (
	shopPage       = 8 << 10 // size of the site's response in bytes
	connectorConns = 64
	guardRequests  = 20_000 // requests per run
)

// browser is the visitor's User-Agent, to which the connector binds a session.
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// connector measures a returning visitor's requests: through the connector's proxy, compared with a
// standard library reverse proxy in front of the same site, and the cost that the middleware adds
// to a handler.
func (b *bench) connector() error {
	queue, err := newBenchRoom()
	if err != nil {
		return err
	}
	defer queue.Close()
	site, err := b.fleet.self("site")
	if err != nil {
		return err
	}
	bare, err := b.fleet.self("reverse-proxy", site.url(""))
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "rules.json")
	if err := os.WriteFile(file, queue.rules(), 0o600); err != nil {
		return err
	}
	subject, err := b.fleet.start("", filepath.Join(b.head.bin, "proofline"), "proxy", "--rules", file,
		"--to", site.url(""), "--listen", "127.0.0.1:0", "--key", filepath.Join(b.dir, "connector-key"))
	if err != nil {
		return err
	}
	cookie, err := queue.enter(subject.url(""))
	if err != nil {
		return err
	}
	load := func(s *server) func() (*load, error) {
		return func() (*load, error) {
			return s.load(generator{conns: connectorConns, until: b.length, request: visiting(cookie)}, 200)
		}
	}
	if err := b.proxies(load(bare), load(subject)); err != nil {
		return err
	}
	return b.middleware(queue)
}

// proxies compares both proxies.
func (b *bench) proxies(bare, subject func() (*load, error)) error {
	if _, _, err := pair(0, bare, subject); err != nil { // warm up
		return err
	}
	for i := range b.runs {
		a, s, err := pair(i, bare, subject)
		if err != nil {
			return err
		}
		b.add(ratio(proxyRate, proxyBare, proxyRatio, a, s)...)
	}
	return nil
}

// visiting returns the request of a visitor with a session.
func visiting(cookie string) func([]byte, int) []byte {
	text := "GET /tickets/7?row=2 HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: " + browser + "\r\n" +
		"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en-US,en;q=0.5\r\n" +
		"Accept-Encoding: gzip, deflate, br\r\nCookie: basket=7f3a; " + cookie + "\r\n\r\n"
	return func(dst []byte, _ int) []byte { return append(dst, text...) }
}

// middleware measures what the Go middleware adds to a request, in one process and without a
// network.
func (b *bench) middleware(queue *benchRoom) error {
	site, err := rules.Parse(queue.rules())
	if err != nil {
		return err
	}
	c, err := connector.New(connector.Options{Site: site, Key: bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		return err
	}
	defer c.Close()
	shop := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	guarded := c.Middleware(shop)
	front := httptest.NewServer(guarded)
	defer front.Close()
	cookie, err := queue.enter(front.URL)
	if err != nil {
		return err
	}
	r := httptest.NewRequestWithContext(b.ctx, http.MethodGet, "/tickets/7?row=2", nil)
	r.Host = "shop.example.com"
	r.Header.Set("Cookie", "basket=7f3a; "+cookie)
	r.Header.Set("User-Agent", browser)
	w := &sink{header: http.Header{}}
	timed := func(h http.Handler) (time.Duration, error) { // CPU time per request
		before, err := ownCPU()
		if err != nil {
			return 0, err
		}
		for range guardRequests {
			clear(w.header)
			h.ServeHTTP(w, r)
		}
		after, err := ownCPU()
		return (after - before) / guardRequests, err
	}
	for range b.runs {
		with, errWith := timed(guarded)
		without, errWithout := timed(shop)
		if err := errors.Join(errWith, errWithout); err != nil {
			return err
		}
		if w.status != http.StatusOK {
			return fmt.Errorf("the middleware responds with status %d", w.status)
		}
		b.add(reading{goal: middlewareCost, value: float64(with-without) / float64(time.Microsecond)})
	}
	return nil
}

// sink discards a response.
type sink struct {
	header http.Header
	status int
}

// Header implements [http.ResponseWriter].
func (s *sink) Header() http.Header { return s.header }

// Write implements [http.ResponseWriter].
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements [http.ResponseWriter].
func (s *sink) WriteHeader(status int) { s.status = status }

// serveSite is the protected site.
func serveSite() error {
	page := bytes.Repeat([]byte("x"), shopPage)
	return serveHere(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(shopPage))
		_, _ = w.Write(page)
	}))
}

// serveReverseProxy is the baseline: the standard library's proxy, with as many idle connections to
// the site as there are concurrent requests.
func serveReverseProxy(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return errors.New("unexpected default transport")
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = 2 * connectorConns // the default, 2, would slow it down
	return serveHere(&httputil.ReverseProxy{Transport: transport, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(u)
		p.SetXForwarded()
	}})
}

func serveHere(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed with the process
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	return http.Serve(l, h) //nolint:gosec // this machine's own
}

// benchRoom is a room that issues passes without waiting.
type benchRoom struct {
	*httptest.Server
	private ed25519.PrivateKey
}

func newBenchRoom() (*benchRoom, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	q := &benchRoom{private: private}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux.HandleFunc("GET /r/sale/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"issuer": q.room(), "jwks_uri": q.room() + "/jwks.json"})
	})
	mux.HandleFunc("GET /r/sale/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]string{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA",
			"use": "sig", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(public)}}})
	})
	mux.HandleFunc("POST /r/sale/passes/{id}/redeem", func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		answer(w, map[string]any{"pass_id": r.PathValue("id"), "ends": now.Add(time.Hour),
			"ends_at_most": now.Add(4 * time.Hour)})
	})
	q.Server = httptest.NewServer(mux)
	return q, nil
}

func (q *benchRoom) room() string { return q.URL + "/r/sale" }

func (q *benchRoom) rules() []byte {
	return fmt.Appendf(nil, `{"version":1,"hosts":["shop.example.com"],"rooms":{"sale":{"url":%q}},"rules":[
{"name":"payments","when":{"path":{"equals":"/tickets/paid"},"method":{"equals":"POST"}},"action":"bypass"},
{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`, q.room())
}

// enter visits a connector with a pass and returns the session cookie.
func (q *benchRoom) enter(address string) (string, error) {
	now := time.Now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": q.room(), "aud": []string{strings.TrimPrefix(q.room(), "http://")}, "sub": uuid.NewString(),
		"jti": uuid.NewString(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "position": 1, "lane": "general",
	})
	t.Header["kid"] = "k"
	pass, err := t.SignedString(q.private)
	if err != nil {
		return "", err
	}
	to := address + "/tickets?proofline_pass=" + pass
	r, err := http.NewRequest(http.MethodGet, to, http.NoBody) //nolint:noctx // on this machine
	if err != nil {
		return "", err
	}
	r.Host = "shop.example.com"
	r.Header.Set("Accept", "text/html")
	r.Header.Set("User-Agent", browser)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if len(answer.Cookies()) != 1 {
		return "", fmt.Errorf("cannot enter with a pass: %s", answer.Status)
	}
	return answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value, nil
}

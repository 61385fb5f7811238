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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
)

const (
	shopPage        = 8 << 10 // size of the site's response in bytes
	connectorConns  = 64
	connectorRounds = 7 // pairs of measurements, alternating
	guardRounds     = 21
	guardRequests   = 20_000 // requests per round
)

// connector measures a returning visitor's requests: through the connector's proxy, compared with a
// standard library reverse proxy in front of the same site, and the cost that the middleware adds
// to a handler.
func (b *bench) connector() error {
	queue, err := newBenchRoom()
	if err != nil {
		return err
	}
	defer queue.Close()
	site, err := b.self("site")
	if err != nil {
		return err
	}
	defer func() { _ = site.stop() }()
	bare, err := b.self("reverse-proxy", "http://"+site.addr)
	if err != nil {
		return err
	}
	defer func() { _ = bare.stop() }()
	file := filepath.Join(b.dir, "rules.json")
	if err := os.WriteFile(file, queue.rules(), 0o600); err != nil {
		return err
	}
	subject, err := b.start("", b.binary("proofline"), "proxy", "--rules", file, "--to", "http://"+site.addr,
		"--listen", "127.0.0.1:0", "--key", filepath.Join(b.dir, "connector-key"))
	if err != nil {
		return err
	}
	defer func() { _ = subject.stop() }()
	cookie, err := queue.enter("http://" + subject.addr)
	if err != nil {
		return err
	}
	load := func(s *server) func() (round, error) {
		return func() (round, error) {
			before, errBefore := s.cpu()
			f, err := generator{ctx: b.ctx, addr: s.addr, conns: connectorConns, total: 1 << 40,
				until: roundLength / 2, request: visiting(cookie)}.run(200)
			after, errAfter := s.cpu()
			return round{f.perSecond(), (after - before).Seconds() / float64(max(f.Count, 1))}, errors.Join(errBefore,
				err, errAfter)
		}
	}
	if err := b.proxies(load(bare), load(subject)); err != nil {
		return err
	}
	return b.middleware(queue)
}

// round is one measurement of a proxy.
type round struct {
	rate float64 // requests per second
	cost float64 // CPU seconds of the proxy per request
}

// proxies compares the rates of both proxies. It also reports the proxies' own CPU time per
// request, because the site and the generator share the processors.
func (b *bench) proxies(bare, subject func() (round, error)) error {
	for _, warm := range []func() (round, error){bare, subject} {
		if _, err := warm(); err != nil {
			return err
		}
	}
	var ratios, bares, subjects, bareCosts, costs []float64
	for i := range connectorRounds {
		first, second := bare, subject
		if i%2 != 0 { // alternate the order
			first, second = subject, bare
		}
		a, errA := first()
		s, errS := second()
		if err := errors.Join(errA, errS); err != nil {
			return err
		}
		if i%2 != 0 {
			a, s = s, a
		}
		bares, subjects, ratios = append(bares, a.rate), append(subjects, s.rate), append(ratios, s.rate/a.rate)
		bareCosts, costs = append(bareCosts, a.cost), append(costs, s.cost)
	}
	ratio := median(ratios)
	b.add(ratio >= 0.8, "a visitor's requests through the connector's proxy",
		fmt.Sprintf("%.0f/s, %.2f (%.2f to %.2f) of a bare reverse proxy's %.0f/s; %.0f us of CPU, %.0f us",
			median(subjects), ratio, slices.Min(ratios), slices.Max(ratios), median(bares), 1e6*median(costs),
			1e6*median(bareCosts)), "0.80 or more")
	return nil
}

// visiting returns the request of a visitor with a session.
func visiting(cookie string) func([]byte, int) []byte {
	text := "GET /tickets/7?row=2 HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
		"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\nCookie: basket=7f3a; " + cookie + "\r\n\r\n"
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
	var added []float64
	for range guardRounds {
		with, errWith := timed(guarded)
		without, errWithout := timed(shop)
		if err := errors.Join(errWith, errWithout); err != nil {
			return err
		}
		added = append(added, float64(with-without)/float64(time.Microsecond))
	}
	if w.status != http.StatusOK {
		return fmt.Errorf("the middleware responds with status %d", w.status)
	}
	b.add(median(added) < 10, "what the middleware adds to a visitor's request",
		fmt.Sprintf("%.1f us (%.1f to %.1f)", median(added), slices.Min(added), slices.Max(added)), "under 10 us")
	return nil
}

// ownCPU returns the CPU time used by this process.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
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

// self starts this program as one of the servers below.
func (b *bench) self(args ...string) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.start("", program, args...)
}

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
	r, err := http.NewRequest(http.MethodGet, address+"/tickets?proofline_pass="+pass, nil) //nolint:noctx // on this machine
	if err != nil {
		return "", err
	}
	r.Host = "shop.example.com"
	r.Header.Set("Accept", "text/html")
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

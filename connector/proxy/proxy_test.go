package proxy

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/freeport"
	"github.com/proofline/proofline/internal/testlog"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func newConnector(t testing.TB, room *conformance.Room, trusted ...netip.Prefix) *connector.Connector {
	t.Helper()
	c, err := connector.New(connector.Options{
		Source: &connector.Source{URL: room.RulesURL(), SiteKey: room.SiteKey()}, Token: conformance.Token,
		Key: []byte(strings.Repeat("k", 32)), TrustedProxies: trusted, Page: []byte(conformance.Page), Log: testlog.New(t, slog.LevelInfo),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// start serves a handler and returns its address.
func start(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func to(t testing.TB, addresses ...string) (list []*url.URL) {
	t.Helper()
	for _, addr := range addresses {
		u, err := url.Parse("http://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, u)
	}
	return list
}

// forNginx returns a handler for nginx on this machine.
func forNginx(c *connector.Connector) http.Handler {
	return NewAuth(Options{Connector: c, TrustedProxies: loopback})
}

func cases(t testing.TB) []conformance.Case {
	t.Helper()
	text, err := os.ReadFile("../testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := conformance.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 150 {
		t.Errorf("%d cases", len(list))
	}
	return list
}

func TestConformanceOfMiddleware(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	conformance.Run(t, room, start(t, newConnector(t, room).Middleware(conformance.Site())), cases(t))
}

func TestConformanceOfProxy(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	site := start(t, conformance.Site())
	conformance.Run(t, room, start(t, New(Options{Connector: newConnector(t, room), To: to(t, site)})), cases(t))
}

func get(t *testing.T, address string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.example.com"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// others returns the names of other proxy headers.
func others(h http.Header) []string {
	var names []string
	for name := range h {
		if strings.Contains(strings.ToLower(name), "real") || strings.HasSuffix(name, "-Prefix") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestForwarded tests the headers that the site gets.
func TestForwarded(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	site := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s|%s|%s|%v", r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("Forwarded"), r.URL, others(r.Header))
	}))
	spoofed := []string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: www.shop.example.com", "Forwarded: for=192.0.2.1", "X-Real-IP: 192.0.2.1", "X_Real_IP: 192.0.2.1", "X-Forwarded-Prefix: /x"}
	for what, c := range map[string]struct {
		trusted []netip.Prefix
		want    string
	}{
		"unknown proxy":     {nil, "shop.example.com|127.0.0.1|http|shop.example.com||/about;x//y?a=%20;b|[]"},
		"by the site's own": {loopback, "shop.example.com|192.0.2.1, 127.0.0.1|https|www.shop.example.com||/about;x//y?a=%20;b|[X-Forwarded-Prefix X-Real-Ip X_real_ip]"},
	} {
		addr := start(t, New(Options{Connector: newConnector(t, room, c.trusted...), To: to(t, site), TrustedProxies: c.trusted}))
		body, err := io.ReadAll(get(t, "http://"+addr+"/about;x//y?a=%20;b", spoofed...).Body)
		if err != nil || string(body) != c.want {
			t.Errorf("%s: %q, want %q, %v", what, body, c.want, err)
		}
	}
}

// TestSocket tests a WebSocket.
func TestSocket(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	site := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffer.ReadString('\n')
		_, _ = io.WriteString(conn, "you said "+line)
	}))
	conn, err := net.Dial("tcp", start(t, New(Options{Connector: newConnector(t, room), To: to(t, site)})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: shop.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	r, err := http.ReadResponse(reader, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", r, err)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); line != "you said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestSiteIsDown tests the proxy's responses while the site is down.
func TestSiteIsDown(t *testing.T) {
	t.Parallel()
	addr := "http://" + start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, freeport.Addr(t)), Log: slog.New(slog.DiscardHandler)}))
	if r := get(t, addr+"/about"); r.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d", r.StatusCode)
	}
	if r := get(t, addr+HealthPath); r.StatusCode != http.StatusOK {
		t.Errorf("health: status %d", r.StatusCode)
	}
}

// TestAuthIsForNginx tests that other peers and malformed subrequests are refused.
func TestAuthIsForNginx(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	c := newConnector(t, room, loopback...)
	own, foreign := "http://"+start(t, forNginx(c)), "http://"+start(t, NewAuth(Options{Connector: c}))
	about := []string{TargetName + ": /about", MethodName + ": GET"}
	for _, q := range []struct {
		address string
		headers []string
		status  int
	}{
		{own + AuthPath, about, 204},
		{own + AuthPath, about[:1], 401},
		{own + AuthPath, []string{TargetName + ": /tickets", MethodName + ": GET"}, 401},
		{own + AuthPath, []string{TargetName + ": /about", TargetName + ": /tickets", MethodName + ": GET"}, 401},
		{own + AuthPath, []string{TargetName + ": about", MethodName + ": GET"}, 401},
		{own + AuthPath, nil, 401},
		{own + "/about", nil, 400},
		{own + "/about", about, 503},
		{own + HealthPath, nil, 200},
		{foreign + AuthPath, about, 403},
		{foreign + "/tickets", about, 403},
	} {
		if r := get(t, q.address, q.headers...); r.StatusCode != q.status {
			t.Errorf("%s with %q: status %d, want %d", q.address, q.headers, r.StatusCode, q.status)
		}
	}
}

// TestBasePath tests that requests stay below the path of --to, and are checked there.
func TestBasePath(t *testing.T) {
	t.Parallel()
	to, err := url.Parse("http://" + start(t, conformance.Site()) + "/app")
	if err != nil {
		t.Fatal(err)
	}
	addr := start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: []*url.URL{to}}))
	conformance.RunClimbs(t, addr, "/app")
	if r := get(t, "http://"+addr+"/about/x"); r.Header.Get("X-Seen-Target") != "/app/about/x" {
		t.Errorf("status %d, the site gets %q", r.StatusCode, r.Header.Get("X-Seen-Target"))
	}
}

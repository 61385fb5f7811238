package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/freeport"
)

// quiet is a log for tests with many errors.
var quiet = slog.New(slog.DiscardHandler)

// server is an address of a site that responds with its name.
type server struct {
	*httptest.Server
	name  string
	isBad atomic.Bool // responds with 500
	asked atomic.Int64
}

func newServer(t *testing.T, name string) *server {
	t.Helper()
	s := &server{name: name}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if s.isBad.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", s.name, r.URL, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) addr() string { return s.Listener.Addr().String() }

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func send(t *testing.T, method, address, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.example.com"
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// TestAddresses tests that requests go to all addresses, and that those that could not be
// sent go to the next one, body included.
func TestAddresses(t *testing.T) {
	t.Parallel()
	a, b := newServer(t, "a"), newServer(t, "b")
	p := New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, a.addr(), freeport.Addr(t), b.addr()), Log: quiet})
	addr := "http://" + start(t, p)
	for i := range 30 {
		r := send(t, http.MethodPost, fmt.Sprintf("%s/about?%d", addr, i), "hello")
		if got := bodyOf(t, r); r.StatusCode != http.StatusOK || got[1:] != fmt.Sprintf(" /about?%d hello", i) {
			t.Errorf("request %d: status %d, %q", i, r.StatusCode, got)
		}
	}
	if a.asked.Load() < 10 || b.asked.Load() < 10 {
		t.Errorf("%d requests to one, %d to the other", a.asked.Load(), b.asked.Load())
	}
	if dead := p.site.addresses[1]; health(dead.health.Load()) != down || dead.requests.Load() != failuresToDown {
		t.Errorf("the address that is not there got %d requests", dead.requests.Load())
	}
}

// TestNoSecondChance tests that a request is not repeated if it may have reached the site.
func TestNoSecondChance(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	broken := func() string {
		return start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		}))
	}
	addr := start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, broken(), broken()), Log: quiet}))
	if r := send(t, http.MethodPost, "http://"+addr+"/about", "buy"); r.StatusCode != http.StatusBadGateway ||
		asked.Load() != 1 {
		t.Errorf("status %d, asked %d times", r.StatusCode, asked.Load())
	}
}

// TestLeastWaiting tests that a slow address gets fewer requests.
func TestLeastWaiting(t *testing.T) {
	t.Parallel()
	s := &site{addresses: []*address{{}, {}, {}}}
	s.addresses[0].waiting.Store(5)
	s.addresses[2].health.Store(int32(down))
	for range 10 {
		if a := s.pick(nil); a != s.addresses[1] {
			t.Fatal("not the one with the fewest that wait")
		}
	}
	if a := s.pick([]*address{s.addresses[1]}); a != s.addresses[0] {
		t.Error("not the next best")
	}
	if a := s.pick(s.addresses[:2]); a != s.addresses[2] {
		t.Error("the one that is down is not tried in the end")
	}
}

// TestChecks tests that an address gets no requests while its check fails.
func TestChecks(t *testing.T) {
	t.Parallel()
	a, b := newServer(t, "a"), newServer(t, "b")
	p := New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, a.addr(), b.addr()), Check: "/healthz?deep=1", CheckHost: "shop.example.com", Log: quiet})
	for _, one := range p.site.addresses {
		p.site.check(t.Context(), one)
	}
	a.isBad.Store(true)
	p.site.check(t.Context(), p.site.addresses[0])
	front, before := "http://"+start(t, p), a.asked.Load()
	for range 10 {
		if got := bodyOf(t, get(t, front+"/about")); got != "b /about " {
			t.Errorf("answer %q", got)
		}
	}
	if a.asked.Load() != before {
		t.Error("an address that fails its check is asked")
	}
	b.isBad.Store(true)
	p.site.check(t.Context(), p.site.addresses[1])
	if r := get(t, front+ReadyPath); r.StatusCode != http.StatusServiceUnavailable ||
		bodyOf(t, r) != "the site does not answer\n" {
		t.Errorf("ready with status %d although nothing is", r.StatusCode)
	}
	if r := get(t, front+"/about"); r.StatusCode != http.StatusInternalServerError {
		t.Errorf("status %d: when none is well all are tried", r.StatusCode)
	}
	a.isBad.Store(false)
	p.site.check(t.Context(), p.site.addresses[0])
	if r := get(t, front+ReadyPath); r.StatusCode != http.StatusOK {
		t.Errorf("ready: status %d", r.StatusCode)
	}
	if got := bodyOf(t, get(t, front+"/about")); got != "a /about " {
		t.Errorf("answer %q", got)
	}
}

// TestCheckRequest tests the request of a check.
func TestCheckRequest(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	s := newSite(&Options{To: to(t, addr), Check: "/healthz?deep=1", CheckHost: "shop.example.com"})
	if err := s.probe(t.Context(), s.addresses[0]); err != nil {
		t.Error(err)
	}
	if r := <-seen; r.Method != http.MethodGet || r.RequestURI != "/healthz?deep=1" || r.Host != "shop.example.com" {
		t.Errorf("%s %s of %s", r.Method, r.RequestURI, r.Host)
	}
	s.checkHost = ""
	_ = s.probe(t.Context(), s.addresses[0])
	if r := <-seen; r.Host != addr {
		t.Errorf("asked for %s", r.Host)
	}
}

// TestWatch tests that checks notice an address that goes down and comes back.
func TestWatch(t *testing.T) {
	t.Parallel()
	a := newServer(t, "a")
	s := newSite(&Options{To: to(t, a.addr()), Check: "/", Log: quiet})
	s.interval, s.downInterval = time.Millisecond, time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.checkAll(ctx); close(done) }()
	eventually(t, "it is up", s.isUp)
	a.isBad.Store(true)
	eventually(t, "it is down", func() bool { return !s.isUp() })
	a.isBad.Store(false)
	eventually(t, "it is up again", s.isUp)
	stop()
	<-done
}

// TestConnectionIsEnough tests that an address without a check path is healthy if it accepts
// connections.
func TestConnectionIsEnough(t *testing.T) {
	t.Parallel()
	a := newServer(t, "a")
	a.isBad.Store(true)
	s := newSite(&Options{To: to(t, a.addr(), freeport.Addr(t)), Log: quiet})
	for _, one := range s.addresses {
		s.check(t.Context(), one)
	}
	if got := [2]health{health(s.addresses[0].health.Load()), health(s.addresses[1].health.Load())}; got != [2]health{up,
		down} {
		t.Errorf("%v", got)
	}
	for text, want := range map[string]string{"http://a": "a:http", "https://a": "a:https", "http://a:3000": "a:3000",
		"http://[::1]:3000": "[::1]:3000", "https://[::1]": "[::1]:https"} {
		u, err := url.Parse(text)
		if err != nil || hostPort(u) != want {
			t.Errorf("%s: connects to %s, %v", text, hostPort(u), err)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}

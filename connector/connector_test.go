package connector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/connector/rules"

	"github.com/proofline/proofline/connector/internal/source"
)

// TestVisit follows a visitor from the first request to the release.
func TestVisit(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	r := s.get("/tickets/7?row=2&seat=%C3%A9")
	s.isQueued("first request", r)
	if want := "http://shop.example.com/tickets/7?row=2&seat=%C3%A9"; r.StatusCode != http.StatusFound ||
		toOf(t, r) != want || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, back to %q, %v", r.StatusCode, toOf(t, r), r.Header)
	}
	claims := s.queue.claims()
	r = s.get("/tickets/7?row=2&proofline_pass=" + s.queue.sign(claims, nil) + "&seat=%C3%A9&proofline_pass=x")
	if got := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || got != "/tickets/7?row=2&seat=%C3%A9" {
		t.Errorf("entered with %d, to %q", r.StatusCode, got)
	}
	raw := r.Header.Get("Set-Cookie")
	if !strings.HasPrefix(raw, "__Host-proofline-pass.sale=") ||
		!strings.HasSuffix(raw, "; Path=/; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("cookie %q", raw)
	}
	cookie := "Cookie: a=b; " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	got := s.isThrough("with the cookie", s.get("/tickets/7", cookie, "X-Proofline-Ticket: forged", "X_proofline_room: forged", "X-Other: kept"))
	want := Visitor{"sale", claims["sub"].(string)}
	if v, ok := VisitorOf(got.Context()); !ok || v != want {
		t.Errorf("visitor %+v", v)
	}
	if h := got.Header; h.Get(TicketHeader) != want.Ticket || h.Get(RoomHeader) != "sale" ||
		h["X_proofline_room"] != nil || h.Get("X-Other") != "kept" || len(h[TicketHeader]) != 1 {
		t.Errorf("header %v", h)
	}
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Proofline-Command", "release")
		w.WriteHeader(http.StatusCreated)
	}
	r = s.get("/tickets/done", cookie)
	s.isThrough("release", r)
	if c := r.Cookies(); r.Header.Get("Proofline-Command") != "" || len(c) != 1 || c[0].MaxAge != -1 ||
		c[0].Value != "" || r.StatusCode != http.StatusCreated {
		t.Errorf("status %d, header %v", r.StatusCode, r.Header)
	}
	s.isQueued("after the release", s.get("/tickets/7", cookie))
	eventually(t, "the room receives the release", func() bool { return slices.Contains(s.queue.said(), "/sessions/release") })
	if n := s.Stats(); n.Queued != 2 || n.Redeemed != 1 || n.Passed != 2 || n.Released != 1 || n.Refused != 0 {
		t.Errorf("counts %+v", n)
	}
}

// TestResponses tests responses to requests other than page loads.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	home := s.queue.url()
	for _, c := range []struct {
		name, method string
		headers      []string
		status       int
		join         string
	}{
		{"page", "GET", []string{html}, 302, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets"},
		{"page of today", "GET", []string{"Sec-Fetch-Mode: navigate"}, 302, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets"},
		{"head", "HEAD", []string{html}, 302, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets"},
		{"form", "POST", []string{"Sec-Fetch-Mode: navigate"}, 303, home},
		{"form from a page", "POST", []string{"Sec-Fetch-Mode: navigate", "Referer: http://shop.example.com/tickets?a=1&proofline_pass=x"}, 303, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets%3Fa%3D1"},
		{"form from elsewhere", "POST", []string{"Sec-Fetch-Mode: navigate", "Referer: http://evil.example.net/tickets"}, 303, home},
		{"old form", "POST", []string{html}, 403, home},
		{"script", "GET", []string{"Sec-Fetch-Mode: cors", html}, 403, home},
		{"script from a page", "GET", []string{"Sec-Fetch-Mode: cors", "Referer: http://shop.example.com/tickets/a"}, 403, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets%2Fa"},
		{"JSON", "GET", []string{"Accept: application/json"}, 403, home},
		{"script that takes a page", "GET", []string{"Accept: text/html, */*; q=0.01", "X-Requested-With: XMLHttpRequest"}, 403, home},
		{"script in other letters", "GET", []string{html, "X-Requested-With: xmlhttprequest"}, 403, home},
		{"page in an app", "GET", []string{html, "X-Requested-With: com.example.app"}, 302, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets"},
		{"page that says so", "GET", []string{"Sec-Fetch-Mode: navigate", "X-Requested-With: XMLHttpRequest"}, 302, home + "?to=http%3A%2F%2Fshop.example.com%2Ftickets"},
		{"nothing said", "GET", nil, 403, home},
		{"delete", "DELETE", []string{"Sec-Fetch-Mode: navigate"}, 403, home},
		{"socket", "GET", []string{"Upgrade: websocket", "Connection: Upgrade", html}, 403, home},
	} {
		r := s.send(c.method, "/tickets", c.headers...)
		s.isQueued(c.name, r)
		join := r.Header.Get("Location")
		if r.StatusCode == http.StatusForbidden {
			var got map[string]string
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v, %v", c.name, err, r.Header)
			}
			join = got["join"]
			if diff := cmp.Diff(map[string]string{"error": "queue", "room": home, "join": c.join}, got); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
		if r.StatusCode != c.status || join != c.join {
			t.Errorf("%s: status %d to %q, want %d to %q", c.name, r.StatusCode, join, c.status, c.join)
		}
	}
	s.isThrough("free page", s.send("POST", "/free", "X-Proofline-Ticket: forged"))
	if r := s.send("GET", "/secret"); r.StatusCode != http.StatusForbidden ||
		bodyOf(t, r) != "{\"error\":\"blocked\"}\n" || len(s.got) > 0 {
		t.Errorf("blocked with %d", r.StatusCode)
	}
	if r := s.get("/tickets%00"); r.StatusCode != http.StatusBadRequest || len(s.got) > 0 {
		t.Errorf("malformed with %d", r.StatusCode)
	}
}

// TestBypass tests that forged headers do not reach the site, and that commands do not reach the client.
func TestBypass(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Proofline-Command", "release")
		w.(http.Flusher).Flush()
	}
	r := s.get("/free?proofline_pass=other", "X-Proofline-Ticket: forged", "X-Proofline-Anything: forged", "X-Original-URL: /tickets", "X_rewrite_url: /tickets")
	got := s.isThrough("free", r)
	if got.Header["X-Original-Url"] != nil || got.Header["X_rewrite_url"] != nil {
		t.Errorf("site got another path: %v", got.Header)
	}
	if got.Header.Get(TicketHeader) != "" || got.Header.Get("X-Proofline-Anything") != "" ||
		got.URL.RawQuery != "proofline_pass=other" {
		t.Errorf("site got %v %v", got.URL, got.Header)
	}
	if r.Header.Get("Proofline-Command") != "" || len(r.Cookies()) != 0 {
		t.Errorf("client got %v", r.Header)
	}
	if _, ok := VisitorOf(got.Context()); ok {
		t.Error("a request without pass has a visitor")
	}
	r = s.get("/free?a=1&proofline_pass=" + s.queue.pass())
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/free?a=1" || len(r.Cookies()) != 1 {
		t.Errorf("a pass on a free page: %d %v", r.StatusCode, r.Header)
	}
}

// TestSliding tests that a session is extended as long as the room allows.
func TestSliding(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	s.clock.pass(59 * time.Second)
	if r := s.get("/tickets", cookie); s.isThrough("at once", r) == nil || len(r.Cookies()) != 0 {
		t.Error("a touch within the first minute")
	}
	for i := range 6 { // 60 minutes altogether, 15 at a time
		s.clock.pass(10 * time.Minute)
		r := s.get("/tickets", cookie)
		if i == 5 {
			s.isQueued("after an hour", r)
			break
		}
		s.isThrough("sliding", r)
		if len(r.Cookies()) != 1 {
			t.Fatalf("after %d0 minutes: no new cookie", i+1)
		}
		s.isThrough("again, old cookie", s.get("/tickets", cookie))
		cookie = "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
		eventually(t, "the touch arrives", func() bool { return s.Stats().Touches == uint64(i)+1 && s.queue.count("touch") == i+1 })
		if r := s.get("/tickets", cookie); s.isThrough("again", r) == nil || len(r.Cookies()) != 0 {
			t.Errorf("after %d0 minutes: two touches", i+1)
		}
	}
	other := s.enter(s.queue.pass())
	s.clock.pass(15 * time.Minute)
	s.isQueued("idle", s.get("/tickets", other))
	if n := s.Stats(); n.Touches != 5 || n.Dropped != 0 {
		t.Errorf("counts %+v", n)
	}
}

// TestEnded tests that sessions are refused once the room says they are over.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	s.queue.answers(http.StatusGone)
	s.clock.pass(2 * time.Minute)
	s.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "public, max-age=60") }
	if r := s.get("/tickets", cookie); s.isThrough("shared", r) == nil || len(r.Cookies()) != 0 {
		t.Error("an answer that caches share has a cookie")
	}
	s.answer = nil
	s.isThrough("before the room says so", s.get("/tickets", cookie))
	eventually(t, "the session is over", func() bool {
		r := s.get("/tickets", cookie)
		s.got = nil
		return r.StatusCode == http.StatusFound
	})
}

// TestBind tests sessions bound to a network.
func TestBind(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"bind":"network"`, func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")} })
	r := s.get("/tickets?proofline_pass="+s.queue.pass(), "X-Forwarded-For: 192.0.2.99, 203.0.113.5", "X-Forwarded-Proto: https")
	cookie := "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	s.isThrough("same network", s.get("/tickets", cookie, "X-Forwarded-For: 203.0.113.200"))
	s.isQueued("other network", s.get("/tickets", cookie, "X-Forwarded-For: 203.0.112.5"))
	s.isQueued("spoofed behind the proxy", s.get("/tickets", cookie, "X-Forwarded-For: 203.0.113.5, 192.0.2.1"))
	r = s.get("/tickets", "X-Forwarded-Proto: https", "X-Forwarded-Host: www.example.com")
	if got := toOf(t, r); got != "https://www.example.com/tickets" {
		t.Errorf("back to %q", got)
	}
}

// TestClosed tests that a closed room refuses all requests, with or without a session.
func TestClosed(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	site := *s.current.Load().Site
	if err := s.use(&source.Rules{Site: s.queue.site(`,"mode":"closed"`)}); err != nil {
		t.Fatal(err)
	}
	pass := s.queue.pass()
	for what, r := range map[string]*http.Response{"with a session": s.get("/tickets", cookie),
		"with a pass": s.get("/tickets?proofline_pass=" + pass), "a form": s.send("POST", "/tickets", cookie)} {
		if r.StatusCode != http.StatusForbidden || r.Header.Get("Location")+r.Header.Get(QueueHeader) != "" ||
			len(s.got) > 0 {
			t.Errorf("%s: status %d, %v", what, r.StatusCode, r.Header)
		}
	}
	if err := s.use(&source.Rules{Site: &site}); err != nil {
		t.Fatal(err)
	}
	s.isThrough("open again", s.get("/tickets", cookie))
	s.enter(pass) // not redeemed before
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	site, err := rules.Parse([]byte(`{"version":1,"rooms":{"a":{"url":"https://queue.example.com/r/a","failure":"page"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want error
	}{
		"short key":   {Options{Site: site, Key: testKey[:31]}, ErrKey},
		"no rules":    {Options{Key: testKey}, ErrRules},
		"two sources": {Options{Key: testKey, Site: site, Source: &Source{File: "x"}}, ErrRules},
		"no page":     {Options{Key: testKey, Site: site}, ErrPage},
		"no source":   {Options{Key: testKey, Source: &Source{}}, ErrSource},
		"no TLS":      {Options{Key: testKey, Source: &Source{URL: "http://queue.example.com/rules"}}, ErrSource},
	} {
		if _, err := New(c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestOtherKey tests that another key ends sessions.
func TestOtherKey(t *testing.T) {
	t.Parallel()
	s, other := newShop(t, ""), newShop(t, "", func(o *Options) { o.Key = []byte(strings.Repeat("k", 32)) })
	s.isQueued("cookie of another key", s.get("/tickets", other.enter(other.queue.pass())))
}

// TestStreams tests streamed responses, and hijacked connections.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tickets/raw" {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
				_ = conn.Close()
			}
			return
		}
		_, _ = io.WriteString(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(w, strings.NewReader(" second"))
	}
	server := httptest.NewServer(s.handler)
	defer server.Close()
	for path, want := range map[string]string{"/tickets": "first second", "/tickets/raw": "raw"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
		r.Header.Set("User-Agent", "") // as in the visitor's other requests
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := bodyOf(t, answer); got != want {
			t.Errorf("%s: %q", path, got)
		}
		answer.Body.Close()
	}
}

// TestAllows tests that Allows redeems nothing.
func TestAllows(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	pass := s.queue.pass()
	ask := func(target string, headers ...string) (http.Header, bool) {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Header.Set("Accept", "text/html")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		h := http.Header{}
		return h, s.Allows(h, r)
	}
	for _, target := range []string{"/tickets", "/tickets?proofline_pass=" + pass, "/free?proofline_pass=" + pass,
		"/secret", "/tickets%00"} {
		if h, ok := ask(target); ok || len(h) > 0 {
			t.Errorf("%s is allowed, with %v", target, h)
		}
	}
	if n := s.Stats(); n.Queued+n.Blocked+n.Refused+n.Redeemed > 0 || len(s.queue.said()) > 0 {
		t.Errorf("counts %+v, the room received %q", n, s.queue.said())
	}
	if h, ok := ask("/free", "X-Proofline-Ticket: forged"); !ok || len(h) > 0 {
		t.Errorf("a free page: %t, %v", ok, h)
	}
	cookie := s.enter(pass)
	if h, ok := ask("/tickets", cookie); !ok || len(h.Get(TicketHeader)) != 36 || h.Get(RoomHeader) != "sale" ||
		h.Get("Set-Cookie") != "" {
		t.Errorf("a visitor: %t, %v", ok, h)
	}
	s.clock.pass(2 * time.Minute)
	if h, ok := ask("/tickets", cookie); !ok || !strings.HasPrefix(h.Get("Set-Cookie"), CookiePrefix+"sale=") {
		t.Errorf("a visitor later: %t, %v", ok, h)
	}
	if n := s.Stats(); n.Passed != 2 || n.Bypassed != 1 || n.Redeemed != 1 {
		t.Errorf("counts %+v", n)
	}
}

// BenchmarkPassed measures the request of a returning visitor.
func BenchmarkPassed(b *testing.B) {
	s := newShop(b, "")
	cookie := s.enter(s.queue.pass())
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest(http.MethodGet, "/tickets/7?row=2", nil)
	r.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
	r.Header.Set("User-Agent", "Mozilla/5.0")
	r.Header.Set("Accept", "text/html")
	r.RemoteAddr = "198.51.100.7:1234"
	for name, h := range map[string]http.Handler{"guarded": s.Middleware(nothing), "bare": nothing} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w := httptest.NewRecorder()
			times := make([]time.Duration, 0, 1<<20)
			for b.Loop() {
				start := time.Now()
				h.ServeHTTP(w, r)
				if len(times) < cap(times) {
					times = append(times, time.Since(start))
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns-median")
		})
	}
}

// loggedLines receives the lines of a log.
type loggedLines chan string

func (l loggedLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestUnknownHost tests that the log names a host that is missing in the rules.
func TestUnknownHost(t *testing.T) {
	t.Parallel()
	log := make(loggedLines, 100)
	s := newShop(t, "", func(o *Options) {
		o.Site = mustSite(t, fmt.Sprintf(`{"version":1,"hosts":["shop.example.com"],"rooms":{"sale":{"url":%q}}}`, o.Site.Rooms["sale"].URL))
		o.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	s.isThrough("its own name", s.get("/free"))
	for range 3 {
		if r := s.get("/free", "Host: www.shop.example.com"); r.StatusCode != http.StatusMisdirectedRequest {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
	if line := <-log; !strings.Contains(line, "host=www.shop.example.com") || len(log) > 0 {
		t.Errorf("%d more lines within a minute after: %s", len(log), line)
	}
	s.clock.pass(time.Minute)
	s.get("/free", "Host: "+strings.Repeat("a", 10_000))
	if line := <-log; !strings.Contains(line, "host=aaa") || len(line) > 300 {
		t.Errorf("after a minute: %.2000s", line)
	}
}

// TestTwoNames tests a room with two names in the rules: a pass is redeemed for the
// name of the page.
func TestTwoNames(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	if err := s.use(&source.Rules{Site: mustSite(t, fmt.Sprintf(`{"version":1,"rooms":{"sale":{"url":%q},"again":{"url":%[1]q,"bind":"network"}},"rules":[
		{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},{"name":"again","when":{"path":{"prefix":"/again"}},"action":"queue again"}]}`, s.queue.url()))}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/tickets", "/again"} {
		r := s.get(path + "?proofline_pass=" + s.queue.pass())
		if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
			t.Fatalf("%s: status %d, cookies %v", path, r.StatusCode, r.Cookies())
		}
		s.isThrough(path, s.get(path, "Cookie: "+r.Cookies()[0].Name+"="+r.Cookies()[0].Value))
	}
}

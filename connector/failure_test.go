package connector

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/source"
	"github.com/proofline/proofline/connector/internal/sourcetest"
)

// failed makes the room fail for a probe, and for a visitor with a pass.
func (s *shop) failed() *http.Response {
	s.Helper()
	s.queue.isDown.Store(true)
	for _, rm := range s.current.Load().rooms {
		if !s.probeRoom(s.Context(), rm) {
			s.Errorf("room %s is not away", rm.Name)
		}
	}
	r := s.get("/tickets?a=1&proofline_pass=" + s.queue.pass())
	eventually(s, "the room is asked because of that", func() bool { return len(s.probeNow) == 0 })
	return r
}

func TestRetryPage(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	for what, r := range map[string]*http.Response{"with a pass": s.failed(), "without": s.get("/tickets")} {
		body := bodyOf(t, r)
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") < "10" ||
			r.Header.Get("Retry-After") > "19" || !strings.Contains(body, `http-equiv="refresh"`) ||
			strings.Contains(body, "://") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") || len(s.got) > 0 {
			t.Errorf("%s: status %d, %v\n%s", what, r.StatusCode, r.Header, body)
		}
	}
	if r := s.send("GET", "/tickets", "Sec-Fetch-Mode: cors"); r.StatusCode != http.StatusServiceUnavailable ||
		bodyOf(t, r) != "{\"error\":\"unavailable\"}\n" {
		t.Errorf("a script: %d", r.StatusCode)
	}
	s.isThrough("with a session", s.get("/tickets", cookie))
	s.isThrough("a free page", s.get("/free"))
	s.clock.pass(100 * time.Hour)
	if r := s.failed(); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("after days: %d", r.StatusCode)
	}
	s.queue.isDown.Store(false)
	s.enter(s.queue.pass())
	s.isQueued("there again", s.get("/tickets"))
	if n := s.Stats(); n.Unavailable != 4 || n.FailedOpen != 0 || !n.Rooms["sale"].DownSince.IsZero() {
		t.Errorf("counts %+v", n)
	}
}

func TestOwnPage(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"page"`, func(o *Options) { o.Page = []byte("<p>Sorry") })
	if r := s.failed(); r.StatusCode != http.StatusServiceUnavailable || bodyOf(t, r) != "<p>Sorry" ||
		r.Header.Get("Retry-After") == "" {
		t.Errorf("status %d", r.StatusCode)
	}
	if r := s.send("POST", "/tickets"); r.StatusCode != http.StatusServiceUnavailable ||
		!strings.HasPrefix(bodyOf(t, r), "{") {
		t.Errorf("a script: %d", r.StatusCode)
	}
}

func TestFailOpenAfter(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"fail-open-after 30s"`)
	began := s.clock.now()
	if r := s.failed(); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("at once: %d", r.StatusCode)
	}
	s.clock.pass(31 * time.Second)
	if r := s.get("/tickets"); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("after one failure alone: %d", r.StatusCode)
	}
	got := s.isThrough("failed again", s.failed())
	if got.URL.String() != "/tickets?a=1" || got.RequestURI != "/tickets?a=1" || got.Header.Get(TicketHeader) != "" {
		t.Errorf("site got %v %v", got.URL, got.Header)
	}
	r := s.send("POST", "/tickets", "X-Proofline-Ticket: forged")
	if got := s.isThrough("open", r); got.Header.Get(TicketHeader) != "" || len(r.Cookies()) != 0 {
		t.Errorf("admitted with %v, cookies %v", got.Header, r.Cookies())
	}
	if n := s.Stats(); n.FailedOpen != 2 || !n.Rooms["sale"].DownSince.Equal(began) || len(n.Rooms["sale"].FailOpen) != 1 {
		t.Errorf("counts %+v", n)
	}
	s.queue.isDown.Store(false)
	s.clock.pass(time.Minute)
	s.enter(s.queue.pass())
	s.isQueued("there again", s.get("/tickets"))
	o := s.Stats().Rooms["sale"].FailOpen[0]
	if o.Requests != 2 || !o.From.Equal(began.Add(31*time.Second)) || !o.Until.Equal(began.Add(91*time.Second)) {
		t.Errorf("fail-open interval %+v", o)
	}
}

// TestFailOpenBehindNginx tests that a request which Allows refused just before the connector failed
// open is counted once: when the client repeats it.
func TestFailOpenBehindNginx(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"fail-open-after 30s"`)
	s.failed()
	r := httptest.NewRequest(http.MethodGet, "/tickets", nil)
	if s.Allows(http.Header{}, r) {
		t.Fatal("fails open at once")
	}
	s.clock.pass(31 * time.Second)
	s.isThrough("failed again", s.failed())
	retries := 0
	retry := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { retries++ })
	s.Refused(retry).ServeHTTP(httptest.NewRecorder(), r)
	if n := s.Stats(); retries != 1 || n.FailedOpen != 1 || n.Rooms["sale"].FailOpen[0].Requests != 1 {
		t.Errorf("%d retries, counts %+v", retries, n)
	}
	if !s.Allows(http.Header{}, r) {
		t.Error("does not fail open")
	}
	if n := s.Stats(); n.FailedOpen != 2 || n.Rooms["sale"].FailOpen[0].Requests != 2 {
		t.Errorf("counts %+v", n)
	}
}

// TestVisitorsOpenNothing tests that failing requests from visitors never open the site while the room is up.
func TestVisitorsOpenNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"fail-open-after 1s"`)
	rm := s.current.Load().rooms["sale"]
	if s.probeRoom(t.Context(), rm) { // and has the keys
		t.Fatal("the room is away")
	}
	s.queue.isPicky.Store(true)
	for range 5 {
		if r := s.get("/tickets?proofline_pass=" + s.queue.pass()); r.StatusCode != http.StatusServiceUnavailable ||
			len(s.got) > 0 {
			t.Errorf("with a pass that fails: status %d, and the site got %d requests", r.StatusCode, len(s.got))
		}
		s.clock.pass(time.Minute)
	}
	if s.probeRoom(t.Context(), rm) {
		t.Error("the room is away")
	}
	s.isQueued("once the room has answered", s.get("/tickets"))
	if n := s.Stats(); n.FailedOpen != 0 || len(n.Rooms["sale"].FailOpen) != 0 {
		t.Errorf("failed open: %+v", n)
	}
}

// TestFailOpenOfAnotherRoom tests that passes of a room that fails open do not open
// pages of another room.
func TestFailOpenOfAnotherRoom(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"fail-open-after 1s"`)
	rooms := fmt.Sprintf(`{"version":1,"rooms":{"sale":{"url":%q,"failure":"fail-open-after 1s"},"drop":{"url":"%s/r/drop"},"again":{"url":%[1]q}},"rules":[
		{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},{"name":"drop","when":{"path":{"prefix":"/drop"}},"action":"queue drop"},
		{"name":"again","when":{"path":{"prefix":"/again"}},"action":"queue again"}]}`, s.queue.url(), s.queue.URL)
	if err := s.use(&source.Rules{Site: mustSite(t, rooms)}); err != nil {
		t.Fatal(err)
	}
	s.failed()
	s.clock.pass(time.Minute)
	s.failed()
	s.got = nil
	s.isThrough("the room's own page", s.get("/tickets?proofline_pass="+s.queue.pass()))
	for _, path := range []string{"/drop", "/again"} {
		if r := s.get(path + "?proofline_pass=" + s.queue.pass()); r.StatusCode != http.StatusServiceUnavailable ||
			len(s.got) > 0 {
			t.Errorf("%s: status %d, and the site got %d requests", path, r.StatusCode, len(s.got))
		}
	}
}

// TestRefusalsNeverOpen tests that a refusal counts as a response.
func TestRefusalsNeverOpen(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"fail-open-after 1s"`)
	for _, status := range []int{400, 401, 403, 404, 409, 410, 418, 302} {
		s.queue.answers(status)
		for range 3 {
			s.clock.pass(2 * time.Second)
			s.isQueued(http.StatusText(status), s.get("/tickets?proofline_pass="+s.queue.pass()))
		}
	}
	s.queue.answers(429)
	for range 3 {
		s.clock.pass(2 * time.Second)
		if r := s.get("/tickets?proofline_pass=" + s.queue.pass()); r.StatusCode != http.StatusServiceUnavailable ||
			len(s.got) > 0 {
			t.Errorf("busy: %d", r.StatusCode)
		}
	}
	if n := s.Stats(); n.FailedOpen != 0 || !n.Rooms["sale"].DownSince.IsZero() {
		t.Errorf("counts %+v", n)
	}
}

// TestImpatientVisitor tests that a visitor who gives up does not count as a failure of
// the room.
func TestImpatientVisitor(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"failure":"fail-open-after 1s"`)
	r := httptest.NewRequest(http.MethodGet, "/tickets?proofline_pass="+s.queue.pass(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r = r.WithContext(ctx)
	s.handler.ServeHTTP(httptest.NewRecorder(), r)
	if n := s.Stats(); !n.Rooms["sale"].DownSince.IsZero() || n.Redeemed != 1 {
		t.Errorf("counts %+v", n)
	}
}

// TestFault tests a panic in the connector.
func TestFault(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	before := s.current.Load()
	broken := &config{Rules: before.Rules, rooms: map[string]*room{}}
	s.current.Store(broken)
	if r := s.get("/tickets"); r.StatusCode != http.StatusServiceUnavailable || len(s.got) > 0 {
		t.Errorf("status %d", r.StatusCode)
	}
	s.isThrough("a free page", s.get("/free"))
	s.current.Store(before)
	if n := s.Stats(); n.Panics != 1 || n.Unavailable != 1 {
		t.Errorf("counts %+v", n)
	}
}

func isBlocked(c *Connector, path string) bool {
	w := httptest.NewRecorder()
	c.Middleware(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code == http.StatusForbidden
}

func TestFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.json")
	write := func(text string, age time.Duration) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(Options{Key: testKey, Source: &Source{File: file}}); err == nil {
		t.Error("a file that is missing is taken")
	}
	write(sourcetest.Blocking("one"), time.Hour)
	c, err := New(Options{Key: testKey, Source: &Source{File: file}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write("{", time.Minute)
	c.loader.Reload(t.Context(), c.use)
	if !isBlocked(c, "/one") {
		t.Error("a broken file took the rules away")
	}
	write(sourcetest.Blocking("two"), time.Second)
	eventually(t, "the file is read again", func() bool { return isBlocked(c, "/two") && !isBlocked(c, "/one") })
}

func TestURL(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	text, requests := sourcetest.Blocking("one"), []string{}
	set := func(path string) {
		mu.Lock()
		defer mu.Unlock()
		text = path
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Header.Get("If-None-Match"))
		w.Header().Set("ETag", `"`+text[len(text)-60:len(text)-50]+`"`)
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	source := &Source{URL: server.URL, Keep: filepath.Join(t.TempDir(), "kept.json")}
	c, err := New(Options{Key: testKey, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.loader.Reload(t.Context(), c.use)
	set(sourcetest.Blocking("two") + strings.Repeat(" ", 55))
	c.loader.Reload(t.Context(), c.use)
	if !isBlocked(c, "/two") {
		t.Error("new rules are not in force")
	}
	set("broken" + strings.Repeat(" ", 100))
	c.loader.Reload(t.Context(), c.use)
	if !isBlocked(c, "/two") {
		t.Error("broken rules took the others away")
	}
	if mu.Lock(); len(requests) != 4 || requests[0] != "" || requests[1] == "" {
		t.Errorf("asked with %q", requests)
	}
	mu.Unlock()
	server.Close()
	again, err := New(Options{Key: testKey, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !isBlocked(again, "/two") {
		t.Error("rules are not kept")
	}
	if c, _, err := earlyShop(t, Options{Source: &Source{URL: server.URL}}); err != nil || c.HasRules() {
		t.Errorf("there are rules from nowhere: %v", err)
	}
}

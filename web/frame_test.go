package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// bare returns a server without rooms, with one additional handler.
func bare(t *testing.T, handle echo.HandlerFunc) (*site, *safeBuffer) {
	t.Helper()
	log := &safeBuffer{}
	s := New(Options{AdminToken: token, Ready: func() bool { return true }, Assets: built, Log: slog.New(slog.NewTextHandler(log, nil))})
	s.echo.GET("/test", handle)
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return &site{t, s, nil, nil, listener.URL}, log
}

// TestProblems checks the response to each error.
func TestProblems(t *testing.T) {
	t.Parallel()
	var err error
	s, log := bare(t, func(echo.Context) error { return err })
	secret := errors.New("address of the database")
	for _, c := range []struct {
		err    error
		status int
		name   string
		retry  string
		detail string
	}{
		{&invalid.Error{Problems: invalid.List{{Field: "a", Detail: "is wrong"}, {Field: "b", Detail: "too"}}}, 400, "invalid", "", "a is wrong; b too"},
		{room.ErrSecret, 403, "wrong-secret", "", ""},
		{room.ErrNotFound, 404, "not-found", "", ""},
		{room.ErrTicketUnknown, 404, "unknown-ticket", "", ""},
		{&room.EarlyError{Wait: 90*time.Second + time.Millisecond}, 409, "too-early", "91", ""},
		{&room.EarlyError{Wait: -time.Millisecond}, 409, "too-early", "1", ""},
		{room.ErrExists, 409, "room-exists", "", ""},
		{&fairness.Violation{Rule: fairness.RuleEnd, Detail: "it is over"}, 409, "against-the-rules", "", ""},
		{room.ErrClosed, 410, "closed", "", ""},
		{room.ErrExpired, 410, "expired", "", ""},
		{room.ErrBusy, 503, "busy", "1", ""},
		{room.ErrStopping, 503, "stopping", "2", ""},
		{context.DeadlineExceeded, 503, "timeout", "2", ""},
		{secret, 500, "internal", "", ""},
		{echo.ErrNotFound, 404, "", "", ""},
	} {
		err = fmt.Errorf("read something: %w", c.err)
		a := s.get("/test")
		p := a.problem(c.status, c.name)
		if got := a.header.Get("Retry-After"); got != c.retry {
			t.Errorf("%v: Retry-After %q, want %q", c.err, got, c.retry)
		}
		if strings.Contains(a.body, "read something") || strings.Contains(a.body, secret.Error()) || c.detail != "" && p.Detail != c.detail || c.name != "" && p.Detail == "" {
			t.Errorf("%v: %s", c.err, a.body)
		}
		if inLog := strings.Contains(log.String(), p.RequestID); inLog != (c.status == 500) {
			t.Errorf("%v: in the log: %t", c.err, inLog)
		}
	}
	if !strings.Contains(log.String(), secret.Error()) {
		t.Errorf("the log does not say what went wrong: %s", log)
	}
}

// TestProblemsDocumented checks that each type is documented at its URL.
func TestProblemsDocumented(t *testing.T) {
	text, err := os.ReadFile("PROBLEMS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if !strings.Contains(string(text), fmt.Sprintf("\n### %s\n\n%d", k.name, k.status)) {
			t.Errorf("PROBLEMS.md does not describe %s, %d", k.name, k.status)
		}
	}
	if headings := strings.Count(string(text), "\n### "); headings != len(kinds) {
		t.Errorf("PROBLEMS.md describes %d types of %d", headings, len(kinds))
	}
}

// TestPanic checks that a panic affects only its own request.
func TestPanic(t *testing.T) {
	t.Parallel()
	s, log := bare(t, func(echo.Context) error { panic("the ceiling fell down") })
	p := s.get("/test").problem(http.StatusInternalServerError, "internal")
	if strings.Contains(p.Detail, "ceiling") || !strings.Contains(log.String(), "ceiling") || !strings.Contains(log.String(), "frame_test.go") || !strings.Contains(log.String(), p.RequestID) {
		t.Errorf("problem %+v, log %s", p, log)
	}
	s.get("/livez").want(http.StatusOK)
}

// TestAbort checks that a handler can still abort a connection.
func TestAbort(t *testing.T) {
	t.Parallel()
	s, _ := bare(t, func(echo.Context) error { panic(http.ErrAbortHandler) })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := plain.Do(r); err == nil {
		response.Body.Close()
		t.Errorf("status %d, want a broken connection", response.StatusCode)
	}
}

// TestLateError checks that an error after the start of the response does not change the response.
func TestLateError(t *testing.T) {
	t.Parallel()
	s, log := bare(t, func(c echo.Context) error {
		return errors.Join(c.String(http.StatusOK, "fine"), errors.New("too late"))
	})
	if a := s.get("/test").want(http.StatusOK); a.body != "fine" || !strings.Contains(log.String(), "too late") {
		t.Errorf("body %q, log %s", a.body, log)
	}
}

// TestHealth checks the health of a server before and after it is ready.
func TestHealth(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	s := newSite(t, func(o *Options) { o.Ready = ready.Load })
	if a := s.get("/livez").want(http.StatusOK); a.body != "ok\n" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("alive: %q, %v", a.body, a.header)
	}
	if a := s.get("/readyz"); a.problem(http.StatusServiceUnavailable, "not-ready").Detail == "" || a.header.Get("Retry-After") == "" {
		t.Errorf("not ready: %s", a.body)
	}
	ready.Store(true)
	if a := s.get("/readyz").want(http.StatusOK); !strings.HasPrefix(a.body, `{"status":"ok","database_ms":`) || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("ready: %q, %v", a.body, a.header)
	}
	s.do("HEAD", "/readyz", "").want(http.StatusOK)
	own := newSite(t)
	eventually(t, "the rooms are ready", func() bool { return own.get("/readyz").status == http.StatusOK })
	away := newSite(t, func(o *Options) { o.Ready = func() bool { return false } })
	eventually(t, "the rooms are loaded", func() bool {
		a := away.get("/readyz?exclude=database")
		return a.status == http.StatusOK && strings.HasPrefix(a.body, `{"status":"database away"`)
	})
	if a := away.get("/readyz?exclude=rooms"); a.status != http.StatusServiceUnavailable {
		t.Errorf("without its database: %d", a.status)
	}
}

// TestDatabaseAway checks that errors of an unreachable database are not internal errors.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	s, log := bare(t, func(echo.Context) error { return errors.New("connection refused") })
	s.failures.problems.ready = func() bool { return false }
	s.get("/test").problem(http.StatusServiceUnavailable, "not-ready")
	if log.String() != "" {
		t.Errorf("logged once a request: %s", log)
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	s, _ := bare(t, nil)
	a := s.get("/").want(http.StatusOK)
	if a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("headers %v", a.header)
	}
	if got := decode[map[string]string](a); got["name"] != "proofline" || !strings.HasPrefix(got["documentation"], "https://") {
		t.Errorf("index %v", got)
	}
}

// TestRequestIDs checks that every response has its own ID, or the one set by a proxy.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s, _ := bare(t, nil)
	seen := map[string]bool{}
	for range 100 {
		seen[s.get("/").header.Get("X-Request-Id")] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d ids of 100 requests", len(seen))
	}
	for given, keep := range map[string]bool{
		"7f3a-B_c.9": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "a b": false, "a\"b": false, "<script>": false, "ä": false, "a\tb": false,
	} {
		if got := s.get("/nothing", "X-Request-Id: "+given).problem(http.StatusNotFound, "").RequestID; (got == given) != keep || !regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`).MatchString(got) {
			t.Errorf("given %q, answered %q", given, got)
		}
	}
}

// TestServe stops a server during a request.
func TestServe(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	s, _ := bare(t, func(c echo.Context) error {
		close(entered)
		<-release
		return c.String(http.StatusOK, "finished")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	s.url = "http://" + l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		if a := s.get("/test"); a.status != http.StatusOK || a.body != "finished" {
			t.Errorf("the request under way got %d %q", a.status, a.body)
		}
	})
	<-entered
	stop()
	eventually(t, "the server takes no more connections", func() bool {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	select {
	case err := <-served:
		t.Fatalf("stopped before its request was answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	wg.Wait()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "serve HTTP") {
		t.Errorf("Serve on a closed listener: %v", err)
	}
}

// TestServeGivesUp checks that a request that never ends does not keep the server from stopping.
func TestServeGivesUp(t *testing.T) {
	t.Parallel()
	entered, gone := make(chan struct{}), make(chan struct{})
	s, _ := bare(t, func(c echo.Context) error {
		close(entered)
		<-c.Request().Context().Done()
		close(gone)
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	go func() {
		if response, err := http.Get("http://" + l.Addr().String() + "/test"); err == nil {
			response.Body.Close()
		}
	}()
	<-entered
	stop()
	began := time.Now()
	if err := <-served; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*shutdownTimeout+10*time.Second {
		t.Errorf("Serve after %v: %v", time.Since(began), err)
	}
	<-gone
}

// TestLongHeader checks that a header that is too long is refused before the handler.
func TestLongHeader(t *testing.T) {
	t.Parallel()
	s, _ := bare(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	s.url = "http://" + l.Addr().String()
	s.get("/", "X-Long: "+strings.Repeat("x", 15<<10)).want(http.StatusOK)
	s.get("/", "X-Long: "+strings.Repeat("x", 64<<10)).want(http.StatusRequestHeaderFieldsTooLarge)
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

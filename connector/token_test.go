package connector

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/sourcetest"
)

// teller is a server whose replies have the expiry of tokens.
type teller struct {
	*httptest.Server
	mu    sync.Mutex
	ends  map[string]time.Time // by token; others are refused, zero: never
	shown string
}

func newTeller(t *testing.T) *teller {
	t.Helper()
	s := &teller{ends: map[string]time.Time{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shown = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		ends, ok := s.ends[s.shown]
		re := report.Reply{}
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !ends.IsZero() {
			re.TokenEnds = ends.UnixMilli()
		}
		_ = json.NewEncoder(w).Encode(re)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *teller) set(token string, ends time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[token] = ends
}

func (s *teller) latest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// all returns the log lines so far.
func (l loggedLines) all() (lines []string) {
	for {
		select {
		case line := <-l:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

// TestTokenEnds tests that the expiry is logged once a day, from two weeks before.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	server, log := newTeller(t), make(loggedLines, 100)
	s := newShop(t, "", func(o *Options) {
		o.Server, o.Token, o.Log = server.URL, testToken, slog.New(slog.NewTextHandler(log, nil))
	})
	if n := s.Stats(); !n.TokenEnds.IsZero() || n.TokenLeft != 0 {
		t.Errorf("before the first report the token ends at %v, in %v", n.TokenEnds, n.TokenLeft)
	}
	const day = 24 * time.Hour
	ends := s.clock.now().Add(15 * day)
	server.set(testToken, ends)
	for _, step := range []struct {
		name string
		wait time.Duration
		want string // in the only line; empty: no line
	}{
		{"fifteen days before", 0, ""},
		{"fourteen days before", day, "days=14"},
		{"an hour later", time.Hour, ""},
		{"a day later", 23 * time.Hour, "days=13"},
		{"on the last day", 12*day + 6*time.Hour, "days=0"},
		{"another hour later", time.Hour, ""},
		{"after the end", day, "level=ERROR"},
		{"another hour after", time.Hour, ""},
	} {
		s.clock.pass(step.wait)
		log.all()
		s.report()
		lines := log.all()
		if step.want == "" && len(lines) > 0 || step.want != "" &&
			(len(lines) != 1 || !strings.Contains(lines[0], step.want)) {
			t.Errorf("%s: the log has %q, want %q", step.name, lines, step.want)
		}
		if n := s.Stats(); !n.TokenEnds.Equal(ends) || n.TokenLeft != ends.Sub(s.clock.now()) {
			t.Errorf("%s: Stats have %v, %v", step.name, n.TokenEnds, n.TokenLeft)
		}
	}
	s.clock.pass(day)
	server.mu.Lock()
	delete(server.ends, testToken)
	server.mu.Unlock()
	if _, err := s.reporter.Send(t.Context(), 1); !errors.Is(err, report.ErrReport) {
		t.Errorf("the ended token: %v", err)
	}
	if lines := log.all(); len(lines) != 1 || !strings.Contains(lines[0], "token expired") {
		t.Errorf("a day after the end the log has %q", lines)
	}
	server.set(testToken, time.Time{})
	s.report()
	if n := s.Stats(); !n.TokenEnds.IsZero() {
		t.Errorf("a token that never ends does at %v", n.TokenEnds)
	}
}

// TestTokenFile tests that the current token in the file is used.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	server, log, file := newTeller(t), make(loggedLines, 100), filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plt_one\n")
	s := newShop(t, "", func(o *Options) {
		o.Server, o.TokenFile, o.Log = server.URL, file, slog.New(slog.NewTextHandler(log, nil))
	})
	server.set("plt_one", s.clock.now().Add(time.Hour))
	server.set("plt_two", time.Time{})
	s.report()
	if got := server.latest(); got != "plt_one" || s.Stats().TokenEnds.IsZero() {
		t.Errorf("sent %q, which ends at %v", got, s.Stats().TokenEnds)
	}
	log.all()
	for _, wrong := range []string{"", " \n", "two\nlines", "a b", "\x00", "caf\u00e9"} {
		write(wrong)
		for range 2 {
			s.report()
		}
		if lines := log.all(); server.latest() != "plt_one" || len(lines) > 1 {
			t.Errorf("with %q in the file %q is sent, and the log has %q", wrong, server.latest(), lines)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.report()
	if lines := log.all(); server.latest() != "plt_one" || len(lines) != 1 ||
		!strings.Contains(lines[0], "using the previous token") {
		t.Errorf("without the file %q is sent, and the log has %q", server.latest(), lines)
	}
	write("plt_two")
	s.report()
	if lines := log.all(); server.latest() != "plt_two" || !s.Stats().TokenEnds.IsZero() || len(lines) != 1 ||
		strings.Contains(lines[0], "plt_") {
		t.Errorf("sent %q, which ends at %v; the log has %q", server.latest(), s.Stats().TokenEnds, lines)
	}
}

// TestTokenFileOfRules tests that rules are loaded with the current token in the file.
func TestTokenFileOfRules(t *testing.T) {
	t.Parallel()
	s, h, file := sourcetest.NewSigner(t), newHost(t), filepath.Join(t.TempDir(), "token")
	h.has(s.Rules("shop", 7, "one"))
	o := Options{Key: testKey, Log: quiet(), Source: &Source{URL: h.url(), SiteKey: s.Key}, TokenFile: file, reportInterval: time.Hour}
	if _, err := New(o); !errors.Is(err, ErrToken) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	for _, token := range []string{"plt_one", "plt_two"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.WriteFile(file, []byte("plt_three"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(h.heard())
	if err := c.loader.Reload(t.Context(), c.use); err != nil {
		t.Fatal(err)
	}
	if got := h.heard()[before].Get("Authorization"); got != "Bearer plt_three" {
		t.Errorf("asked with %q", got)
	}
	o.Token = testToken
	if _, err := New(o); !errors.Is(err, ErrToken) {
		t.Errorf("a token and a file: %v", err)
	}
}

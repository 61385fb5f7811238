package conformance

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Page is the owner's page, for rooms whose failure is "page".
const Page = "<!doctype html><html lang=\"en\"><title>The shop</title><p>Our own page</p></html>"

// failures are the ways in which rooms fail while they are down.
var failures = map[string]func(w http.ResponseWriter){
	"retry-page": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
	"paging":     func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, // no response
	"fail-open":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	"refusing":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, // a response: not a failure
}

// withFailures makes requests to rooms that are down fail.
func (r *Room) withFailures(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/r/"), "/")
		r.mu.Lock()
		isDown := r.isDown
		r.mu.Unlock()
		if fail, ok := failures[name]; ok && isDown {
			fail(w)
			return
		}
		next.ServeHTTP(w, q)
	})
}

// setDown takes the rooms that can fail down, or brings them up again.
func (r *Room) setDown(isDown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDown = isDown
}

// failOpen is a reported fail-open interval.
type failOpen struct {
	ID          string
	From, Until int64
	Requests    uint64
}

// record records reported fail-open intervals, and returns their ids. The caller
// holds the lock.
func (r *Room) record(said roomReport) (ids []string) {
	for _, o := range said.FailOpen {
		if said.Room != r.room("fail-open") || len(o.ID) != 22 || o.Until < o.From ||
			o.From < time.Now().Add(-time.Hour).UnixMilli() || o.Requests == 0 {
			r.Errorf("fail-open interval %+v of %s", o, said.Room)
		}
		r.received.failedOpen += o.Requests
		ids = append(ids, o.ID)
	}
	return ids
}

// failureKind returns the kind of a response while a room is down: "retry" (503,
// retry page), "busy" (503, JSON for a script) or "own" (503, the owner's page).
func failureKind(r reply) string {
	kind := r.header.Get("Content-Type")
	switch wait := r.header.Get("Retry-After"); {
	case r.status != http.StatusServiceUnavailable || r.header.Get("Cache-Control") != "no-store":
		return ""
	case r.body == Page && wait == "30" && strings.HasPrefix(kind, "text/html"):
		return "own"
	case wait < "10" || wait > "20":
		return ""
	case kind == "application/json" && strings.TrimSpace(r.body) == `{"error":"unavailable"}`:
		return "busy"
	case kind == "text/html; charset=utf-8" && strings.HasPrefix(r.header.Get("Content-Security-Policy"),
		"default-src 'none'; ") && r.header.Get("Content-Language") != "" &&
		strings.Contains(r.body, `http-equiv="refresh" content="`+wait+`"`) && !strings.Contains(r.body, "//"):
		return "retry"
	}
	return ""
}

// briefLength is the length of sessions of the room brief.
const briefLength = time.Second

// sessionLengths tests that an active session is extended up to its end.
func (s *suite) sessionLengths(t *testing.T) {
	for range 5 {
		if s.slidesToEnd(t) {
			return
		}
	}
	t.Error("no session lasts until its latest end") // or this machine keeps stalling
}

// slidesToEnd keeps a session active, and reports whether it lasted until its latest
// end. On a machine that stalls it may not.
func (s *suite) slidesToEnd(t *testing.T) bool {
	t.Helper()
	pass, before := s.pass(s.room("brief")), time.Now()
	first := enter(t, s.addr, pass)
	entered, latest, cookie := time.Now(), before, first
	for isFirstOver := false; ; time.Sleep(briefLength / 10) {
		asked := time.Now()
		next, isIn := s.visit(t, cookie)
		switch {
		case isIn && asked.After(entered.Add(4*briefLength)):
			t.Fatal("a session outlasts its latest end")
		case !isIn && time.Now().Before(latest.Add(briefLength)) && time.Now().Before(before.Add(4*briefLength)):
			t.Fatal("a session ends early")
		case !isIn:
			s.brief = pass
			return isFirstOver && asked.Sub(before) > 3*briefLength
		case next != cookie:
			cookie, latest = next, asked
		}
		if asked.After(entered.Add(briefLength)) && !isFirstOver {
			if _, isFirstOver = s.visit(t, first); isFirstOver {
				t.Fatal("a cookie is accepted after its end")
			}
			isFirstOver = true
		}
	}
}

// visit requests a page of brief, and returns the cookie for the next visit.
func (s *suite) visit(t *testing.T, cookie string) (next string, isIn bool) {
	t.Helper()
	r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/brief",
		Header: []string{"Accept: text/html", "Cookie: " + cookie}})
	switch kind := s.kind(r); kind {
	case "brief":
		return "", false
	case "site":
		return cookie, true
	case "begun": // a new cookie replaces the old one
		return r.cookies[0].Name + "=" + r.cookies[0].Value, true
	default:
		t.Fatalf("a page of brief is %s: status %d", kind, r.status)
	}
	return "", false
}

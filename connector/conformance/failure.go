package conformance

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Page is what visitors are to see where a room's failure is page.
const Page = "<!doctype html><html lang=\"en\"><title>The shop</title><p>Our own page</p></html>"

// failures are what rooms do while they are down.
var failures = map[string]func(w http.ResponseWriter){
	"holding":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
	"paging":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, // no answer
	"opening":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	"refusing": func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, // which is an answer
}

// failing has rooms fail that are to.
func (r *Room) failing(next http.Handler) http.Handler {
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

// setDown has rooms fail, or come back.
func (r *Room) setDown(isDown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDown = isDown
}

// opening is a time in which everybody was let in.
type opening struct {
	ID          string
	From, Until int64
	Requests    uint64
}

// record hears of openings, and returns the ids of them. The caller holds the
// lock.
func (r *Room) record(said roomReport) (ids []string) {
	for _, o := range said.Unguarded {
		if said.Room != r.room("opening") || len(o.ID) != 22 || o.Until < o.From || o.From < time.Now().Add(-time.Hour).UnixMilli() || o.Requests == 0 {
			r.Errorf("opening %+v of %s", o, said.Room)
		}
		r.told.opened += o.Requests
		ids = append(ids, o.ID)
	}
	return ids
}

// failureKind says what an answer is that has something to do with a failure:
// "held" (503, a page that tries again), "busy" (503, JSON for a script) or "own"
// (503, the page of the site's owner).
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
	case kind == "text/html; charset=utf-8" && strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'; ") && r.header.Get("Content-Language") != "" &&
		strings.Contains(r.body, `http-equiv="refresh" content="`+wait+`"`) && !strings.Contains(r.body, "//"):
		return "held"
	}
	return ""
}

// briefLength is how long sessions of the room brief last from each activity.
const briefLength = time.Second

// lengths has a visitor be active until the session ends for good.
func (s *suite) lengths(t *testing.T) {
	for range 5 {
		if s.slides(t) {
			return
		}
	}
	t.Error("no session goes on up to its end") // or this machine stands still all the time
}

// slides has a visitor be active, and tells whether that went on until nothing
// helped any more. On a machine that stands still it may not.
func (s *suite) slides(t *testing.T) bool {
	t.Helper()
	pass, before := s.pass(s.room("brief")), time.Now()
	first := enter(t, s.addr, pass)
	entered, latest, cookie := time.Now(), before, first
	for isFirstOver := false; ; time.Sleep(briefLength / 10) {
		asked := time.Now()
		next, isIn := s.visit(t, cookie)
		switch {
		case isIn && asked.After(entered.Add(4*briefLength)):
			t.Fatal("a session goes on after it ends at the latest")
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
				t.Fatal("a cookie is good for longer than it says")
			}
			isFirstOver = true
		}
	}
}

// visit asks for a page of brief, and returns the cookie to go on with.
func (s *suite) visit(t *testing.T, cookie string) (next string, isIn bool) {
	t.Helper()
	r := exchange(t, s.addr, Case{Method: http.MethodGet, Target: "/brief", Header: []string{"Accept: text/html", "Cookie: " + cookie}})
	switch kind := s.kind(r); kind {
	case "brief":
		return "", false
	case "site":
		return cookie, true
	case "begun": // a cookie comes with it
		return r.cookies[0].Name + "=" + r.cookies[0].Value, true
	default:
		t.Fatalf("a page of brief is %s: status %d", kind, r.status)
	}
	return "", false
}

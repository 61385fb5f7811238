package web

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/wire"
)

// open creates a room that stays open and has one arrival.
func (s *site) open(slug string) visitor {
	s.Helper()
	s.create(`{"slug":"` + slug + `","title":"Open \"room\"","windows":[{"length":"24h"}]}`)
	v := newVisitor(slug)
	s.post("/r/"+slug+"/join", v.joinBody()).want(http.StatusCreated)
	return v
}

// TestMalformed sends malformed joins and claims.
func TestMalformed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.open("bad")
	claim := "/r/bad/tickets/" + v.ticket + "/claim"
	const media, large = "media-type", "too-large"
	for _, c := range []struct {
		path, body string
		headers    []string
		status     int
		name       string
		fields     string // of the errors
	}{
		{path: "/r/bad/join", body: `{"ticket":"x"}`, status: 400, name: "invalid", fields: "ticket"},
		{path: "/r/bad/join", body: `{"ticket":"` + strings.ToUpper(v.ticket) + `"}`, status: 400, name: "invalid", fields: "ticket"},
		{path: "/r/bad/join", body: `{"ticket":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`, status: 400, name: "invalid", fields: "ticket"},
		{path: "/r/bad/join", body: `{"ticket":7}`, status: 400, name: "invalid", fields: "ticket"},
		{path: "/r/bad/join", body: `{"ticket":"` + v.ticket + `","ticket":"` + v.ticket + `"}`, status: 400, name: "invalid", fields: "ticket"},
		{path: "/r/bad/join", body: `{"tickets":"x","lanes":"vip"}`, status: 400, name: "invalid", fields: "tickets lanes"},
		{path: "/r/bad/join", body: `{"lane":"vip"}`, status: 400, name: "invalid", fields: "lane"},
		{path: "/r/bad/join", body: `{"ticket":`, status: 400, name: "invalid", fields: ""},
		{path: "/r/bad/join", body: `{} {}`, status: 400, name: "invalid", fields: ""},
		{path: "/r/bad/join", body: `[]`, headers: []string{"Content-Type: application/json"}, status: 400, name: "invalid", fields: ""},
		{path: "/r/bad/join", body: "\x00\xff", headers: []string{"Content-Type: application/json"}, status: 400, name: "invalid", fields: ""},
		{path: "/r/bad/join", body: v.joinBody(), headers: []string{"Content-Type: text/plain"}, status: 415, name: media},
		{path: "/r/bad/join", body: v.joinBody(), headers: []string{"Content-Type: "}, status: 415, name: media},
		{path: "/r/bad/join", body: `{"ticket":"` + strings.Repeat("x", visitorBody) + `"}`, status: 413, name: large},
		{path: claim, body: "", status: 400, name: "invalid", fields: ""},
		{path: claim, body: `{}`, status: 400, name: "invalid", fields: "secret"},
		{path: claim, body: `{"secret":null}`, status: 400, name: "invalid", fields: "secret"},
		{path: claim, body: `{"secret":"` + v.secret + `="}`, status: 400, name: "invalid", fields: "secret"},
		{path: claim, body: `{"secret":"` + v.secret[:42] + `\n"}`, status: 400, name: "invalid", fields: "secret"},
		{path: claim, body: `{"secret":"` + v.secret + `\n"}`, status: 400, name: "invalid", fields: "secret"},
		{path: claim, body: `{"secret":"` + v.secret + v.secret + `"}`, status: 400, name: "invalid", fields: "secret"},
		{path: claim, body: `{"secret":"` + v.secret + `","ticket":"x"}`, status: 400, name: "invalid", fields: "ticket"},
		{path: claim, body: `{"secret":"` + strings.Repeat("x", visitorBody) + `"}`, status: 413, name: large},
		{path: claim, body: v.claimBody(), headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415, name: media},
		{path: "/r/bad/tickets/x/claim", body: v.claimBody(), status: 400, name: "invalid", fields: "ticket"},
	} {
		t.Run("", func(t *testing.T) {
			s := &site{t, s.Server, s.rooms, s.control, s.url}
			p := s.post(c.path, c.body, c.headers...).problem(c.status, c.name)
			var fields []string
			for _, e := range p.Errors {
				if e.Detail == "" {
					t.Errorf("field %q without a detail", e.Field)
				}
				fields = append(fields, e.Field)
			}
			if got := strings.Join(fields, " "); got != c.fields || c.status == 400 && len(fields) == 0 {
				t.Errorf("%s %s: errors of %q, want %q", c.path, c.body, got, c.fields)
			}
			if strings.Contains(p.Detail, v.secret) {
				t.Errorf("the answer has the secret")
			}
		})
	}
	if n := decode[wire.State](s.get("/r/bad/state")).Arrivals; n != 1 {
		t.Errorf("%d arrivals, want the one", n)
	}
}

// TestWellFormed sends joins in unusual but valid forms.
func TestWellFormed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("good")
	for _, c := range []struct{ body, contentType string }{
		{"", ""}, {"{}", "application/json"}, {`{"ticket":null}`, "application/json"}, {`{"ticket":""}`, "application/json; charset=utf-8"},
	} {
		if j := decode[wire.Joined](s.post("/r/good/join", c.body, "Content-Type: "+c.contentType).want(http.StatusCreated)); len(j.Secret) != 43 {
			t.Errorf("join with %q: %+v, want a secret", c.body, j)
		}
	}
	for _, form := range []string{`{"ticket":"%s"}`, "{ \"ticket\" :\n\t\"%s\" }\r\n", `{"\u0074icket":"%s"}`} {
		v := newVisitor("good")
		body := fmt.Sprintf(form, v.ticket)
		if j := decode[wire.Joined](s.post("/r/good/join", body).want(http.StatusCreated)); j.Ticket != v.ticket || j.Secret != "" {
			t.Errorf("join with %q: %+v", body, j)
		}
	}
}

// TestChunkedBody sends bodies whose length is not announced.
func TestChunkedBody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("chunks")
	padded := func(n int) io.Reader {
		body := newVisitor("chunks").joinBody()
		return strings.NewReader(body + strings.Repeat(" ", n-len(body)))
	}
	for _, c := range []struct {
		body   io.Reader
		status int
	}{
		{padded(100), http.StatusCreated},
		{padded(visitorBody), http.StatusCreated},
		{padded(visitorBody + 1), http.StatusRequestEntityTooLarge},
		{io.LimitReader(zeros{}, 1<<20), http.StatusRequestEntityTooLarge},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/r/chunks/join", struct{ io.Reader }{c.body})
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := plain.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != c.status {
			t.Errorf("status %d, want %d", response.StatusCode, c.status)
		}
	}
}

// TestBrokenBody checks that a connection lost before the ticket arrives is not a join without a ticket.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("broken")
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /r/broken/join HTTP/1.1\r\nHost: example.com\r\nContent-Length: 49\r\n\r\n")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", response.StatusCode)
	}
	r, err := s.rooms.Get(t.Context(), "broken")
	if err != nil || r.Snapshot().Counts.Arrivals != 1 {
		t.Errorf("%d arrivals, %v, want the first alone", r.Snapshot().Counts.Arrivals, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestNotThere requests resources that do not exist.
func TestNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.open("here")
	stranger := newVisitor("here")
	for path, name := range map[string]string{
		"/r/nowhere/state":                                 "not-found",
		"/r/NOT-A-SLUG/state":                              "not-found",
		"/r/nowhere/checkpoint":                            "not-found",
		"/r/nowhere/tickets/" + v.ticket:                   "not-found",
		"/r/here/tickets/" + stranger.ticket:               "unknown-ticket",
		"/r/here/tickets/" + stranger.ticket + "/receipt":  "unknown-ticket",
		"/r/here/tile/0/000":                               "not-found", // only partial so far
		"/r/here/tile/0/000.p/3":                           "not-found", // beyond the log
		"/r/here/tile/0/000.p/300":                         "not-found",
		"/r/here/tile/entries/x001/000.p/2":                "not-found",
		"/r/here/tile/entries/0":                           "not-found",
		"/r/here/tile/":                                    "not-found",
		"/r/here/tile/../checkpoint":                       "not-found",
		"/r/here/tile/0%2F000.p/2":                         "not-found",
		"/r/here/other":                                    "",
		"/rooms/tile/0/000":                                "not-found", // only partial so far
		"/rooms/tile/entries/000.p/9":                      "not-found", // beyond the log
		"/rooms/tile/0":                                    "not-found",
		"/r/":                                              "",
		"/nothing":                                         "",
		"/r/here/tickets/" + v.ticket + "/receipt/nothing": "",
	} {
		a := s.get(path)
		a.problem(http.StatusNotFound, name)
		if strings.Contains(path, "/tile/") && a.header.Get("Cache-Control") != "" {
			t.Errorf("%s: an error has Cache-Control %q", path, a.header.Get("Cache-Control"))
		}
		if public := strings.HasPrefix(path, "/r/") || strings.HasPrefix(path, "/rooms/"); public != (a.header.Get("Access-Control-Allow-Origin") == "*") {
			t.Errorf("%s: Access-Control-Allow-Origin %q", path, a.header.Get("Access-Control-Allow-Origin"))
		}
	}
	s.post("/r/here/tickets/"+stranger.ticket+"/claim", stranger.claimBody()).problem(http.StatusNotFound, "unknown-ticket")
	s.post("/r/nowhere/join", v.joinBody()).problem(http.StatusNotFound, "not-found")
}

// TestPublic reads every public resource, with GET and HEAD, from a page of
// another origin.
func TestPublic(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.open("read")
	eventually(t, "the arrival is published", func() bool {
		return strings.HasPrefix(s.get("/r/read/checkpoint").want(http.StatusOK).body, "example.com/r/read\n2\n")
	})
	const jsonType, text, binary = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
	for _, c := range []struct{ path, contentType, cache string }{
		{"/r/read/checkpoint", text, "no-cache"},
		{"/r/read/tile/0/000.p/2", binary, "public, max-age=31536000, immutable"},
		{"/r/read/tile/entries/000.p/2", binary, "public, max-age=31536000, immutable"},
		{"/rooms/checkpoint", text, "no-cache"},
		{"/rooms/tile/0/000.p/2", binary, "public, max-age=31536000, immutable"},
		{"/rooms/tile/entries/000.p/2", binary, "public, max-age=31536000, immutable"},
		{"/r/read/state", jsonType, "public, max-age=1, stale-while-revalidate=5"},
		{"/r/read/tickets/" + v.ticket, jsonType, "no-store"},
		{"/r/read/tickets/" + v.ticket + "/receipt", text, "no-store"},
		{"/r/read/jwks.json", jsonType, "no-cache"},
		{"/r/read/.well-known/openid-configuration", jsonType, "public, max-age=3600"},
	} {
		get := s.get(c.path, "Origin: https://shop.example.com").want(http.StatusOK)
		head := s.do("HEAD", c.path, "").want(http.StatusOK)
		for name, want := range map[string]string{
			"Content-Type": c.contentType, "Cache-Control": c.cache, "Access-Control-Allow-Origin": "*",
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
			"Set-Cookie": "", "Access-Control-Allow-Credentials": "",
		} {
			if got := get.header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", c.path, name, got, want)
			}
			if got := head.header.Get(name); got != want {
				t.Errorf("HEAD %s: %s %q, want %q", c.path, name, got, want)
			}
		}
		if n := len(get.header); n > 8+1 { // and Date
			t.Errorf("%s: %d headers cost more than 8: %v", c.path, n, get.header)
		}
		if n := head.header.Get("Content-Length"); head.body != "" || n != fmt.Sprint(len(get.body)) && !strings.Contains(c.path, "tickets/"+v.ticket) {
			t.Errorf("HEAD %s: %d bytes, length %q, GET has %d", c.path, len(head.body), n, len(get.body))
		}
	}
	s.checkLog("read")
}

// checkLog checks the published tree, like any tile reader.
func (s *site) checkLog(slug string) {
	s.Helper()
	state := decode[wire.State](s.get("/r/" + slug + "/state"))
	key, err := note.NewVerifier(state.VKey)
	if err != nil {
		s.Fatal(err)
	}
	head, _, err := audit.OpenCheckpoint([]byte(s.get("/r/"+slug+"/checkpoint").body), key)
	if err != nil {
		s.Fatal(err)
	}
	fetch := func(_ context.Context, t audit.Tile) ([]byte, error) {
		return []byte(s.get("/r/" + slug + "/" + t.Path()).want(http.StatusOK).body), nil
	}
	for index := range head.Size {
		path, err := audit.ProveInclusion(s.Context(), fetch, head, index)
		if err == nil {
			err = audit.VerifyInclusion(head, index, audit.LeafHash(s.entry(slug, index)), path)
		}
		if err != nil {
			s.Error(err)
		}
	}
}

// TestMethods uses methods that a resource does not have.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.open("methods")
	for path, allowed := range map[string]string{
		"/r/methods/checkpoint":                       "GET HEAD",
		"/r/methods/tile/0/000.p/2":                   "GET HEAD",
		"/r/methods/state":                            "GET HEAD",
		"/rooms/checkpoint":                           "GET HEAD",
		"/rooms/tile/0/000.p/2":                       "GET HEAD",
		"/r/methods/jwks.json":                        "GET HEAD",
		"/r/methods/join":                             "POST",
		"/r/methods/tickets/" + v.ticket:              "GET HEAD",
		"/r/methods/tickets/" + v.ticket + "/receipt": "GET HEAD",
		"/r/methods/tickets/" + v.ticket + "/claim":   "POST",
		"/v1/rooms":                                   "GET POST",
		"/v1/rooms/methods":                           "GET PATCH",
		"/v1/rooms/methods/pause":                     "POST",
		"/v1/rooms/methods/resume":                    "POST",
		"/v1/rooms/methods/end":                       "POST",
		"/livez":                                      "GET HEAD",
		"/readyz":                                     "GET HEAD",
		"/":                                           "GET HEAD",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"} {
			if strings.Contains(" "+allowed+" ", " "+method+" ") {
				continue
			}
			a := s.do(method, path, "").want(http.StatusMethodNotAllowed)
			if method != "HEAD" {
				a.problem(http.StatusMethodNotAllowed, "")
			}
			if got := strings.ReplaceAll(a.header.Get("Allow"), ",", ""); got != "OPTIONS "+allowed {
				t.Errorf("%s %s: Allow %q, want OPTIONS and %s", method, path, got, allowed)
			}
		}
	}
}

// TestPreflight sends a browser's preflight request for a join from another origin.
func TestPreflight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.open("cors")
	for path, methods := range map[string]string{
		"/r/cors/join":                           "OPTIONS, POST",
		"/r/cors/tickets/" + v.ticket + "/claim": "OPTIONS, POST",
		"/r/cors/state":                          "OPTIONS, GET, HEAD",
	} {
		a := s.do("OPTIONS", path, "", "Origin: https://shop.example.com", "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: content-type").want(http.StatusNoContent)
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": methods,
			"Access-Control-Allow-Headers": "Content-Type, Authorization", "Access-Control-Max-Age": "86400",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("OPTIONS %s: %s %q, want %q", path, name, got, want)
			}
		}
	}
	s.do("OPTIONS", "/r/cors/nothing", "").problem(http.StatusNotFound, "")
	if a := s.do("OPTIONS", "/v1/rooms", ""); a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("the management allows other origins: %v", a.header)
	}
	a := s.post("/r/cors/tickets/"+v.ticket+"/claim", v.claimBody(), "Origin: https://shop.example.com").want(http.StatusAccepted)
	if a.header.Get("Access-Control-Expose-Headers") != "Retry-After" || a.header.Get("Retry-After") != "60" {
		t.Errorf("claimed too soon: %v", a.header)
	}
}

// TestCompression requests an entry bundle in gzip.
func TestCompression(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("zip")
	const path = "/r/zip/tile/entries/000.p/2"
	plain := s.get(path)
	a := s.get(path, "Accept-Encoding: br, GZIP;q=0.5").want(http.StatusOK)
	z, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || string(b) != plain.body {
		t.Errorf("unpacked %q, %v, want %q", b, err, plain.body)
	}
	if a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Vary") != "Accept-Encoding" || plain.header.Get("Vary") != "Accept-Encoding" || plain.header.Get("Content-Encoding") != "" {
		t.Errorf("headers %v and %v", a.header, plain.header)
	}
	if hashes := s.get("/r/zip/tile/0/000.p/2", "Accept-Encoding: gzip"); hashes.header.Get("Content-Encoding") != "" || len(hashes.body) != 64 {
		t.Errorf("a tile of hashes is packed: %v", hashes.header)
	}
}

// TestState reads the shared document before and after a change.
func TestState(t *testing.T) {
	t.Parallel()
	s, pass := newTimed(t)
	s.open("state")
	eventually(t, "the arrival is in the state", func() bool { return decode[wire.State](s.get("/r/state/state")).Arrivals == 1 })
	a := s.get("/r/state/state").want(http.StatusOK)
	got := decode[wire.State](a)
	if got.Slug != "state" || got.Title != `Open "room"` || got.Origin != "example.com/r/state" || got.Phase != "serving" || got.Paused || got.Closes != nil ||
		got.Size != 2 || got.Outflow.PerMinute != 60 || time.Since(got.Now).Abs() > time.Minute {
		t.Errorf("state %s", a.body)
	}
	if w := got.Window; w != nil && len(got.Windows) == 1 {
		if !got.Windows[0].Draws.Equal(w.To) { // without a beacon
			t.Errorf("windows of %s", a.body)
		}
		got.Windows[0].Draws = time.Time{}
	}
	if w := got.Window; w == nil || w.Arrivals != 1 || w.To.Sub(w.From) != 24*time.Hour || len(got.Windows) != 1 || !reflect.DeepEqual(got.Windows[0], *w) {
		t.Errorf("windows of %s", a.body)
	}
	if got.Poll.AfterMS != 2000 || got.Poll.MostMS != 60_000 || got.Poll.Jitter != 0.3 {
		t.Errorf("poll %+v", got.Poll)
	}
	tag := a.header.Get("ETag")
	time.Sleep(maxAge) // rendered again, although nothing has happened
	if quiet := s.get("/r/state/state"); quiet.header.Get("ETag") != tag || decode[wire.State](quiet).Now.Equal(got.Now) {
		t.Errorf("the tag of a quiet room changed from %s to %s", tag, quiet.header.Get("ETag"))
	}
	for _, known := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
		a := s.get("/r/state/state", "If-None-Match: "+known).want(http.StatusNotModified)
		if a.body != "" || a.header.Get("ETag") != tag || a.header.Get("Cache-Control") == "" {
			t.Errorf("not modified: %q, %v", a.body, a.header)
		}
	}
	s.get("/r/state/state", `If-None-Match: "other"`).want(http.StatusOK)
	const words = "Ünïcode\nand \"\\ 😀"
	s.do("PATCH", "/v1/rooms/state", `{"message":{"texts":{"en":"Ünïcode\nand \"\\ 😀","de":"Bald"},"default":"en","for":"1h"}}`).want(http.StatusOK)
	var with answer
	eventually(t, "the message is in the state", func() bool {
		with = s.get("/r/state/state")
		m := decode[wire.State](with).Message
		return m != nil && m.Texts["en"] == words && m.Texts["de"] == "Bald" && with.header.Get("ETag") != tag
	})
	// The transcript has the hash of the message in the state.
	r, err := s.rooms.Get(t.Context(), "state")
	if err != nil {
		t.Fatal(err)
	}
	var raw struct{ Message json.RawMessage }
	if err := json.Unmarshal([]byte(with.body), &raw); err != nil || string(raw.Message) != r.Snapshot().Message(r.Now()).Canonical() {
		t.Errorf("state has the message %s: %v", raw.Message, err)
	}
	page := func(accept string) string {
		return s.get("/r/state", "Accept: text/html", "Accept-Language: "+accept).want(http.StatusOK).body
	}
	for accept, want := range map[string]string{"de-AT": `lang="de">Bald</p>`, "fr": `lang="en">Ünïcode`, "nl, de;q=0.5": `lang="de">Bald</p>`, "ja": "<time"} {
		if body := page(accept); !strings.Contains(body, want) {
			t.Errorf("the page for %s lacks %s:\n%s", accept, want, body)
		}
	}
	pass(61 * time.Minute)
	eventually(t, "the message vanishes by itself", func() bool {
		a := s.get("/r/state/state")
		return decode[wire.State](a).Message == nil && a.header.Get("ETag") != with.header.Get("ETag")
	})
	if body := page("de"); strings.Contains(body, "Bald") {
		t.Errorf("the page shows a message that is over:\n%s", body)
	}
	if n := r.Snapshot().Counts.Amends; n != 1 {
		t.Errorf("%d amendments", n)
	}
}

// TestStateShared checks that the document is rendered rarely, however many clients ask.
func TestStateShared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("shared")
	r, err := s.rooms.Get(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[*document]time.Time{}
	var wg sync.WaitGroup
	began := time.Now()
	for range 8 {
		wg.Go(func() {
			for time.Since(began) < time.Second {
				asked := time.Now()
				d := s.feed.documents.of(r)
				if age := asked.Sub(d.rendered); age > maxAge {
					t.Errorf("a document of %v", age)
				}
				mu.Lock()
				seen[d] = d.rendered
				mu.Unlock()
			}
		})
	}
	for time.Since(began) < time.Second {
		s.post("/r/shared/join", "").want(http.StatusCreated)
	}
	wg.Wait()
	most := 2 + int(time.Since(began)/minAge)
	seen[s.feed.documents.of(r)] = time.Now() // a second after the first
	if n := len(seen); n < 2 || n > most {
		t.Errorf("%d documents in %v of changes, want 2 to %d", n, time.Since(began), most)
	}
}

// TestStateAge checks that during rendering, other callers get the previous document unless it is too
// old.
func TestStateAge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("age")
	r, err := s.rooms.Get(t.Context(), "age")
	if err != nil {
		t.Fatal(err)
	}
	s.feed.documents.of(r)
	found, _ := s.feed.documents.bySlug.Load("age")
	g := found.(*rendering)
	g.mu.Lock() // as if rendering were in progress
	aged := func(by time.Duration) *document {
		d := &document{rendered: time.Now().Add(-by)}
		g.latest.Store(d)
		return d
	}
	synctest.Test(t, func(t *testing.T) { // when no time passes
		for _, age := range []time.Duration{0, minAge - 50*time.Millisecond, minAge + 50*time.Millisecond, maxAge - 1} {
			if old := aged(age); s.feed.documents.of(r) != old {
				t.Errorf("a document of %v is not used while a new one is made", age)
			}
		}
	})
	old := aged(2 * maxAge)
	answered := make(chan *document, 1)
	go func() { answered <- s.feed.documents.of(r) }()
	time.Sleep(50 * time.Millisecond) // the caller has to wait
	g.mu.Unlock()
	if d := <-answered; d == old || d.snapshot != r.Snapshot() {
		t.Errorf("answered with %+v", d)
	}
}

// TestCheckpointTag requests an unchanged checkpoint again.
func TestCheckpointTag(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"tag","windows":[{"length":"24h"}]}`)
	tag := s.get("/r/tag/checkpoint").want(http.StatusOK).header.Get("ETag")
	if a := s.get("/r/tag/checkpoint", "If-None-Match: "+tag).want(http.StatusNotModified); a.body != "" || a.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("not modified: %q, %v", a.body, a.header)
	}
	s.post("/r/tag/join", "").want(http.StatusCreated)
	eventually(t, "the checkpoint changes", func() bool {
		return s.get("/r/tag/checkpoint", "If-None-Match: "+tag).status == http.StatusOK
	})
}

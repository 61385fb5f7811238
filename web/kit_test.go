package web

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const (
	token     = "the-management-token"
	publicURL = "https://example.com"
)

// built is an example of npm's output.
var built = fstest.MapFS{
	"manifest.json":  {Data: []byte(`{"page.js": "page.A1.js", "check.js": "check.B2.js", "checker.js": "checker.B2.js", "blind.js": "blind.E5.js", "work.js": "work.F6.js", "solver.js": "solver.A7.js", "page.css": "page.C3.css", "icon.svg": "icon.D4.svg"}`)},
	"page.A1.js":     {Data: []byte(strings.Repeat("go(on);", 100))},
	"checker.B2.js":  {Data: []byte("check()")},
	"blind.E5.js":    {Data: []byte("blind()")},
	"page.C3.css":    {Data: []byte("main{display:block}")},
	"icon.D4.svg":    {Data: []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")},
	"page.A1.js.map": {Data: []byte("{}")},
}

// site is a server with its own database, reached over loopback.
type site struct {
	testing.TB
	*Server
	rooms   *room.Rooms
	control *control.Rooms
	url     string
}

// newSite starts a site; options may be changed before it starts.
func newSite(t testing.TB, change ...func(*Options)) *site {
	t.Helper()
	rooms, pool := newRooms(t)
	o := Options{Rooms: rooms, Control: newControl(t, rooms, pool), AdminToken: token}
	for _, f := range change {
		f(&o)
	}
	return startSite(t, o)
}

// startSite starts a site with these options.
func startSite(t testing.TB, o Options) *site {
	t.Helper()
	if o.Assets == nil {
		o.Assets = built
	}
	if o.Control != nil {
		o.Activity, o.Keys = o.Control.Activity, o.Control.Store.Keys
	}
	if o.Reports == nil {
		o.Reports = o.Rooms.Store
	}
	if o.Log == nil {
		o.Log = testlog.New(t, slog.LevelWarn)
	}
	s := New(o)
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return &site{t, s, o.Rooms, o.Control, listener.URL}
}

// newTimed starts a site with a clock that the test controls.
func newTimed(t testing.TB) (s *site, pass func(time.Duration)) {
	t.Helper()
	return startTimed(t, pgtest.NewClock(t))
}

func startTimed(t testing.TB, c *pgtest.Clock, chains ...evidence.Chain) (s *site, pass func(time.Duration)) {
	t.Helper()
	pool := servertest.Pool(t, c.URL)
	rooms := servertest.Rooms(t, pool, func(o *room.Options) { o.PublicURL, o.Chains = publicURL, chains })
	s = startSite(t, Options{Rooms: rooms, Control: newControl(t, rooms, pool), AdminToken: token})
	return s, func(by time.Duration) { t.Helper(); servertest.Pass(t, c, by, rooms) }
}

func newRooms(t testing.TB, chains ...evidence.Chain) (*room.Rooms, *pgxpool.Pool) {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	return servertest.Rooms(t, pool, func(o *room.Options) { o.PublicURL, o.Chains = publicURL, chains }), pool
}

func newControl(t testing.TB, rooms *room.Rooms, pool *pgxpool.Pool) *control.Rooms {
	log := testlog.New(t, slog.LevelInfo)
	return control.New(control.Options{
		Rooms: rooms, Store: pgcontrol.NewStore(pool), Records: pgroom.NewStore(pool), Log: log,
		Activity: activity.New(activity.Options{
			Store: pgactivity.NewStore(pool), IsRefusal: control.IsRefusal, Log: log,
		}),
	})
}

// answer is a response that has been read.
type answer struct {
	testing.TB
	status  int
	header  http.Header
	body    string
	isLoose bool // it may have more members than a test looks at
}

// plain neither decompresses nor follows redirects, so that tests see the original responses.
var plain = &http.Client{
	Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}, Timeout: 5 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends a request. A body that begins with { is declared as JSON; headers
// are "Name: value", and an empty value removes one.
func (s *site) do(method, path, body string, headers ...string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/v1/") {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if value == "" {
			r.Header.Del(name)
		}
	}
	response, err := plain.Do(r)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	a := answer{TB: s.TB, status: response.StatusCode, header: response.Header, body: string(b)}
	s.conforms(method, path, a)
	return a
}

// now is the site's time.
func (s *site) now() time.Time { return time.Now().Add(s.rooms.Health().Ahead) }

func (s *site) get(path string, headers ...string) answer {
	s.Helper()
	return s.do("GET", path, "", headers...)
}

func (s *site) post(path, body string, headers ...string) answer {
	s.Helper()
	return s.do("POST", path, body, headers...)
}

// create creates a room from JSON.
func (s *site) create(config string) {
	s.Helper()
	s.post("/v1/rooms", config).want(http.StatusCreated)
}

// want fails the test unless the response has the given status.
func (a answer) want(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// decode parses a JSON body into T and refuses members that T does not have.
func decode[T any](a answer) T {
	a.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(a.body))
	if !a.isLoose {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&v); err != nil {
		a.Fatalf("decode %s: %v", a.body, err)
	}
	return v
}

// problem parses a problem document of a status and type, and checks its form.
func (a answer) problem(status int, name string) problem {
	a.Helper()
	a.want(status)
	p := decode[problem](a)
	wantType := problemTypes + name
	if name == "" {
		wantType = "about:blank"
	}
	if p.Type != wantType || p.Title == "" || p.Status != status || !strings.HasPrefix(p.Instance, "/") {
		a.Errorf("problem %+v, want type %s", p, wantType)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.Errorf("content type %q", got)
	}
	if id := a.header.Get("X-Request-Id"); id == "" || p.RequestID != id {
		a.Errorf("request id %q in the document, %q in the header", p.RequestID, id)
	}
	return p
}

// visitor is a visitor with a secret.
type visitor struct{ ticket, secret string }

func newVisitor(slug string) visitor {
	var secret [fairness.SecretSize]byte
	_, _ = rand.Read(secret[:])
	return visitor{fairness.NewTicket("example.com/r/"+slug, secret).String(), base64.RawURLEncoding.EncodeToString(secret[:])}
}

func (v visitor) joinBody() string  { return `{"ticket":"` + v.ticket + `"}` }
func (v visitor) claimBody() string { return `{"secret":"` + v.secret + `"}` }

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}

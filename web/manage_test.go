package web

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/manage"
)

// organizerJSON is a room in the management API; decode refuses other members.
type organizerJSON struct {
	Slug    string     `json:"slug"`
	Title   string     `json:"title"`
	Opens   time.Time  `json:"opens"`
	Starts  time.Time  `json:"starts"`
	Closes  *time.Time `json:"closes"`
	Windows []struct {
		From   time.Time `json:"from"`
		Length string    `json:"length"`
	} `json:"windows"`
	Lanes []struct {
		Name   string `json:"name"`
		Weight uint32 `json:"weight"`
	} `json:"lanes"`
	Party   uint32 `json:"party"`
	Seats   uint32 `json:"seats"`
	Outflow struct {
		PerMinute uint32 `json:"per_minute"`
		MaxActive uint32 `json:"max_active"`
	} `json:"outflow"`
	MaxWaiting   uint32            `json:"max_waiting"`
	Notice       string            `json:"notice"`
	Claim        string            `json:"claim"`
	Grace        string            `json:"grace"`
	Session      string            `json:"session"`
	Beacon       string            `json:"beacon"`
	Origin       string            `json:"origin"`
	URL          string            `json:"url"`
	VKey         string            `json:"vkey"`
	Phase        string            `json:"phase"`
	Created      time.Time         `json:"created"`
	Size         uint64            `json:"size"`
	Counts       map[string]uint64 `json:"counts"`
	Message      *room.Message     `json:"message"`
	ClaimsFrozen bool              `json:"claims_frozen"`
	Host         *string           `json:"host"`
	Awaited      []awaitedJSON     `json:"awaited"`
}

type awaitedJSON struct {
	Window   uint64    `json:"window"`
	Round    uint64    `json:"round"`
	Due      time.Time `json:"due"`
	HasRound bool      `json:"has_round"`
	Cosigned []string  `json:"cosigned"`
}

// roomListJSON is a page of rooms as the management API lists them.
type roomListJSON struct {
	Rooms []struct {
		Slug     string            `json:"slug"`
		Title    string            `json:"title"`
		URL      string            `json:"url"`
		Host     *string           `json:"host"`
		Phase    string            `json:"phase"`
		Created  time.Time         `json:"created"`
		Ended    *time.Time        `json:"ended"`
		Archived *time.Time        `json:"archived"`
		Counts   map[string]uint64 `json:"counts"`
	} `json:"rooms"`
	Next *string `json:"next"`
}

// TestManage performs all operations of an organizer on a room.
func TestManage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	began := time.Now()
	a := s.post("/v1/rooms", `{"slug":"sale","title":"Summer sale","closes":"2199-01-01T00:00:00Z","windows":[{"length":"24h"}],
		"outflow":{"per_minute":120,"max_active":50},"claim":"2m","session":"10m","beacon":"none"}`).want(http.StatusCreated)
	if got := a.header.Get("Location"); got != publicURL+"/v1/rooms/sale" {
		t.Errorf("Location %q", got)
	}
	made := decode[organizerJSON](a)
	if made.Title != "Summer sale" || made.Outflow.PerMinute != 120 || made.Outflow.MaxActive != 50 || made.Claim != "2m0s" || made.Session != "10m0s" || made.Beacon != "none" || made.MaxWaiting != 1_000_000 ||
		made.Closes == nil || made.Closes.Year() != 2199 || len(made.Windows) != 1 || made.Windows[0].Length != "24h0m0s" {
		t.Errorf("made %s", a.body)
	}
	if made.Origin != "example.com/r/sale" || made.URL != publicURL+"/r/sale" || !strings.HasPrefix(made.VKey, "example.com/r/sale+") ||
		made.Phase != "serving" || made.Size != 1 || made.Created.Sub(began).Abs() > 10*time.Second || len(made.Counts) != 17 {
		t.Errorf("made %s", a.body)
	}
	s.post("/v1/rooms", `{"slug":"sale"}`).problem(http.StatusConflict, "room-exists")
	s.post("/r/sale/join", "").want(http.StatusCreated)
	if got := decode[organizerJSON](s.get("/v1/rooms/sale").want(http.StatusOK)); got.Counts["arrivals"] != 1 || got.Size != 2 || got.VKey != made.VKey || !got.Created.Equal(made.Created) {
		t.Errorf("shown %+v", got)
	}
	got := decode[organizerJSON](s.do("PATCH", "/v1/rooms/sale", `{"title":"Winter sale","message":{"texts":{"en":"Soon"}},"outflow":{"per_minute":30},"closes":"2198-01-01T00:00:00Z"}`).want(http.StatusOK))
	if got.Title != "Winter sale" || got.Message == nil || got.Message.Texts["en"] != "Soon" || got.Outflow.PerMinute != 30 || got.Outflow.MaxActive != 50 || got.Closes.Year() != 2198 || got.Counts["amends"] != 3 {
		t.Errorf("amended %+v", got)
	}
	for _, step := range []struct{ action, phase string }{
		{"pause", "paused"}, {"pause", "paused"}, {"resume", "serving"}, {"resume", "serving"}, {"freeze-claims", "claims-frozen"}, {"pause", "paused"}, {"freeze-claims", "claims-frozen"}, {"resume", "serving"}, {"end", "ended"}, {"end", "ended"},
	} {
		if got := decode[organizerJSON](s.post("/v1/rooms/sale/"+step.action, "").want(http.StatusOK)); got.Phase != step.phase {
			t.Errorf("%s: phase %s, want %s", step.action, got.Phase, step.phase)
		}
	}
	s.post("/v1/rooms/sale/pause", "").problem(http.StatusConflict, "against-the-rules")
	s.get("/v1/rooms/other").problem(http.StatusNotFound, "not-found")
	s.post("/v1/rooms/other/end", "").problem(http.StatusNotFound, "not-found")
	s.do("PATCH", "/v1/rooms/other", `{"title":"x"}`).problem(http.StatusNotFound, "not-found")
}

// TestList lists running and ended rooms.
func TestList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if a := s.get("/v1/rooms").want(http.StatusOK); a.body != "{\"rooms\":[],\"next\":null}\n" {
		t.Errorf("no rooms: %s", a.body)
	}
	s.create(`{"slug":"one","title":"The one"}`)
	s.create(`{"slug":"two"}`)
	s.post("/v1/rooms/one/end", "").want(http.StatusOK)
	eventually(t, "the end is noted", func() bool {
		list := decode[roomListJSON](s.get("/v1/rooms").want(http.StatusOK)).Rooms
		if len(list) != 2 || list[0].Slug != "two" || list[0].Phase != "serving" || list[0].Counts == nil || list[0].URL != publicURL+"/r/two" {
			t.Fatalf("list %+v", list)
		}
		if list[1].Slug != "one" || list[1].Title != "The one" || list[1].Phase != "ended" || list[1].Created.IsZero() {
			t.Fatalf("list %+v", list)
		}
		return list[1].Counts == nil
	})
}

// TestInvalidRooms sends configurations with invalid fields.
func TestInvalidRooms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"fine"}`)
	for _, c := range []struct{ method, path, body, fields string }{
		{"POST", "/v1/rooms", `{"slug":7,"title":[],"opens":"noon","windows":[{"from":1,"length":"x","width":2}],"outflow":{"per_minute":-1},"claim":5,"color":"red"}`,
			"color slug title opens claim windows[0].width windows[0].from windows[0].length outflow.per_minute"},
		{"POST", "/v1/rooms", `{"slug":"-","claim":"1ms","session":"1ms","windows":[{"length":"1ms"}],"beacon":"moon"}`,
			"slug beacon windows[0].length claim session"},
		{"POST", "/v1/rooms", `{"slug":`, ""},
		{"POST", "/v1/rooms", ``, ""},
		{"POST", "/v1/rooms", `{"slug":"twice","title":"a","title":"a"}`, "title"},
		{"POST", "/v1/rooms", `{"host":"a.example.com","slug":"twice","host":"b.example.com"}`, "host"},
		{"POST", "/v1/rooms", `{"slug":"twice","windows":[{"length":"1m"},{"length":"1m","\u006cength":"2m"}]}`, "windows[1].length"},
		{"POST", "/v1/rooms", `{"slug":"deep","brand":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}`, "brand" + strings.Repeat(".a", 63)},
		{"PATCH", "/v1/rooms/fine", `{"message":null,"message":null}`, "message"},
		{"PATCH", "/v1/rooms/fine", `{"message":{"texts":{"en":"a","de":""},"default":"fr","until":"soon"}}`, "message.until message.texts.de message.default"},
		{"PATCH", "/v1/rooms/fine", `{"message":{"texts":{"en":"a"},"until":"2020-01-01T00:00:00Z"}}`, "message.until"},
		{"PATCH", "/v1/rooms/fine", `{"slug":"other"}`, "slug"},
		{"PATCH", "/v1/rooms/fine", `{}`, ""},
		{"PATCH", "/v1/rooms/fine", `{"outflow":{"per_minute":0},"windows":[{"length":"1m"}]}`, "outflow.per_minute windows[0].from"},
	} {
		p := s.do(c.method, c.path, c.body).problem(http.StatusBadRequest, "invalid")
		fields := map[string]bool{}
		for _, e := range p.Errors {
			fields[e.Field] = e.Detail != ""
		}
		want := strings.Fields(c.fields)
		if c.fields == "" {
			want = []string{""}
		}
		for _, field := range want {
			if !fields[field] {
				t.Errorf("%s: no problem of %q in %+v", c.body, field, p.Errors)
			}
		}
		if len(fields) != len(want) {
			t.Errorf("%s: problems %+v, want of %s", c.body, p.Errors, c.fields)
		}
	}
	large := fmt.Sprintf(`{"slug":"large","title":%q}`, strings.Repeat("x", 512<<10))
	s.post("/v1/rooms", large).problem(http.StatusRequestEntityTooLarge, "too-large")
	s.post("/v1/rooms", `{"slug":"form"}`, "Content-Type: application/x-www-form-urlencoded").problem(http.StatusUnsupportedMediaType, "media-type")
	s.do("PATCH", "/v1/rooms/fine", `{"title":"x"}`, "Content-Type: ").problem(http.StatusUnsupportedMediaType, "media-type")
}

// TestToken tries every route of the management API, and nonexistent ones, without a token and with
// invalid ones.
func TestToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"guarded"}`)
	type request struct{ method, path string }
	requests := []request{
		{"GET", "/v1/"}, {"GET", "/v1/nothing"}, {"DELETE", "/v1/rooms"}, {"OPTIONS", "/v1/rooms"}, {"POST", "/v1/rooms/guarded/explode"}, {"GET", "/v1%2Frooms"}, {"POST", "/v1/openapi.json"},
	}
	for _, route := range s.api.Needs() {
		requests = append(requests, request{route.Method, strings.ReplaceAll(route.Path, "{slug}", "guarded")})
	}
	for _, route := range s.echo.Routes() { // each is in the table, or public
		public := strings.HasPrefix(route.Path, "/r/") || strings.HasPrefix(route.Path, "/rooms/") || strings.HasPrefix(route.Path, "/assets/") || slices.Contains([]string{"/", "/robots.txt", "/favicon.ico", "/apple-touch-icon.png", "/preview.png", "/.well-known/security.txt", "/livez", "/readyz", "/v1/openapi.json", "/inqueue", "/inqueue.aspx", "/error/*", "/cancel/*"}, route.Path)
		path := regexp.MustCompile(`:(\w+)`).ReplaceAllString(route.Path, "{$1}")
		listed := slices.ContainsFunc(s.api.Needs(), func(n manage.Needs) bool { return n.Method == route.Method && n.Path == path })
		if !public && !listed {
			t.Errorf("%s %s is neither public nor in the table of routes", route.Method, route.Path)
		}
	}
	for _, r := range requests {
		for _, authorization := range []string{
			"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Bearer " + token[1:], "Bearer  " + token, token, "Basic " + token, "Basic OnRoZS1tYW5hZ2VtZW50LXRva2Vu",
		} {
			a := s.do(r.method, r.path, "", "Authorization: "+authorization)
			a.problem(http.StatusUnauthorized, "unauthorized")
			if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="proofline"` {
				t.Errorf("%s %s: WWW-Authenticate %q", r.method, r.path, got)
			}
		}
	}
	s.get("/v1/rooms", "Authorization: bearer "+token).want(http.StatusOK)
	if got := decode[organizerJSON](s.get("/v1/rooms/guarded")); got.Phase != "serving" {
		t.Errorf("a request without token did something: %+v", got)
	}
}

// TestNoToken checks that a server without a token has no management API, rather than an open one.
func TestNoToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *Options) { o.AdminToken = "" })
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer " + token} {
		s.get("/v1/rooms", "Authorization: "+authorization).problem(http.StatusUnauthorized, "unauthorized")
	}
}

// TestRevoke revokes tickets and checks the transcript and the visitor's page.
func TestRevoke(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	v := newVisitor("sale")
	path := "/v1/rooms/sale/tickets/" + v.ticket + "/revoke"
	s.post(path, "").problem(http.StatusNotFound, "unknown-ticket")
	s.post("/v1/rooms/sale/tickets/x/revoke", "").problem(http.StatusBadRequest, "invalid")
	for _, body := range []string{`{"reason":"left"}`, `{"reason":"revoked-"}`, `{"why":"bot"}`} {
		s.post(path, body).problem(http.StatusBadRequest, "invalid")
	}
	s.post("/r/sale/join", v.joinBody()).want(http.StatusCreated)
	for _, body := range []string{`{"reason":"revoked-bot"}`, ""} { // repeating succeeds without a second entry
		if got := decode[wire.Ticket](s.post(path, body).want(http.StatusOK)); got.Status != "skipped" || got.Reason != "revoked-bot" {
			t.Errorf("revoked: %+v", got)
		}
	}
	if got := decode[organizerJSON](s.get("/v1/rooms/sale")); got.Counts["revoked"] != 1 || got.Size != 3 {
		t.Errorf("after a revocation: %+v", got)
	}
	s.post("/r/sale/tickets/"+v.ticket+"/claim", v.claimBody()).problem(http.StatusGone, "expired")
	if a := s.get("/r/sale?fragment=1&ticket="+v.ticket, "Accept: text/html").want(http.StatusOK); !strings.Contains(a.body, `data-state="revoked"`) {
		t.Errorf("page of a revoked place: %s", a.body)
	}
}

// TestRestore gives a revoked place back, once.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	v := newVisitor("sale")
	revoke, restore := "/v1/rooms/sale/tickets/"+v.ticket+"/revoke", "/v1/rooms/sale/tickets/"+v.ticket+"/restore"
	s.post(restore, "").problem(http.StatusNotFound, "unknown-ticket")
	s.post("/v1/rooms/sale/tickets/x/restore", "").problem(http.StatusBadRequest, "invalid")
	s.post("/v1/rooms/none/tickets/"+v.ticket+"/restore", "").problem(http.StatusNotFound, "not-found")
	s.post("/r/sale/join", v.joinBody()).want(http.StatusCreated)
	s.post(restore, "").problem(http.StatusConflict, "against-the-rules")
	s.post(revoke, "").want(http.StatusOK)
	if got := decode[wire.Ticket](s.post(restore, "").want(http.StatusOK)); got.Status != "waiting" || got.Reason != "" {
		t.Errorf("restored: %+v", got)
	}
	s.post(restore, "").problem(http.StatusConflict, "against-the-rules")
	if got := decode[organizerJSON](s.get("/v1/rooms/sale")); got.Counts["revoked"] != 0 || got.Size != 4 {
		t.Errorf("after the restore: %+v", got)
	}
	if a := s.get("/r/sale?fragment=1&ticket="+v.ticket, "Accept: text/html").want(http.StatusOK); strings.Contains(a.body, `data-state="revoked"`) {
		t.Errorf("page of a restored place: %s", a.body)
	}
	s.post(revoke, "").want(http.StatusOK)
	s.post(restore, "").problem(http.StatusConflict, "against-the-rules") // once
}

// TestTell writes statements, and refuses those that make no sense.
func TestTell(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	for _, body := range []string{
		`{"subject":"stock","category":"Stalls","left":1}`, `{"subject":"stock","category":"stalls","left":9007199254740992}`,
		`{"subject":"stock","category":"stalls","left":-1}`, `{"subject":"auto","category":"stalls"}`, `{"category":"stalls"}`,
		`{"subject":"price","category":"stalls","min":2,"max":1,"currency":"EUR"}`, `{"subject":"price","category":"stalls","min":1,"max":1,"currency":"eur"}`,
		`{"subject":"price","category":"stalls","min":1,"max":9007199254740992,"currency":"EUR"}`,
	} {
		s.post("/v1/rooms/sale/tell", body).problem(http.StatusBadRequest, "invalid")
	}
	s.post("/v1/rooms/none/tell", `{"subject":"stock","category":"stalls"}`).problem(http.StatusNotFound, "not-found")
	s.post("/v1/rooms/sale/tell", `{"subject":"stock","category":"stalls"}`).want(http.StatusOK)
	s.post("/v1/rooms/sale/tell", `{"subject":"price","category":"stalls","min":4500,"max":9000,"currency":"EUR"}`).want(http.StatusOK)
	if got := decode[organizerJSON](s.get("/v1/rooms/sale")); got.Size != 3 {
		t.Errorf("after two statements: %+v", got)
	}
	s.post("/v1/rooms/sale/end", "").want(http.StatusOK)
	s.post("/v1/rooms/sale/tell", `{"subject":"stock","category":"stalls"}`).problem(http.StatusConflict, "against-the-rules")
}

// TestFull checks the limit of visitors in line.
func TestFull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"24h"}],"max_waiting":2}`)
	first, again := newVisitor("sale"), newVisitor("sale")
	s.post("/r/sale/join", first.joinBody()).want(http.StatusCreated)
	s.post("/r/sale/join", "").want(http.StatusCreated)
	full := func(want bool) func() bool {
		return func() bool { return decode[wire.State](s.get("/r/sale/state")).Full == want }
	}
	eventually(t, "the line is full", full(true))
	s.post("/r/sale/join", again.joinBody()).problem(http.StatusConflict, "full")
	s.post("/r/sale/join", first.joinBody()).want(http.StatusOK) // has a place
	if a := s.get("/r/sale", "Accept: text/html").want(http.StatusOK); !strings.Contains(a.body, `data-state="full"`) {
		t.Errorf("page of a full line: %s", a.body)
	}
	s.post("/v1/rooms/sale/tickets/"+first.ticket+"/revoke", "").want(http.StatusOK)
	eventually(t, "there is room again", full(false))
	s.post("/r/sale/join", again.joinBody()).want(http.StatusCreated)
	s.do("PATCH", "/v1/rooms/sale", `{"max_waiting":0}`).want(http.StatusOK)
	s.post("/r/sale/join", "").want(http.StatusCreated)
	s.do("PATCH", "/v1/rooms/sale", `{"max_waiting":-1}`).problem(http.StatusBadRequest, "invalid")
}

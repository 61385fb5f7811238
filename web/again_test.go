package web

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/wire"
)

const keyed = "Idempotency-Key: "

// TestAgain repeats requests with idempotency keys.
func TestAgain(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	first := s.post("/v1/rooms", `{"slug":"sale","beacon":"none"}`, keyed+`"one"`).want(http.StatusCreated)
	again := s.post("/v1/rooms", `{"slug":"sale","beacon":"none"}`, keyed+"one").want(http.StatusCreated) // quotes are not part of the key
	if again.body != first.body || again.header.Get("Location") != first.header.Get("Location") || again.header.Get("ETag") != first.header.Get("ETag") ||
		again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("first %s %v\nagain %s %v", first.body, first.header, again.body, again.header)
	}
	s.post("/v1/rooms", `{"slug":"other"}`, keyed+"one").problem(http.StatusUnprocessableEntity, "key-reused")
	s.post("/v1/rooms/sale/pause", "", keyed+"one").problem(http.StatusUnprocessableEntity, "key-reused")
	s.post("/v1/rooms", `{"slug":"sale","beacon":"none"}`, keyed+"two").problem(http.StatusConflict, "room-exists")
	for _, key := range []string{"with space", `"open`, strings.Repeat("x", 201), "ünïcode"} {
		s.post("/v1/rooms/sale/pause", "", keyed+key).problem(http.StatusBadRequest, "invalid")
	}

	// A refused request releases its key.
	s.post("/v1/rooms/late/pause", "", keyed+"three").problem(http.StatusNotFound, "not-found")
	s.create(`{"slug":"late"}`)
	s.post("/v1/rooms/late/pause", "", keyed+"three").want(http.StatusOK)

	// Keys belong to an organization.
	s.post("/v1/rooms", `{"slug":"theirs"}`, keyed+"one", "Proofline-Organization: other").want(http.StatusCreated)

	// Routes that can be repeated safely ignore keys.
	s.get("/v1/rooms/sale", keyed+"one").want(http.StatusOK)
	s.do("PATCH", "/v1/rooms/sale", `{"title":"x"}`, keyed+"one").want(http.StatusOK)
}

// TestPullAgain checks that repeating a pull whose response was lost calls no further visitors.
func TestPullAgain(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"shop","beacon":"none","windows":[{"length":"200ms"}],"outflow":{"per_minute":600000}}`)
	s.do("PUT", "/v1/rooms/shop/calls", `{"by":"pull"}`).want(http.StatusOK)
	for range 3 {
		s.post("/r/shop/join", "").want(http.StatusCreated)
	}
	eventually(t, "the places are drawn", func() bool {
		return decode[organizerJSON](s.get("/v1/rooms/shop")).Counts["drawn"] == 3
	})
	first := decode[pulledJSON](s.post("/v1/rooms/shop/pull?n=1", "", keyed+"p").want(http.StatusOK))
	again := decode[pulledJSON](s.post("/v1/rooms/shop/pull?n=1", "", keyed+"p").want(http.StatusOK))
	if first != again || first.Called != 1 || decode[organizerJSON](s.get("/v1/rooms/shop")).Counts["called"] != 1 {
		t.Errorf("first %+v, again %+v", first, again)
	}
	s.post("/v1/rooms/shop/pull?n=2", "", keyed+"p").problem(http.StatusUnprocessableEntity, "key-reused")
}

// TestAgainAtOnce checks that one of many concurrent copies of a request is performed.
func TestAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale"}`)
	var all sync.WaitGroup
	statuses := make(chan int, 20)
	for range cap(statuses) {
		all.Go(func() { statuses <- s.post("/v1/rooms/sale/duplicate", "", keyed+"copy").status })
	}
	all.Wait()
	close(statuses)
	for status := range statuses {
		if status != http.StatusCreated && status != http.StatusConflict {
			t.Errorf("status %d", status)
		}
	}
	if list := decode[struct{ Drafts []struct{ ID string } }](loose(s.get("/v1/drafts"))).Drafts; len(list) != 1 {
		t.Errorf("%d copies", len(list))
	}
}

// TestSecretsAreNotKept checks that a response with a token is sent once and is not stored in the database.
func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const body = `{"name":"one","scopes":["read"]}`
	made := decode[struct{ Token, ID string }](loose(s.post("/v1/tokens", body, keyed+"t").want(http.StatusCreated)))
	s.post("/v1/tokens", body, keyed+"t").problem(http.StatusConflict, "key-done")
	s.get("/v1/organization", authorized(made.Token)).want(http.StatusOK)
	if list := decode[struct{ Tokens []struct{ ID string } }](loose(s.get("/v1/tokens"))).Tokens; len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("tokens %+v", list)
	}
	answer, err := s.control.Store.Keys.ClaimKey(t.Context(), account.MainOrg, "t", nil)
	if answer != nil || err == nil {
		t.Errorf("kept: %+v, %v", answer, err)
	}
	text, _ := s.token(s.main, account.Operate, time.Hour)
	hooked := s.post("/v1/webhooks", `{"url":"https://shop.example.org/hook"}`, keyed+"w", authorized(text)).want(http.StatusCreated)
	if !strings.Contains(hooked.body, `"secret":"whsec_`) {
		t.Errorf("made %s", hooked.body)
	}
	s.post("/v1/webhooks", `{"url":"https://shop.example.org/hook"}`, keyed+"w").problem(http.StatusConflict, "key-done")
}

// loose marks a response that may have members which the test does not decode.
func loose(a answer) answer { a.isLoose = true; return a }

// TestLostUpdates checks that a change of an outdated version is refused.
func TestLostUpdates(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","beacon":"none"}`)
	read := s.get("/v1/rooms/sale").header.Get("ETag")
	if again := s.get("/v1/rooms/sale").header.Get("ETag"); again != read || !strings.HasPrefix(read, `"`) {
		t.Fatalf("ETags %s and %s", read, again)
	}
	s.post("/r/sale/join", "").want(http.StatusCreated)
	if got := s.get("/v1/rooms/sale").header.Get("ETag"); got != read {
		t.Error("a join changed the ETag")
	}
	changed := s.do("PATCH", "/v1/rooms/sale", `{"outflow":{"per_minute":90}}`, "If-Match: "+read).want(http.StatusOK).header.Get("ETag")
	if changed == read {
		t.Error("a change did not change the ETag")
	}
	for _, condition := range []string{read, "W/" + changed, `"other"`, ""} {
		a := s.do("PATCH", "/v1/rooms/sale", `{"outflow":{"per_minute":7}}`, "If-Match: "+condition)
		if condition == "" { // no header
			a.want(http.StatusOK)
			continue
		}
		a.problem(http.StatusPreconditionFailed, "changed")
	}
	latest := s.get("/v1/rooms/sale").header.Get("ETag")
	message := s.do("PATCH", "/v1/rooms/sale", `{"message":{"texts":{"en":"Soon"}}}`, `If-Match: "other", `+latest).want(http.StatusOK).header.Get("ETag")
	s.do("PATCH", "/v1/rooms/sale", `{"message":{"texts":{"en":"Later"}}}`, "If-Match: "+latest).problem(http.StatusPreconditionFailed, "changed")
	s.do("PATCH", "/v1/rooms/sale", `{"message":{"texts":{"en":"Later"}}}`, "If-Match: *").want(http.StatusOK)
	if message == latest {
		t.Error("a message did not change the ETag")
	}
}

// TestLostUpdatesAtOnce checks that one of several concurrent changes to the same version succeeds.
func TestLostUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","beacon":"none"}`)
	read := s.get("/v1/rooms/sale").header.Get("ETag")
	var all sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 8 {
		all.Go(func() {
			a := s.do("PATCH", "/v1/rooms/sale", `{"max_waiting":`+string(rune('1'+i))+`}`, "If-Match: "+read)
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusOK {
				made++
			} else if a.status != http.StatusPreconditionFailed {
				t.Errorf("status %d: %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d changes on top of the same state", made)
	}
}

// TestDrafts takes a room from a draft to its publication.
func TestDrafts(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	type draft struct {
		ID, Slug string
		Version  int
		Problems []wire.FieldError
	}
	a := s.post("/v1/drafts", `{"config":{"slug":"autumn","claim":"1ms"}}`).want(http.StatusCreated)
	made := decode[draft](loose(a))
	path := "/v1/drafts/" + made.ID
	if a.header.Get("ETag") != `"1"` || a.header.Get("Location") != publicURL+path || made.Slug != "autumn" || len(made.Problems) != 1 || made.Problems[0].Field != "claim" {
		t.Errorf("made %+v, %v", made, a.header)
	}
	s.post(path+"/publish", "").problem(http.StatusBadRequest, "invalid")
	s.do("PUT", path, `{"config":{"slug":"autumn"}}`, `If-Match: "1"`).want(http.StatusOK)
	s.do("PUT", path, `{"config":{"slug":"other"}}`, `If-Match: "1"`).problem(http.StatusPreconditionFailed, "changed")
	s.post(path+"/publish", "", `If-Match: "1"`).problem(http.StatusPreconditionFailed, "changed")
	if got := s.post(path+"/publish", "", `If-Match: "2"`, keyed+"k").want(http.StatusCreated).header.Get("Location"); got != publicURL+"/v1/rooms/autumn" {
		t.Errorf("Location %q", got)
	}
	s.get(path).problem(http.StatusNotFound, "not-found")
	s.post(path+"/publish", "", `If-Match: "2"`, keyed+"k").want(http.StatusCreated) // the stored response
	for _, body := range []string{``, `[]`, `{"config":7}`, `{"config":{},"hosts":""}`, `{"config":{}} {}`} {
		s.post("/v1/drafts", body, "Content-Type: application/json").problem(http.StatusBadRequest, "invalid")
	}
}

// TestPages reads lists page by page.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	for _, slug := range []string{"a1", "a2", "b1", "a3"} {
		s.create(`{"slug":"` + slug + `"}`)
	}
	var seen []string
	for path := "/v1/rooms?limit=2&search=a"; path != ""; {
		a := s.get(path).want(http.StatusOK)
		page := decode[roomListJSON](a)
		for _, r := range page.Rooms {
			seen = append(seen, r.Slug)
		}
		link := a.header.Get("Link")
		if (page.Next == nil) != (link == "") {
			t.Fatalf("next %v, Link %q", page.Next, link)
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	if got := strings.Join(seen, " "); got != "a3 a2 a1" {
		t.Errorf("seen %s", got)
	}
	entries := 0
	for path := "/v1/activity?limit=3"; path != ""; {
		a := s.get(path).want(http.StatusOK)
		entries += len(decode[struct{ Entries []struct{ Verb string } }](loose(a)).Entries)
		path, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
	}
	if entries != 4 {
		t.Errorf("%d entries", entries)
	}
	for _, path := range []string{"/v1/rooms?limit=0", "/v1/rooms?limit=201", "/v1/rooms?limit=x", "/v1/rooms?cursor=x", "/v1/rooms?archived=maybe", "/v1/activity?cursor=x", "/v1/activity?limit=-1", "/v1/deliveries?cursor=x", "/v1/deliveries?webhook=x"} {
		s.get(path).problem(http.StatusBadRequest, "invalid")
	}
}

// TestSimulate simulates sales, within limits.
func TestSimulate(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	a := s.post("/v1/simulations", `{"visitors":200,"tickets":20,"bots":{"count":0}}`).want(http.StatusOK)
	type result struct {
		Result     struct{ Visitors, Sold int }
		Findings   []string
		Comparison []struct{ Label string }
	}
	got := decode[result](loose(a))
	if got.Result.Visitors != 200 || got.Result.Sold != 20 || len(got.Findings) == 0 || len(got.Comparison) != 0 {
		t.Errorf("%+v", got)
	}
	if again := s.post("/v1/simulations", `{"visitors":200,"tickets":20,"bots":{"count":0}}`).body; again != a.body {
		t.Error("the same plan has another result")
	}
	got = decode[result](loose(s.post("/v1/simulations?compare=true", `{"visitors":200,"tickets":20,"bots":{"count":0}}`).want(http.StatusOK)))
	if len(got.Comparison) < 3 {
		t.Errorf("compared %+v", got.Comparison)
	}
	for _, c := range []struct{ query, body, field string }{
		{"", `{"visitors":200001}`, "visitors"}, {"?compare=true", `{"visitors":100000}`, "visitors"}, {"", `{"visitors":0}`, "visitors"},
		{"", `{"people":7}`, "people"}, {"?compare=x", `{"visitors":20}`, "compare"},
	} {
		if p := s.post("/v1/simulations"+c.query, c.body).problem(http.StatusBadRequest, "invalid"); p.Errors[0].Field != c.field {
			t.Errorf("%s: %+v", c.body, p.Errors)
		}
	}
}

// TestFigures checks a room's current metrics, its history and its summary.
func TestFigures(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","beacon":"none"}`)
	s.post("/r/sale/join", "").want(http.StatusCreated)
	if got := decode[struct{ Arrivals int }](loose(s.get("/v1/rooms/sale/figures").want(http.StatusOK))); got.Arrivals != 1 {
		t.Errorf("figures %+v", got)
	}
	s.get("/v1/rooms/sale/recent").want(http.StatusOK)
	s.get("/v1/rooms/sale/history").want(http.StatusOK)
	if a := s.get("/v1/rooms/sale/history?format=csv&step=5m").want(http.StatusOK); !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
		t.Errorf("%v: %s", a.header, a.body)
	}
	s.get("/v1/rooms/sale/summary").problem(http.StatusConflict, "not-ended")
	s.get("/v1/rooms/sale/export").want(http.StatusOK)
	for _, query := range []string{"from=x", "step=x", "step=1s", "format=xml", "from=2030-01-01T00:00:00Z&to=2029-01-01T00:00:00Z"} {
		s.get("/v1/rooms/sale/history?"+query).problem(http.StatusBadRequest, "invalid")
	}
	s.post("/v1/rooms/sale/end", "").want(http.StatusOK)
	eventually(t, "the summary is made", func() bool { return s.get("/v1/rooms/sale/summary").status == http.StatusOK })
	if a := s.get("/v1/rooms/sale/summary?format=csv").want(http.StatusOK); !strings.Contains(a.body, "arrivals") {
		t.Errorf("%s", a.body)
	}
	s.post("/v1/rooms/sale/archive", "").want(http.StatusOK)
	if list := decode[roomListJSON](s.get("/v1/rooms?archived=true")).Rooms; len(list) != 1 || list[0].Archived == nil {
		t.Errorf("archived %+v", list)
	}
}

// TestBrandCheck checks the contrast of colours, and that nothing is stored.
func TestBrandCheck(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	type check struct {
		Problems []wire.FieldError
		CSS      []struct{}
		Contrast []struct{ Scheme string }
	}
	got := decode[check](loose(s.post("/v1/brand-checks", `{"brand":{"color":"#ffff00"}}`).want(http.StatusOK)))
	if len(got.Problems) != 0 || len(got.Contrast) == 0 {
		t.Errorf("%+v", got)
	}
	got = decode[check](loose(s.post("/v1/brand-checks", `{"brand":{"color":"yellow"}}`).want(http.StatusOK)))
	if len(got.Problems) != 1 || got.Problems[0].Field != "brand.color" {
		t.Errorf("%+v", got)
	}
	for _, body := range []string{`{}`, `{"title":"x"}`, `{"brand":{},"title":"x"}`, `{`} {
		s.post("/v1/brand-checks", body).problem(http.StatusBadRequest, "invalid")
	}
}

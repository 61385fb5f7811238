package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/console/account"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/wire"
)

// siteJSON is a site as the management API shows it; decode refuses other members.
type siteJSON struct {
	Name     string            `json:"name"`
	URL      string            `json:"url"`
	Version  uint64            `json:"version"`
	Changed  time.Time         `json:"changed"`
	By       string            `json:"changed_by"`
	Hosts    []string          `json:"hosts"`
	Rooms    []string          `json:"rooms"`
	Warnings []wire.FieldError `json:"warnings"`
	Rules    json.RawMessage   `json:"rules"`
}

const (
	shopRules = "{\n  \"version\": 1, \"hosts\": [\"shop.example.com\"],\n\n  \"rooms\": {\"sale\": {\"url\": \"https://example.com/r/sale\"}}, \"rules\": []}"
	noRules   = `{"version": 1}`
)

// TestSites performs all operations of programs on a site.
func TestSites(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","targets":["https://www.example.com"]}`)
	if a := s.get("/v1/sites").want(http.StatusOK); a.body != "{\"sites\":[]}\n" {
		t.Errorf("no sites: %s", a.body)
	}
	a := s.post("/v1/sites", `{"name": "shop", "rules": `+shopRules+`}`).want(http.StatusCreated)
	made := decode[siteJSON](a)
	if made.Name != "shop" || made.URL != publicURL+"/v1/sites/shop/rules" || made.Version != 1 || made.By != account.ServerName || a.header.Get("ETag") != `"1"` ||
		a.header.Get("Location") != publicURL+"/v1/sites/shop" || time.Since(made.Changed).Abs() > time.Minute {
		t.Errorf("made %s", a.body)
	}
	if string(made.Rules) != shopRules || len(made.Hosts) != 1 || len(made.Rooms) != 1 || made.Rooms[0] != "https://example.com/r/sale" {
		t.Errorf("made %s", a.body)
	}
	if len(made.Warnings) != 1 || made.Warnings[0].Field != "rooms.sale" || !strings.HasPrefix(made.Warnings[0].Detail, "does not send visitors back to shop.example.com") {
		t.Errorf("warnings %+v", made.Warnings)
	}
	s.do("PATCH", "/v1/rooms/sale", `{"targets":["https://shop.example.com"]}`).want(http.StatusOK)
	if got := decode[siteJSON](s.get("/v1/sites/shop").want(http.StatusOK)); string(got.Rules) != shopRules || len(got.Warnings) != 0 {
		t.Errorf("shown %+v", got)
	}
	s.post("/v1/sites", `{"name": "shop", "rules": `+noRules+`}`).problem(http.StatusConflict, "exists")
	p := s.post("/v1/sites", `{"name": "other", "rules": {"version": 1, "rooms": {"sale": {"url": "https://example.com/r/none"}}}}`).problem(http.StatusBadRequest, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "rooms.sale.url" {
		t.Errorf("problem %+v", p)
	}
	s.post("/v1/sites", `{"name": "other"}`).problem(http.StatusBadRequest, "invalid")

	// A change with the version that was read, and one with a version that another client has changed.
	a = s.do("PUT", "/v1/sites/shop", `{"rules": `+noRules+`}`, `If-Match: "1"`).want(http.StatusOK)
	if got := decode[siteJSON](a); got.Version != 2 || string(got.Rules) != noRules || a.header.Get("ETag") != `"2"` {
		t.Errorf("changed %s", a.body)
	}
	s.do("PUT", "/v1/sites/shop", `{"rules": `+shopRules+`}`, `If-Match: "1"`).problem(http.StatusPreconditionFailed, "changed")
	s.post("/v1/sites/shop/history/1/restore", "", `If-Match: "1"`).problem(http.StatusPreconditionFailed, "changed")
	if got := decode[siteJSON](s.post("/v1/sites/shop/history/1/restore", "").want(http.StatusOK)); got.Version != 3 || string(got.Rules) != shopRules {
		t.Errorf("restored %+v", got)
	}
	for _, version := range []string{"0", "9", "-1", "x", "9223372036854775808"} {
		s.get("/v1/sites/shop/history/"+version).problem(http.StatusNotFound, "not-found")
		s.post("/v1/sites/shop/history/"+version+"/restore", "").problem(http.StatusNotFound, "not-found")
	}
	if a := s.get("/v1/sites/shop/history/1").want(http.StatusOK); !strings.HasSuffix(a.body, `"rules":`+shopRules+"}\n") {
		t.Errorf("version %s", a.body)
	}
	if a := s.get("/v1/sites/shop/history").want(http.StatusOK); strings.Count(a.body, `"version"`) != 3 || !strings.Contains(a.body, `{"versions":[{"version":3,`) {
		t.Errorf("history %s", a.body)
	}

	a = s.post("/v1/sites/shop/check", `{"urls": ["https://shop.example.com/"], "rules": `+noRules+`}`).want(http.StatusOK)
	if want := `{"findings":[{"url":"https://shop.example.com/","outcome":"bypass","room":"","rule":"","warnings":["no rule matches it: all visitors get in without waiting"]}]}` + "\n"; a.body != want {
		t.Errorf("checked %s", a.body)
	}
	a = s.post("/v1/sites/shop/check", `{"urls": ["https://shop.example.com/"], "at": "2030-01-01T00:00:00Z", "rules": {"version": 1, "rooms": {"a": {"url": "https://example.com/r/a", "mode": "scheduled", "from": "2030-01-01T00:00:00Z"}},
		"rules": [{"name": "all", "action": "queue a"}]}}`).want(http.StatusOK)
	if !strings.Contains(a.body, `"outcome":"queue","room":"a","rule":"all"`) {
		t.Errorf("checked at a time: %s", a.body)
	}
	s.do("DELETE", "/v1/sites/shop", "").want(http.StatusNoContent)
	s.get("/v1/sites/shop").problem(http.StatusNotFound, "not-found")
}

// TestSignedRules: rules for connectors are signed by the organization, and are not sent again while a
// connector has them.
func TestSignedRules(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.post("/v1/sites", `{"name": "shop", "rules": {"version": 1, "hosts":`+"\t"+`["shop.example.com"]}}`).want(http.StatusCreated)
	key := decode[struct{ Key string }](s.get("/v1/site-key").want(http.StatusOK)).Key
	verifier, err := note.NewVerifier(key)
	if err != nil || verifier.Name() != "example.com/o/main" {
		t.Fatalf("key %q, %v", key, err)
	}
	token, _ := s.token(s.main, account.Connect, time.Hour)
	get := func(headers ...string) answer {
		t.Helper()
		return s.get("/v1/sites/shop/rules", append(headers, authorized(token))...)
	}
	a := get().want(http.StatusOK)
	tag := a.header.Get("ETag")
	n, err := note.Open([]byte(a.body), note.VerifierList(verifier))
	if err != nil || n.Text != "proofline-rules/v1\nshop\n1\n{\"version\": 1, \"hosts\":  [\"shop.example.com\"]}\n" {
		t.Errorf("note %q, %v", a.body, err)
	}
	if a.header.Get("Content-Type") != "text/plain; charset=utf-8" || a.header.Get("Cache-Control") != "private, no-cache" || !strings.HasPrefix(tag, `"`) {
		t.Errorf("header %v", a.header)
	}
	if _, err := note.Open([]byte(strings.Replace(a.body, "shop.example", "evil.example", 1)), note.VerifierList(verifier)); err == nil {
		t.Error("tampered rules are accepted")
	}
	for _, condition := range []string{tag, `"other", ` + tag, "*", "W/" + tag} {
		if a := get("If-None-Match: " + condition).want(http.StatusNotModified); a.body != "" || a.header.Get("ETag") != tag || a.header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %q, %v", condition, a.body, a.header)
		}
	}
	get(`If-None-Match: "other"`).want(http.StatusOK)
	s.do("PUT", "/v1/sites/shop", `{"rules": `+noRules+`}`).want(http.StatusOK)
	if a := get("If-None-Match: " + tag).want(http.StatusOK); a.header.Get("ETag") == tag || !strings.Contains(a.body, "\n2\n"+noRules+"\n\n") {
		t.Errorf("after a change %s", a.body)
	}

	// A connector's token only gives access to its own organization's rules.
	for _, path := range []string{"/v1/sites", "/v1/sites/shop", "/v1/sites/shop/history", "/v1/sites/shop/connectors", "/v1/site-key", "/v1/rooms"} {
		s.get(path, authorized(token)).problem(http.StatusForbidden, "forbidden")
	}
	theirs, _ := s.token(s.other, account.Connect, time.Hour)
	s.get("/v1/sites/shop/rules", authorized(theirs)).problem(http.StatusNotFound, "not-found")
	reader, _ := s.token(s.main, account.Read, time.Hour)
	s.get("/v1/sites/shop/rules", authorized(reader)).problem(http.StatusForbidden, "forbidden")
	s.get("/v1/sites/shop/rules", "Authorization: ").problem(http.StatusUnauthorized, "unauthorized")
	s.do("DELETE", "/v1/sites/shop", "").want(http.StatusNoContent)
	get("If-None-Match: "+tag).problem(http.StatusNotFound, "not-found")
}

// TestConnectors lists the connectors that use the rules of a site.
func TestConnectors(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.post("/v1/sites", `{"name": "shop", "rules": `+noRules+`}`).want(http.StatusCreated)
	if a := s.get("/v1/sites/shop/connectors").want(http.StatusOK); a.body != "{\"connectors\":[]}\n" {
		t.Errorf("without a token: %s", a.body)
	}
	n := sites.Node{ID: "AAAAAAAAAAAAAAAAAAAAAA", Site: "shop", RulesVersion: 1, Kind: "nginx", Version: "1.0", Counts: map[string]uint64{"passed": 7}}
	if err := s.sites.Seen(t.Context(), s.main.Org, n); err != nil {
		t.Fatal(err)
	}
	s.do("PUT", "/v1/sites/shop", `{"rules": `+shopRulesElsewhere+`}`).want(http.StatusOK)
	a := s.get("/v1/sites/shop/connectors").want(http.StatusOK)
	if !strings.HasPrefix(a.body, `{"connectors":[{"node":"AAAAAAAAAAAAAAAAAAAAAA","site":"shop","kind":"nginx","version":"1.0","rules_version":1,"behind":true,"connected":true,"seen":"`) || !strings.Contains(a.body, `"counts":{"passed":7}`) {
		t.Errorf("connectors %s", a.body)
	}
	if all := s.get("/v1/connectors").want(http.StatusOK); all.body != a.body {
		t.Errorf("all connectors %s", all.body)
	}
	if a := s.get("/v1/sites").want(http.StatusOK); !strings.Contains(a.body, `"connectors":1,"behind":1}`) {
		t.Errorf("sites %s", a.body)
	}
}

// shopRulesElsewhere name a room of another server.
const shopRulesElsewhere = `{"version": 1, "rooms": {"sale": {"url": "https://elsewhere.example.com/r/sale"}}}`

// TestLargeRules: rules may be larger than the bodies of other routes, up to a limit.
func TestLargeRules(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	with := func(n int) string {
		return `{"name": "shop", "rules": {"version": 1,` + strings.Repeat(" ", n) + `"hosts": ["shop.example.com"]}}`
	}
	s.post("/v1/sites", with(1_000_000)).problem(http.StatusBadRequest, "invalid")
	s.post("/v1/sites", with(1_200_000)).problem(http.StatusRequestEntityTooLarge, "too-large")
	s.post("/v1/sites", with(990_000)).want(http.StatusCreated)
	s.post("/v1/rooms", `{"slug": "a",`+strings.Repeat(" ", 600_000)+`"title": "b"}`).problem(http.StatusRequestEntityTooLarge, "too-large")
}

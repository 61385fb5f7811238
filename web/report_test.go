package web

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/wire"
)

// reportedJSON is the reply to a report.
type reportedJSON struct {
	Rooms     []reportedRoom `json:"rooms"`
	TokenEnds int64          `json:"token_ends"`
}

type reportedRoom struct {
	Room      string   `json:"room"`
	Error     string   `json:"error"`
	Gate      string   `json:"gate"`
	Share     uint64   `json:"share"`
	PerMinute uint64   `json:"per_minute"`
	MaxActive uint64   `json:"max_active"`
	Nodes     uint64   `json:"nodes"`
	SessionMS int64    `json:"session_ms"`
	Recorded  []string `json:"recorded"`
	Over      []string `json:"over"`
	ReturnKey string   `json:"return_key"`
	Signed    bool     `json:"signed_return"`
}

func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// reporter is a connector of an organization.
type reporter struct {
	*tenants
	node, token string
}

func (r reporter) report(rooms string) []reportedRoom {
	r.Helper()
	body := `{"node":"` + r.node + `","site":"shop","rules_version":3,"kind":"proxy","version":"1.0","counts":{"passed":5},"rooms":[` + rooms + `]}`
	return decode[reportedJSON](r.post("/v1/connectors/report", body, authorized(r.token)).want(http.StatusOK)).Rooms
}

// TestReport follows a gate from its first report until it is shut, over HTTP.
func TestReport(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","session":"10m","windows":[{"length":"200ms"}],"outflow":{"per_minute":5,"max_active":100}}`)
	own, _ := s.token(s.main, account.Connect, time.Hour)
	c := reporter{s, newID(), own}
	address := publicURL + "/r/sale"
	safe := func(members string) string { return `{"room":"` + address + `","mode":"safety-net"` + members + `}` }
	if strings.Contains(s.get("/r/sale/state").body, `"gate"`) {
		t.Error("a room without a gate shows one")
	}
	eventually(t, "the gate opens", func() bool { return c.report(safe(""))[0].Gate == "open" })
	key := s.returnKey("sale")
	want := reportedRoom{Room: address, Gate: "open", Share: 3, PerMinute: 5, MaxActive: 100, Nodes: 1, SessionMS: 600_000, Recorded: []string{}, Over: []string{}, ReturnKey: base64.RawURLEncoding.EncodeToString(key[:])}
	started := `,"started":["` + newID() + `","` + newID() + `"]`
	for range 2 { // a reply was lost
		if diff := cmp.Diff([]reportedRoom{want}, c.report(safe(started))); diff != "" {
			t.Errorf("two have begun (-want +got):\n%s", diff)
		}
	}
	eventually(t, "the state says so", func() bool { return strings.Contains(s.get("/r/sale/state").body, `"gate":"open"`) })
	quiet := c.report(`{"room":"` + address + `","mode":"always"}`)
	if quiet[0].Gate != "open" || quiet[0].Share != 0 {
		t.Errorf("in another mode: %+v", quiet)
	}
	c.report(safe(`,"started":["` + newID() + `","` + newID() + `","` + newID() + `"]`))
	eventually(t, "the gate shuts", func() bool { return c.report(safe(`,"turned":2`))[0].Gate == "shut" })
	if got := c.report(safe(""))[0]; got.Share != 0 {
		t.Errorf("shut: %+v", got)
	}
	eventually(t, "the state says that too", func() bool { return strings.Contains(s.get("/r/sale/state").body, `"gate":"shut"`) })

	id := newID()
	at := time.Now().Add(-time.Minute).UnixMilli()
	if got := c.report(safe(fmt.Sprintf(`,"fail_open":[{"id":%q,"from":%d,"until":%d,"requests":120}]`, id, at, at+5000)))[0]; len(got.Recorded) != 1 || got.Recorded[0] != id {
		t.Errorf("recorded %v", got.Recorded)
	}
	known, err := s.sites.Store.Connectors(t.Context(), account.MainOrg, "shop", time.Hour)
	if err != nil || len(known) != 1 || known[0].Node != c.node || known[0].Counts["passed"] != 5 {
		t.Errorf("connectors %+v, %v", known, err)
	}
}

// TestReportOver reports the sessions that the site ended to all its connectors, fewer of each room if there
// are many.
func TestReportOver(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","session":"10m","windows":[{"length":"200ms"}],"outflow":{"per_minute":60000}}`)
	own, _ := s.token(s.main, account.Connect, time.Hour)
	here, there := reporter{s, newID(), own}, reporter{s, newID(), own}
	room := `{"room":"` + publicURL + `/r/sale"`
	ids := make([]string, 400)
	for i := range ids {
		ids[i] = newID()
	}
	list := `["` + strings.Join(ids, `","`) + `"]`
	here.report(room + `,"mode":"safety-net","started":` + list + `}`)
	here.report(room + `,"mode":"safety-net","ended":` + list + `}`)
	var got []string
	eventually(t, "the other one hears of it", func() bool {
		got = there.report(room + `,"mode":"safety-net"}`)[0].Over
		return len(got) == len(ids)
	})
	slices.Sort(ids)
	slices.Sort(got)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("over (-want +got):\n%s", diff)
	}
	for i, r := range there.report(room + strings.Repeat(`},`+room, 99) + `}`) {
		if len(r.Over) != 300 {
			t.Fatalf("room %d of 100 has %d", i, len(r.Over))
		}
	}
}

// TestReportIsolation: for rooms of another organization, or published elsewhere, a connector gets the same
// reply as for nonexistent ones.
func TestReportIsolation(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale",` + quick + `}`)
	text, _ := s.token(s.other, account.Connect, time.Hour)
	c := reporter{s, newID(), text}
	own, _ := s.token(s.main, account.Connect, time.Hour)
	for _, of := range []struct {
		by      reporter
		address string
	}{
		{c, publicURL + "/r/sale"}, {c, publicURL + "/r/none"}, {c, ""}, {c, "%"}, {c, "https://example.com"},
		{reporter{s, newID(), own}, "https://elsewhere.example.com/r/sale"}, {reporter{s, newID(), own}, publicURL + "/r/sale/"}, {reporter{s, newID(), own}, publicURL + "/r/x/r/sale"},
	} {
		got := of.by.report(`{"room":"` + of.address + `","mode":"safety-net","started":["` + newID() + `"],"fail_open":[{"id":"` + newID() + `","from":1,"until":2,"requests":1}]}`)
		if diff := cmp.Diff([]reportedRoom{{Room: of.address, Error: "unknown"}}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", of.address, diff)
		}
	}
	if size := decode[wire.State](s.get("/r/sale/state")).Size; size != 1 {
		t.Errorf("the transcript has %d entries", size)
	}
	for _, scope := range []account.Scope{account.Read, account.Pull} {
		text, _ := s.token(s.main, scope, time.Hour)
		s.post("/v1/connectors/report", `{"node":"`+c.node+`","kind":"proxy","version":"1"}`, authorized(text)).problem(http.StatusForbidden, "forbidden")
	}
	for _, body := range []string{`{}`, `{"node":"` + c.node + `","kind":"other","version":"1"}`, `{"node":"x","kind":"proxy","version":"1"}`} {
		s.post("/v1/connectors/report", body, authorized(own)).problem(http.StatusBadRequest, "invalid")
	}
	s.post("/v1/connectors/report", `{"node":"`+strings.Repeat("A", 1<<20)+`"}`, authorized(own)).problem(http.StatusRequestEntityTooLarge, "too-large")
}

// TestGatePage: while the gate is open, the visitors' page says so, and links only to the room's targets.
func TestGatePage(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.create(`{"slug":"sale","targets":["https://shop.example.com/tickets"],` + quick + `}`)
	own, _ := s.token(s.main, account.Connect, time.Hour)
	c := reporter{s, newID(), own}
	page := func(query string) string {
		return s.get("/r/sale"+query, "Accept: text/html").want(http.StatusOK).body
	}
	if strings.Contains(page(""), `data-show="open"`) {
		t.Error("a room without a gate speaks of one")
	}
	report := `{"room":"` + publicURL + `/r/sale","mode":"safety-net"}`
	eventually(t, "the gate opens", func() bool { return c.report(report)[0].Gate == "open" })
	for query, way := range map[string]string{
		"": "https://shop.example.com/tickets", "?to=https://shop.example.com/tickets/7": "https://shop.example.com/tickets/7",
		"?to=https://evil.example.com/tickets": "https://shop.example.com/tickets", "?to=javascript:alert(1)": "https://shop.example.com/tickets",
	} {
		if body := page(query); !strings.Contains(body, `data-show="open">Right now`) || !strings.Contains(body, `<a href="`+way+`" data-way>`) {
			t.Errorf("%s does not lead to %s: %s", query, way, body)
		}
	}
	s.post("/v1/rooms/sale/pause", "").want(http.StatusOK)
	eventually(t, "the page says so no more", func() bool { return strings.Contains(page(""), `data-show="open" hidden>`) })
	s.post("/r/sale/join", "").want(http.StatusCreated)
}

// TestReportTokenEnds reports the expiry of the token used, and nothing for a token that never expires.
func TestReportTokenEnds(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	ends := func(token string) int64 {
		answer := s.post("/v1/connectors/report", `{"node":"`+newID()+`","kind":"proxy","version":"1.0"}`, authorized(token)).want(http.StatusOK)
		return decode[reportedJSON](answer).TokenEnds
	}
	own, id := s.token(s.main, account.Connect, time.Hour)
	list, err := s.accounts.Tokens.List(t.Context(), s.main)
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Fatalf("tokens %+v, %v", list, err)
	}
	for range 2 { // the second time, the token is cached
		if got, want := ends(own), list[0].Expires.UnixMilli(); got != want {
			t.Errorf("the token ends at %d, want %d", got, want)
		}
	}
	if got := ends(token); got != 0 {
		t.Errorf("the server's token ends at %d", got)
	}
}

package connectortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// manage calls the management API and returns the members of the response.
func (s *server) manage(t *testing.T, method, path, body string, status int) map[string]any {
	t.Helper()
	r, text := send(t, method, s.address+"/v1/"+path, body, "Authorization: Bearer "+token,
		"Content-Type: application/json")
	var out map[string]any
	if r.StatusCode != status || json.Unmarshal([]byte(text), &out) != nil {
		t.Fatalf("%s %s: %d %s", method, path, r.StatusCode, text)
	}
	return out
}

func textOf(t *testing.T, members map[string]any, name string) string {
	t.Helper()
	text, ok := members[name].(string)
	if !ok || text == "" {
		t.Fatalf("no %s in %v", name, members)
	}
	return text
}

// visitor is a browser at the shop.
type visitor struct {
	*testing.T
	shop   string
	cookie string // Cookie header
}

// get opens a page and keeps the cookie. It follows no redirects.
func (v *visitor) get(path string) *http.Response {
	v.Helper()
	headers := []string{page}
	if v.cookie != "" {
		headers = append(headers, v.cookie)
	}
	r, _ := send(v.T, "GET", v.shop+path, "", headers...)
	if c := r.Cookies(); len(c) == 1 && c[0].MaxAge >= 0 {
		v.cookie = "Cookie: " + c[0].Name + "=" + c[0].Value
	}
	return r
}

// protect creates a room and a site, and returns a connector with the site's rules.
func (s *server) protect(t *testing.T, shop, outflow string) func() *connector.Connector {
	t.Helper()
	config := `{"slug":"sale","windows":[{"length":"200ms"}],"outflow":` + outflow + `,"targets":["` + shop + `/"]}`
	s.manage(t, "POST", "rooms", config, http.StatusCreated)
	rules := `{"version":1,"rooms":{"sale":{"url":"` + s.address +
		`/r/sale","mode":"safety-net","failure":"fail-open-after 1s"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`
	s.manage(t, "POST", "sites", `{"name":"shop","rules":`+rules+`}`, http.StatusCreated)
	key := textOf(t, s.manage(t, "GET", "site-key", "", http.StatusOK), "key")
	secret := textOf(t, s.manage(t, "POST", "tokens", `{"name":"the shop","scopes":["connect"]}`, http.StatusCreated),
		"token")
	return func() *connector.Connector {
		t.Helper()
		c, err := connector.New(connector.Options{
			Source: &connector.Source{URL: s.address + "/v1/sites/shop/rules", SiteKey: key,
				Keep: filepath.Join(t.TempDir(), "rules")},
			Token: secret, Key: []byte(strings.Repeat("k", 32)), Probe: 200 * time.Millisecond, Log: servertest.Log(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// TestTwoNodes has many visitors at two nodes at once, which share the room's limits.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	const rate = 60
	s := newServer(t)
	start := s.protect(t, "http://127.0.0.1:1", `{"per_minute":60}`)
	nodes := []*connector.Connector{start(), start()}
	for _, c := range nodes {
		eventually(t, "the gate opens", func() bool { return c.Stats().Rooms["sale"].Gate == connector.GateOpen })
	}
	visitors := 0
	eventually(t, "it shuts", func() bool {
		shut := 0
		for _, c := range nodes {
			visitors++
			r := httptest.NewRequest(http.MethodGet, "/tickets", nil)
			r.RemoteAddr = fmt.Sprintf("10.0.%d.7:1", visitors%256)
			c.Middleware(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
			if c.Stats().Rooms["sale"].Gate == connector.GateShut {
				shut++
			}
		}
		return shut == len(nodes)
	})
	a, b := nodes[0].Stats(), nodes[1].Stats()
	if began := a.Started + b.Started; began < rate*8/10 || began > rate*3/2 || a.Started == 0 || b.Started == 0 {
		t.Errorf("%d and %d began, of %d", a.Started, b.Started, rate)
	}
	list, ok := s.manage(t, "GET", "sites/shop/connectors", "", http.StatusOK)["connectors"].([]any)
	if !ok || len(list) != 2 {
		t.Errorf("connectors %v", list)
	}
}

// TestEndsEverywhere has visitors of one node end their sessions: the other node refuses them, too,
// once it is informed.
func TestEndsEverywhere(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	here, there := httptest.NewServer(nil), httptest.NewServer(nil)
	defer here.Close()
	defer there.Close()
	start := s.protect(t, here.URL, `{"per_minute":6000}`)
	for _, shop := range []*httptest.Server{here, there} {
		c := start()
		shop.Config.Handler = withEcho(c)
		eventually(t, "the gate opens", func() bool { return c.Stats().Rooms["sale"].Gate == connector.GateOpen })
	}
	free := &visitor{T: t, shop: here.URL}
	if r := free.get("/tickets/7"); r.StatusCode != http.StatusOK || free.cookie == "" {
		t.Fatalf("an unqueued session: %d", r.StatusCode)
	}
	called := &visitor{T: t, shop: here.URL}
	ticket, location := wait(t, s.address, url.Values{"to": {here.URL + "/tickets/7"}})
	if r := called.get(strings.TrimPrefix(location, here.URL)); r.StatusCode != http.StatusSeeOther ||
		called.cookie == "" {
		t.Fatalf("entered with %d", r.StatusCode)
	}
	for who, v := range map[string]*visitor{"": free, ticket: called} {
		if _, body := send(t, "GET", there.URL+"/tickets/7", "", page, v.cookie); body != "tickets for "+who {
			t.Errorf("at the other node: %q", body)
		}
		r, _ := send(t, "POST", here.URL+connector.ReleasePath, "", v.cookie, "Origin: "+here.URL)
		if r.StatusCode != http.StatusNoContent || len(r.Cookies()) != 1 || r.Cookies()[0].MaxAge >= 0 {
			t.Errorf("done: %d, %v", r.StatusCode, r.Header)
		}
	}
	for who, v := range map[string]*visitor{"": free, ticket: called} {
		eventually(t, "the other node is informed", func() bool {
			r, body := send(t, "GET", there.URL+"/tickets/7", "", page, v.cookie)
			return r.StatusCode == http.StatusOK && body == "tickets for " &&
				(who != "" || r.Header.Get("Set-Cookie") != "") // a new unqueued session
		})
	}
}

// TestSafetyNet has a gate open, continue without the server, fill the site, make visitors wait,
// and open again.
func TestSafetyNet(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	shop := httptest.NewServer(nil)
	defer shop.Close()
	c := s.protect(t, shop.URL, `{"per_minute":6000,"max_active":4}`)()
	shop.Config.Handler = withEcho(c)
	gate := func() string { return c.Stats().Rooms["sale"].Gate }

	// The gate opens, and visitors get in without a ticket.
	eventually(t, "the gate opens", func() bool { return gate() == connector.GateOpen && c.Stats().RulesVersion == 1 })
	first := &visitor{T: t, shop: shop.URL}
	if r := first.get("/tickets/7"); r.StatusCode != http.StatusOK || first.cookie == "" {
		t.Fatalf("open: %d", r.StatusCode)
	}

	// Without the server, the connector continues with its part of the limits, here all of it, and finally
	// fails open.
	s.stop()
	eventually(t, "the room is out of reach", func() bool { return !c.Stats().Rooms["sale"].DownSince.IsZero() })
	eventually(t, "the answer is old", func() bool { return time.Since(c.Stats().Rooms["sale"].HeardAt) > 5500*time.Millisecond })
	var guests []*visitor
	for range 3 {
		v := &visitor{T: t, shop: shop.URL}
		if r := v.get("/tickets/7"); r.StatusCode != http.StatusOK || v.cookie == "" {
			t.Errorf("by itself: %d", r.StatusCode)
		}
		guests = append(guests, v)
	}
	late := &visitor{T: t, shop: shop.URL}
	eventually(t, "all visitors get in", func() bool { return late.get("/tickets/7").StatusCode == http.StatusOK })
	if r := first.get("/tickets/7"); r.StatusCode != http.StatusOK || late.cookie != "" {
		t.Errorf("with a session: %d; without: %s", r.StatusCode, late.cookie)
	}

	// The server comes back, receives the reports, and shuts the gate.
	s.comeBack()
	eventually(t, "the gate shuts", func() bool {
		return gate() == connector.GateShut &&
			c.Stats().Rooms["sale"].DownSince.IsZero()
	})
	r := late.get("/tickets/7")
	to, err := url.Parse(r.Header.Get("Location"))
	if err != nil || r.StatusCode != http.StatusFound || !strings.HasPrefix(to.String(), s.address+"/r/sale?to=") {
		t.Fatalf("shut: %d to %q, %v", r.StatusCode, to, err)
	}
	if r := guests[0].get("/tickets/7"); r.StatusCode != http.StatusOK {
		t.Errorf("shut, with a session: %d", r.StatusCode)
	}

	// The visitors inside buy, so that the waiting one is called.
	for _, v := range append(guests, first) {
		if r, _ := send(t, "POST", v.shop+"/tickets/bought", "", v.cookie); r.StatusCode != http.StatusOK {
			t.Fatalf("bought: %d", r.StatusCode)
		}
	}
	ticket, location := wait(t, s.address, to.Query())
	if r := late.get(strings.TrimPrefix(location, shop.URL)); r.StatusCode != http.StatusSeeOther || late.cookie == "" {
		t.Fatalf("entered with %d", r.StatusCode)
	}
	if _, body := send(t, "GET", shop.URL+"/tickets/7", "", page, late.cookie); body != "tickets for "+ticket {
		t.Errorf("the shop says %q", body)
	}

	// The gate opens again after a minute without waiting visitors.
	servertest.Pass(t, s.clock, time.Minute, s.rooms)
	eventually(t, "the gate opens again", func() bool { return gate() == connector.GateOpen })
	if r := (&visitor{T: t, shop: shop.URL}).get("/tickets/7"); r.StatusCode != http.StatusOK {
		t.Errorf("open again: %d", r.StatusCode)
	}
	s.transcript(t)
	list, ok := s.manage(t, "GET", "sites/shop/connectors", "", http.StatusOK)["connectors"].([]any)
	if !ok || len(list) != 1 {
		t.Errorf("connectors %v", list)
	}
}

// transcript audits the room and checks the amendments about its gate.
func (s *server) transcript(t *testing.T) {
	t.Helper()
	src, err := source.HTTP(s.address+"/r/sale", nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := verifier.Audit(t.Context(), src, verifier.Trust{})
	if err != nil || !report.OK {
		t.Errorf("the audit says %+v, %v", report, err)
	}
	r, err := s.rooms.Get(t.Context(), "sale")
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	err = r.Transcript.ReadEntries(t.Context(), func(e fairness.Entry) error {
		switch e := e.(type) {
		case *fairness.Amend:
			acts = append(acts, string(e.Change))
		case *fairness.Tell:
			acts = append(acts, string(e.Subject))
			if e.Count != 1 || e.From >= e.Until || e.Until > e.Time {
				t.Errorf("fail_open: %+v", e)
			}
		}
		return nil
	})
	if err != nil || !slices.Equal(acts, []string{"open", "unguarded", "shut", "open"}) &&
		!slices.Equal(acts, []string{"open", "shut", "unguarded", "open"}) {
		t.Errorf("the transcript has %v, %v", acts, err)
	}
}

package connectortest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/fairness"
)

// TestEdge opens and shuts a gate on a real server for visitors of the edge connector, one of whom
// waits in line.
func TestEdge(t *testing.T) {
	t.Parallel()
	conformance.NeedsNode(t)
	s := newServer(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tickets/bought" {
			w.Header().Set("Proofline-Command", "release")
		}
		_, _ = w.Write([]byte(r.Header.Get("X-Proofline-Room") + " " + r.Header.Get("X-Proofline-Ticket")))
	}))
	defer site.Close()
	key := textOf(t, s.manage(t, "GET", "site-key", "", http.StatusOK), "key")
	secret := textOf(t, s.manage(t, "POST", "tokens", `{"name":"the shop","scopes":["connect"]}`, http.StatusCreated),
		"token")
	shop := "http://" + conformance.Edge(t, "../../connector/edge", conformance.Workerd, map[string]string{
		"PROOFLINE_KEY": strings.Repeat("k", 32), "PROOFLINE_RULES_URL": s.address + "/v1/sites/shop/rules",
		"PROOFLINE_SITE_KEY": key, "PROOFLINE_TOKEN": secret, "PROOFLINE_ORIGIN": site.URL,
	})
	s.manage(t, "POST", "rooms", `{"slug":"sale","windows":[{"length":"200ms"}],"outflow":{"per_minute":6000,"max_active":3},"signed_return":true,"targets":["`+shop+`/else","`+shop+`/"]}`, http.StatusCreated)
	s.manage(t, "POST", "sites", `{"name":"shop","rules":{"version":1,"hosts":["127.0.0.1"],"rooms":{"sale":{"url":"`+
		s.address+`/r/sale","mode":"safety-net"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}}`, http.StatusCreated)

	// The gate is open until three visitors are in.
	var guests []*visitor
	var late *http.Response
	eventually(t, "three get in, and others wait", func() bool {
		v := &visitor{T: t, shop: shop}
		r := v.get("/tickets/7")
		if r.StatusCode == http.StatusOK && v.cookie != "" {
			guests = append(guests, v)
		}
		late = r
		return len(guests) >= 3 && r.StatusCode == http.StatusFound
	})
	to, err := url.Parse(late.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), s.address+"/r/sale?to=") {
		t.Fatalf("redirected to %q, %v", to, err)
	}
	if r, body := send(t, "GET", shop+"/tickets/7", "", page, guests[0].cookie); body != "sale " {
		t.Errorf("with an unqueued session: %d %q", r.StatusCode, body)
	}
	eventually(t, "the gate is shut", func() bool {
		(&visitor{T: t, shop: shop}).get("/tickets/7")
		r, err := s.rooms.Get(t.Context(), "sale")
		return err == nil && !isOpen(t, r.Transcript.ReadEntries)
	})

	// They buy, so that the waiting visitor is called.
	for _, v := range guests {
		if r, _ := send(t, "POST", shop+"/tickets/bought", "", v.cookie); r.StatusCode != http.StatusOK ||
			!strings.Contains(r.Header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("bought: %d", r.StatusCode)
		}
	}
	ticket, location := wait(t, s.address, to.Query())
	v := &visitor{T: t, shop: shop}
	if !strings.HasPrefix(location, shop+"/tickets/7?proofline_pass=") {
		t.Errorf("the room redirects to %q", location)
	}
	if r := v.get(strings.TrimPrefix(location, shop)); r.StatusCode != http.StatusSeeOther || v.cookie == "" {
		t.Fatalf("entered with %d", r.StatusCode)
	}
	if _, body := send(t, "GET", shop+"/tickets/7", "", page, v.cookie); body != "sale "+ticket {
		t.Errorf("the site says %q", body)
	}

	// A pass redeemed again by the same visitor is the same session; another visitor is refused.
	if r, _ := send(t, "GET", location, "", page); r.StatusCode != http.StatusSeeOther {
		t.Errorf("the pass again: %d", r.StatusCode)
	}
	if r, _ := send(t, "GET", location, "", page, "User-Agent: another"); r.StatusCode != http.StatusFound {
		t.Errorf("the pass again, by another: %d", r.StatusCode)
	}
	if r, _ := send(t, "POST", shop+"/tickets/bought", "", v.cookie); r.StatusCode != http.StatusOK {
		t.Errorf("bought: %d", r.StatusCode)
	}
	_, pass, _ := strings.Cut(location, "proofline_pass=")
	eventually(t, "the room knows that the visit is over", func() bool {
		r, _ := send(t, "POST", s.address+"/r/sale/sessions/touch", "", "Authorization: Bearer "+pass)
		return r.StatusCode == http.StatusGone
	})
	list, ok := s.manage(t, "GET", "sites/shop/connectors", "", http.StatusOK)["connectors"].([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("connectors %v", list)
	}
	if c, ok := list[0].(map[string]any); !ok || c["kind"] != "edge" || c["rules_version"] != float64(1) {
		t.Errorf("connector %v", list[0])
	}
}

// isOpen reports whether the latest switch of the gate opened it.
func isOpen(t *testing.T, read func(context.Context, func(fairness.Entry) error) error) bool {
	t.Helper()
	is := false
	err := read(t.Context(), func(e fairness.Entry) error {
		if a, ok := e.(*fairness.Amend); ok && (a.Change == fairness.ChangeOpen || a.Change == fairness.ChangeShut) {
			is = a.Change == fairness.ChangeOpen
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

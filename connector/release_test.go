package connector

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/session"
)

// TestRelease tests that a visitor can end their own sessions, in all rooms.
func TestRelease(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 5)
	s := n.shop("")
	pass, free := s.enter(s.queue.pass()), s.free("free")
	for name, headers := range map[string][]string{
		"no cookie":      {},
		"other cookies":  {"Cookie: a=b; __Host-proofline-pass.other=x"},
		"a page":         {"Sec-Fetch-Site: same-origin", "Origin: http://shop.example.com"},
		"by hand":        {"Sec-Fetch-Site: none"},
		"with a port":    {"Host: Shop.example.com:80", "Origin: http://shop.example.com"},
		"a forged visit": {"Cookie: __Host-proofline-pass.sale=x"},
	} {
		r := s.send(http.MethodPost, ReleasePath, headers...)
		if want := map[bool]int{true: 1}[name == "a forged visit"]; r.StatusCode != http.StatusNoContent ||
			len(r.Cookies()) != want || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: status %d, %v", name, r.StatusCode, r.Header)
		}
	}
	for _, cookie := range []string{pass, free} {
		s.isThrough("before", s.get("/tickets", cookie))
		r := s.send(http.MethodPost, ReleasePath, cookie, "Sec-Fetch-Site: same-origin")
		if c := r.Cookies(); r.StatusCode != http.StatusNoContent || len(c) != 1 || c[0].Name != CookiePrefix+"sale" ||
			c[0].MaxAge >= 0 || !c[0].Secure || c[0].Path != "/" {
			t.Errorf("status %d, %v", r.StatusCode, r.Header)
		}
	}
	n.says(GateShut, 0)
	s.report()
	if said := n.latest(); !slices.Equal(said.Started, said.Ended) || len(said.Ended) != 1 {
		t.Errorf("reported %+v", said)
	}
	s.isQueued("after a visit with a pass", s.get("/tickets", pass))
	s.isQueued("after a free visit", s.get("/tickets", free))
	eventually(t, "the room receives it", func() bool { return slices.Contains(s.queue.said(), "/sessions/release") })
	if r := s.send(http.MethodPost, ReleasePath, pass); r.StatusCode != http.StatusNoContent || s.Stats().Released != 2 ||
		len(s.got) != 0 {
		t.Errorf("again: status %d, %+v", r.StatusCode, s.Stats())
	}
}

// TestReleaseOfAll tests ending sessions of several rooms at once.
func TestReleaseOfAll(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	other := *s.current.Load()
	other.rooms = maps.Clone(other.rooms)
	of := other.rooms["sale"].Room.Room
	of.Origin += "-vip"
	vip := &room{session.NewRoom("vip", of), s.newRoomState(of.URL, of.Origin)}
	other.rooms["vip"] = vip
	s.current.Store(&other)
	now := s.clock.now().UnixMilli()
	second := vip.New(id.New(), netip.Addr{}, "", s.clock.now())
	second.Ticket, second.Ends, second.MaxEnds, second.Token = [16]byte{1}, now+1000, now+1000, "x"
	added, _, _ := strings.Cut(s.sessions.store.Cookie(vip.Room, second), ";")
	r := s.send(http.MethodPost, ReleasePath, cookie+"; "+added)
	if len(r.Cookies()) != 2 || s.Stats().Released != 2 || !s.sessions.store.HasEnded(second.Pass) {
		t.Errorf("status %d, %v, %+v", r.StatusCode, r.Header, s.Stats())
	}
}

// TestReleaseOfMany tests that all sessions of a room in a request end, whichever of them
// is used for pages.
func TestReleaseOfMany(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 5)
	s := n.shop("")
	pass, free, other := s.enter(s.queue.pass()), s.free("free"), s.free("other")
	n.says(GateShut, 0)
	s.report()
	if r := s.send(http.MethodPost, ReleasePath, pass, free, pass, other); len(r.Cookies()) != 1 ||
		s.Stats().Released != 3 {
		t.Errorf("status %d, %v, %+v", r.StatusCode, r.Header, s.Stats())
	}
	for _, cookie := range []string{pass, free, other} {
		s.isQueued("after the visit", s.get("/tickets", cookie))
	}
}

// TestReleaseByOthers tests that pages of other origins cannot end sessions.
func TestReleaseByOthers(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"bind":"network"`)
	cookie := s.enter(s.queue.pass())
	for name, c := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"another site":            {http.MethodPost, []string{"Sec-Fetch-Site: cross-site"}, http.StatusForbidden},
		"another host of it":      {http.MethodPost, []string{"Sec-Fetch-Site: same-site"}, http.StatusForbidden},
		"of two":                  {http.MethodPost, []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"}, http.StatusForbidden},
		"another origin":          {http.MethodPost, []string{"Origin: http://evil.example.org"}, http.StatusForbidden},
		"a longer name":           {http.MethodPost, []string{"Origin: http://shop.example.com.evil.example.org"}, http.StatusForbidden},
		"another port":            {http.MethodPost, []string{"Origin: http://shop.example.com:8080"}, http.StatusForbidden},
		"another scheme":          {http.MethodPost, []string{"Origin: https://shop.example.com"}, http.StatusForbidden},
		"a frame without origin":  {http.MethodPost, []string{"Origin: null"}, http.StatusForbidden},
		"no origin":               {http.MethodPost, []string{"Origin: "}, http.StatusForbidden},
		"a link":                  {http.MethodGet, nil, http.StatusMethodNotAllowed},
		"a question before":       {http.MethodOptions, []string{"Origin: http://shop.example.com"}, http.StatusMethodNotAllowed},
		"a path that is not this": {http.MethodPost, nil, http.StatusNotFound},
		"another network":         {http.MethodPost, []string{"Client: 203.0.113.5"}, http.StatusNoContent},
	} {
		target := ReleasePath
		if c.want == http.StatusNotFound {
			target += "/"
		}
		r := s.send(c.method, target, append(c.headers, cookie)...)
		if r.StatusCode != c.want || c.want != http.StatusNoContent && len(r.Cookies()) != 0 {
			t.Errorf("%s: status %d, %v", name, r.StatusCode, r.Header)
		}
		if c.want == http.StatusMethodNotAllowed && r.Header.Get("Allow") != "POST" {
			t.Errorf("%s: allows %q", name, r.Header.Get("Allow"))
		}
	}
	s.isThrough("after all", s.get("/tickets", cookie))
	if n := s.Stats(); n.Released != 0 || len(s.got) != 0 {
		t.Errorf("counts %+v", n)
	}
	if s.Allows(http.Header{}, newRequest(http.MethodPost, ReleasePath, cookie)) || s.Stats().Released != 0 {
		t.Error("the question of nginx ends a visit, or is allowed")
	}
}

// newRequest returns a request of the same visitor as send.
func newRequest(method, target, cookie string) *http.Request {
	r, _ := http.NewRequest(method, target, http.NoBody) //nolint:noctx // it is not sent
	r.RemoteAddr, r.Host = "198.51.100.7:1", "shop.example.com"
	r.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
	return r
}

// TestEndedElsewhere tests that sessions ended at another node are refused.
func TestEndedElsewhere(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.said = &report.RoomReply{Gate: GateOpen, Share: 3, PerMinute: 600, MaxActive: 100, Nodes: 2, SessionMS: 600_000}
	s := n.shop("")
	pass, stays := s.enter(s.queue.pass()), s.enter(s.queue.pass())
	free, other := s.free("one"), s.free("another")
	idOfCookie := func(cookie string) string {
		var v session.Session
		if _, value, _ := strings.Cut(cookie, "="); !session.NewSigner(testKey).Parse(value, &v) {
			t.Fatal("no cookie")
		}
		return id.Text(v.Pass)
	}
	n.says(GateShut, 0)
	n.said.Ended = []string{"", "x", idOfCookie(free) + "A", strings.Repeat("*", 22), idOfCookie(pass), idOfCookie(free), idOfCookie(pass)}
	s.report()
	s.isQueued("with a pass", s.get("/tickets", pass))
	s.isQueued("a free one", s.get("/tickets", free))
	s.isThrough("another with a pass", s.get("/tickets", stays))
	s.isThrough("another free one", s.get("/tickets", other))
	if got := s.Stats().Rooms["sale"].Unqueued; got != 1 {
		t.Errorf("%d unqueued sessions continue", got)
	}
	n.says(GateShut, 0)
	s.clock.pass(9 * time.Minute)
	s.report()
	s.isQueued("later, with a pass", s.get("/tickets", pass))
	s.isQueued("later, a free one", s.get("/tickets", free))
}

// TestEndedElsewhereLimit tests that only a bounded number of them is accepted.
func TestEndedElsewhereLimit(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop("")
	for range gate.MaxIDs + 10 {
		n.said.Ended = append(n.said.Ended, id.Text(id.New()))
	}
	s.report()
	got := 0
	for _, text := range n.said.Ended {
		if pass, _ := id.Parse(text); s.sessions.store.HasEnded(pass) {
			got++
		}
	}
	if got != gate.MaxIDs {
		t.Errorf("%d are known", got)
	}
}

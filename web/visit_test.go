package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// atShop lets a browser into a room whose target is the shop, and returns the pass.
func (b *browser) atShop(slug string) string {
	b.Helper()
	b.post("/r/"+slug+"/line", "").redirected()
	eventually(b, "the call", func() bool { return b.get("/r/"+slug).state() == "called" })
	u, err := url.Parse(b.post("/r/"+slug+"/claim", "").redirected())
	if err != nil || u.Host != "shop.example.com" || u.Query().Get(passParameter) == "" {
		b.Fatalf("redirected to %v: %v", u, err)
	}
	return u.Query().Get(passParameter)
}

// TestVisitOver: a visitor who has been in and comes back to the line may join again once the visit is over,
// and not before.
func TestVisitOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop","targets":["https://shop.example.com/"],` + quick + `}`)
	b := s.browser()
	pass := b.atShop("shop")
	secret := b.cookies[secretCookie+"shop"]
	b.post("/r/shop/line", "again=1").redirected()
	if got := b.get("/r/shop").state(); got != "admitted" || b.cookies[secretCookie+"shop"] != secret {
		t.Errorf("while the session lasts: %s", got)
	}
	s.post("/r/shop/sessions/release", "", authorized(pass)).want(http.StatusOK)
	if a := b.get("/r/shop"); a.state() != "over" || !strings.Contains(a.body, `data-without="joinable"`) || strings.Contains(a.body, "/claim") {
		t.Errorf("after the visit: %s", a.body)
	}
	b.post("/r/shop/claim", "{}", "Accept: application/json").problem(http.StatusGone, "expired")
	b.post("/r/shop/line", "").redirected()
	if got := b.get("/r/shop").state(); got != "over" || b.cookies[secretCookie+"shop"] != secret {
		t.Errorf("without a word: %s", got)
	}
	b.post("/r/shop/line", "again=1").redirected()
	if got := b.get("/r/shop").state(); got == "over" || got == "admitted" || b.cookies[secretCookie+"shop"] == secret {
		t.Errorf("with a new place: %s", got)
	}
}

// TestVisitLongerThanPass: a visit that continues after its pass has expired needs none, and the page sends
// the visitor on without one.
func TestVisitLongerThanPass(t *testing.T) {
	t.Parallel()
	rooms, pool := newRooms(t)
	s := startSite(t, Options{Rooms: rooms, Control: newControl(t, rooms, pool), AdminToken: token})
	s.create(`{"slug":"shop","session":"1s","targets":["https://shop.example.com/"],` + quick + `}`)
	b := s.browser()
	pass := b.atShop("shop")
	s.post("/r/shop/sessions/touch", "", authorized(pass)) // it may be over already; it is restored here
	until := func(moment string) {
		t.Helper()
		if tag, err := pool.Exec(t.Context(), `update room_sessions set until_ms = `+moment); err != nil || tag.RowsAffected() != 1 {
			t.Fatal(tag, err)
		}
	}
	until("expires_ms + 3600000")
	way := func() string {
		a := b.post("/r/shop/claim", "")
		if a.status != http.StatusSeeOther {
			return ""
		}
		return a.redirected()
	}
	eventually(t, "the pass runs out", func() bool { return !strings.Contains(way(), passParameter) })
	if got := way(); got != "https://shop.example.com/" || b.get("/r/shop").state() != "admitted" {
		t.Errorf("redirected to %q", got)
	}
	if got := decode[map[string]string](b.post("/r/shop/claim", "{}")); got["location"] != "https://shop.example.com/" {
		t.Errorf("the page's script is sent to %q", got)
	}
	until("0")
	if got := b.get("/r/shop").state(); got != "over" {
		t.Errorf("after the visit: %s", got)
	}
	b.post("/r/shop/claim", "{}", "Accept: application/json").problem(http.StatusGone, "expired")
}

package web

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/door"
)

const clubForm = `<form method="post" action="https://club.example.org/lots">`

// newLots starts a site with a room in which club and phone give one more lot each.
func newLots(t *testing.T, window string) (s *site, pass func(time.Duration)) {
	t.Helper()
	s, pass = newTimedDoor(t)
	methods := must(json.Marshal([]credential.Method{club.Method, phone.Method}))
	s.create(`{"slug":"lots","windows":[{"length":"` + window + `"}],"methods":` + string(methods) + `,"lots":["club","phone"],
		"issuers":["club https://club.example.org/lots Example Club","phone https://phone.example.org/lots Phones"]}`)
	return s, pass
}

// visit returns the page of a room as a visitor with the cookie sees it.
func (s *site) visit(slug string, v visitor) string {
	s.Helper()
	return s.get("/r/"+slug, "Accept: text/html", "Cookie: "+secretCookie+slug+"="+v.secret).want(http.StatusOK).body
}

// back sends the form of an issuer's page; without a cookie, it comes from another site.
func (s *site) back(slug string, v visitor, c credential.Credential, more ...string) answer {
	s.Helper()
	w := door.Write(c)
	form := url.Values{"ticket": {v.ticket}, "lane": {"general"}, "method": {w.Method}, "nullifier": {w.Nullifier}, "evidence": {w.Evidence}}
	headers := []string{"Content-Type: application/x-www-form-urlencoded", "Accept: text/html"}
	for _, one := range more {
		if name, value, ok := strings.Cut(one, "="); ok && name == "seats" {
			form.Set(name, value)
		} else {
			headers = append(headers, one)
		}
	}
	return s.post("/r/"+slug+"/credential", form.Encode(), headers...)
}

// TestMoreLots leads to issuers for more lots: before the join, which then has one more, and while the visitor waits.
func TestMoreLots(t *testing.T) {
	t.Parallel()
	s, _ := newLots(t, "24h")
	v := newVisitor("lots")
	cookie := "Cookie: " + secretCookie + "lots=" + v.secret
	first := s.get("/r/lots", "Accept: text/html").want(http.StatusOK).body
	if !strings.Contains(first, "Confirm with Example Club for one more lot") || strings.Contains(first, clubForm) ||
		!strings.Contains(first, `data-post="line"`) {
		t.Errorf("without a cookie: %s", first)
	}
	if then := s.visit("lots", v); !strings.Contains(then, clubForm+`<input type="hidden" name="ticket" value="`+v.ticket+`">`+
		`<input type="hidden" name="lane" value="general">`) || strings.Contains(then, v.secret) {
		t.Errorf("with a cookie: %s", then)
	}
	subject := s.lotsSubject(v)
	s.back("lots", v, club.Show(subject, 1)).want(http.StatusSeeOther)
	waits := s.visit("lots", v)
	if !strings.Contains(waits, "Your place has 2 lots in the draw") || !strings.Contains(waits, "Each lot has the same chance") || strings.Contains(waits, clubForm) ||
		!strings.Contains(waits, `action="https://phone.example.org/lots" data-blind data-ticket="`+v.ticket+`"`) ||
		!strings.Contains(waits, " data-lot ") {
		t.Errorf("after a join with one more lot: %s", waits)
	}

	blind := phone.Show(subject, 0)
	limit := func(waiting string) {
		s.do(http.MethodPatch, "/v1/rooms/lots", `{"max_waiting":`+waiting+`}`, "Authorization: Bearer "+token,
			"Content-Type: application/json").want(http.StatusOK)
	}
	limit("1") // a full room is not full for who has a place
	asks := s.back("lots", v, blind).want(http.StatusOK).body
	if !strings.Contains(asks, "Take the lot") || !strings.Contains(asks, `name="seats" value="1"`) || strings.Contains(asks, "<script") {
		t.Errorf("from another site: %s", asks)
	}
	s.back("lots", v, blind, "seats=1").want(http.StatusForbidden)
	other := newVisitor("lots")
	s.back("lots", v, blind, "seats=1", "Cookie: "+secretCookie+"lots="+other.secret).want(http.StatusForbidden)
	s.back("lots", v, phone.Show(s.lotsSubject(other), 0), "seats=1", cookie).want(http.StatusForbidden)
	for range 2 { // the second time, there is nothing to do
		if a := s.back("lots", v, blind, "seats=1", cookie).want(http.StatusSeeOther); a.header.Get("Location") != "/r/lots" {
			t.Errorf("%v", a.header)
		}
	}
	if waits := s.visit("lots", v); !strings.Contains(waits, "Your place has 3 lots in the draw") ||
		strings.Contains(waits, "for one more lot") {
		t.Errorf("after one more: %s", waits)
	}
	if shown := s.get("/r/lots/tickets/" + v.ticket + "/credentials").want(http.StatusOK).body; !strings.HasPrefix(shown, "phone ") {
		t.Errorf("shown: %q", shown)
	}

	limit("100")
	s.post("/r/lots/join", other.joinBody()).want(http.StatusCreated)
	used := s.back("lots", other, club.Show(s.lotsSubject(other), 1), "Cookie: "+secretCookie+"lots="+other.secret)
	if used.want(http.StatusConflict); !strings.Contains(used.body, "This confirmation was used already") {
		t.Errorf("used: %s", used.body)
	}
	third := newVisitor("lots")
	s.back("lots", third, club.Show(s.lotsSubject(third), 2)).want(http.StatusSeeOther)
	eventually(t, "the offer goes when the method is used up", func() bool { return !strings.Contains(s.visit("lots", other), clubForm) })
}

// lotsSubject is what a credential for lane general of room lots is for.
func (s *site) lotsSubject(v visitor) credential.Subject {
	s.Helper()
	ticket := must(fairness.ParseTicket(v.ticket))
	entry := must(hex.DecodeString(decode[wire.State](s.get("/r/lots/state")).Entry))
	return credential.Subject{Room: [32]byte(entry), Lane: "general", Ticket: ticket}
}

// TestMoreLotsUntil: the offer goes with the window, and who comes back later gets no lot.
func TestMoreLotsUntil(t *testing.T) {
	t.Parallel()
	s, pass := newLots(t, "1h")
	v := newVisitor("lots")
	subject := s.lotsSubject(v)
	s.post("/r/lots/join", v.joinBody()).want(http.StatusCreated)
	for range 2 {
		if page := s.visit("lots", v); !strings.Contains(page, clubForm) {
			t.Errorf("while the window is open: %s", page)
		}
		pass(50 * time.Minute)
	}
	eventually(t, "the offer goes", func() bool { return !strings.Contains(s.visit("lots", v), clubForm) })
	late := s.back("lots", v, club.Show(subject, 1), "Cookie: "+secretCookie+"lots="+v.secret)
	if late.want(http.StatusGone); !strings.Contains(late.body, "Not any more") {
		t.Errorf("late: %s", late.body)
	}
}

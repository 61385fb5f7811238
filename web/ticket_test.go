package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/wire"
)

// TestClaimSaysWhere: the response to a claim by a program says where to go with the pass, and only names
// URLs that the room allows.
func TestClaimSaysWhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"where","windows":[{"length":"300ms"}],"outflow":{"per_minute":6000},"targets":["https://shop.example.com/a?from=line","https://api.example.com/v2/"]}`)
	s.create(`{"slug":"nowhere","windows":[{"length":"300ms"}],"outflow":{"per_minute":6000}}`)
	v, w := newVisitor("where"), newVisitor("nowhere")
	s.post("/r/where/join", v.joinBody()).want(http.StatusCreated)
	s.post("/r/nowhere/join", w.joinBody()).want(http.StatusCreated)
	claim := "/r/where/tickets/" + v.ticket + "/claim"
	with := func(to string) string { return `{"to":"` + to + `","secret":"` + v.secret + `"}` }
	bad := []string{"https://evil.example/", "https://shop.example.com.evil.example/a", "https://api.example.com/v2/../v1", "//api.example.com/v2/", "javascript:alert(1)", "https://api.example.com@evil.example/v2/"}
	for _, to := range bad { // even before it is called: nothing is claimed
		if p := s.post(claim, with(to)).problem(http.StatusBadRequest, "invalid"); len(p.Errors) != 1 || p.Errors[0].Field != "to" {
			t.Errorf("to %s: %+v", to, p)
		}
	}
	eventually(t, "both are called", func() bool {
		return s.post(claim, v.claimBody()).status == http.StatusOK && s.post("/r/nowhere/tickets/"+w.ticket+"/claim", w.claimBody()).status == http.StatusOK
	})
	for _, to := range bad {
		s.post(claim, with(to)).problem(http.StatusBadRequest, "invalid")
	}
	for body, want := range map[string]string{
		v.claimBody():                           "https://shop.example.com/a?from=line&proofline_pass=",
		with(""):                                "https://shop.example.com/a?from=line&proofline_pass=",
		with("https://api.example.com/v2/cart"): "https://api.example.com/v2/cart?proofline_pass=",
		with("https://shop.example.com/a?proofline_pass=x&b=1"): "https://shop.example.com/a?b=1&proofline_pass=",
	} {
		p := decode[wire.Pass](s.post(claim, body).want(http.StatusOK))
		if p.Location == nil || *p.Location != want+p.Pass {
			t.Errorf("%s: %v", body, p.Location)
		}
	}
	if p := decode[wire.Pass](s.post("/r/nowhere/tickets/"+w.ticket+"/claim", w.claimBody()).want(http.StatusOK)); p.Location != nil || p.Pass == "" {
		t.Errorf("without targets: %+v", p)
	}
}

// TestGiveUp gives places up by program, from any origin, with the right secret only.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.open("given")
	leave := "/r/given/tickets/" + v.ticket + "/leave"
	s.post(leave, newVisitor("given").claimBody()).problem(http.StatusForbidden, "wrong-secret")
	s.post(leave, `{"secret":"x"}`).problem(http.StatusBadRequest, "invalid")
	s.post(leave, `{}`).problem(http.StatusBadRequest, "invalid")
	s.post(leave, v.claimBody(), "Content-Type: text/plain").problem(http.StatusUnsupportedMediaType, "media-type")
	s.get(leave).problem(http.StatusMethodNotAllowed, "")
	stranger := newVisitor("given")
	s.post("/r/given/tickets/"+stranger.ticket+"/leave", stranger.claimBody()).problem(http.StatusNotFound, "unknown-ticket")
	s.post("/r/given/tickets/x/leave", v.claimBody()).problem(http.StatusBadRequest, "invalid")
	if size := s.entries("given"); size != 2 {
		t.Errorf("%d entries, want 2", size)
	}
	for range 2 { // repeating it is not an error
		a := s.post(leave, v.claimBody(), "Origin: capacitor://localhost", "Sec-Fetch-Site: cross-site").want(http.StatusOK)
		if got := decode[wire.Place](a); got.Status != "skipped" || got.Reason != "left" || got.Ticket != v.ticket {
			t.Errorf("left: %+v", got)
		}
		if a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Cache-Control") != "no-store" || len(a.header["Set-Cookie"]) > 0 {
			t.Errorf("header %v", a.header)
		}
	}
	s.create(`{"slug":"went","windows":[{"length":"200ms"}],"outflow":{"per_minute":6000}}`)
	w := newVisitor("went")
	s.post("/r/went/join", w.joinBody()).want(http.StatusCreated)
	eventually(t, "the visitor is in", func() bool {
		return s.post("/r/went/tickets/"+w.ticket+"/claim", w.claimBody()).status == http.StatusOK
	})
	s.post("/r/went/tickets/"+w.ticket+"/leave", w.claimBody()).problem(http.StatusGone, "settled")
}

// TestJoinForSeats joins for a number of seats, and reads it back as the visitor and as the organizer.
func TestJoinForSeats(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"seats","windows":[{"length":"1h"}],"party":4}`)
	for text, want := range map[string]uint32{`,"seats":3`: 3, `,"seats":1`: 1, ``: 1, `,"seats":null`: 1} {
		v := newVisitor("seats")
		s.post("/r/seats/join", `{"ticket":"`+v.ticket+`"`+text+`}`).want(http.StatusCreated)
		path := "/tickets/" + v.ticket
		if got := decode[wire.Place](s.get("/r/seats" + path).want(http.StatusOK)).Seats; max(got, 1) != want {
			t.Errorf("%s: the visitor sees %d seats, want %d", text, got, want)
		}
		if got := decode[wire.Ticket](s.do("GET", "/v1/rooms/seats"+path, "").want(http.StatusOK)).Seats; got != want {
			t.Errorf("%s: the organizer sees %d seats, want %d", text, got, want)
		}
	}
	for _, text := range []string{`"3"`, `0`, `5`, `-1`, `1.5`, `2e0`, `[2]`, `true`} {
		v := newVisitor("seats")
		p := s.post("/r/seats/join", `{"ticket":"`+v.ticket+`","seats":`+text+`}`).problem(http.StatusBadRequest, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != "seats" {
			t.Errorf("%s: %+v", text, p.Errors)
		}
	}
}

// TestSlots reads the counts of slots from the state of a room until they are drawn, and the slot of a ticket.
func TestSlots(t *testing.T) {
	t.Parallel()
	s, pass := newTimed(t)
	s.create(`{"slug":"slots","windows":[{"length":"80m"},{"from":"` + time.Now().Add(9*time.Hour).Format(time.RFC3339) + `","length":"1m"}],"slots":"20m",` +
		`"lanes":[{"name":"general","weight":2},{"name":"members","weight":6}]}`)
	v, w := newVisitor("slots"), newVisitor("slots")
	page := func(v visitor, want ...string) {
		t.Helper()
		path, now := "/r/slots", "Cookie: lang=en"
		if v.ticket != "" {
			path += "?fragment=1&ticket=" + v.ticket
		}
		text := s.get(path, now, "Accept: text/html").want(http.StatusOK).body
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("the page does not say %q: %s", words, text)
			}
		}
		if strings.Contains(text, "same chance") {
			t.Errorf("the page speaks of the same chance: %s", text)
		}
	}
	s.post("/r/slots/join", v.joinBody()).want(http.StatusCreated)
	page(visitor{}, "is cut into 4 slots", "it is slot ", "<svg data-slots")
	page(v, "You came in slot ", " of 4, from ", "Nobody is in an earlier group.", "Yours is general, with 1 of every 4 turns")
	pass(30 * time.Minute)
	s.post("/r/slots/join", `{"ticket":"`+w.ticket+`","lane":"members"}`).want(http.StatusCreated)
	page(w, "Yours is members, with 3 of every 4 turns while people wait in all of them.")
	place := decode[wire.Place](s.get("/r/slots/tickets/" + w.ticket))
	if place.Slot == nil || *place.Slot != 1 || place.Ahead.Max != 3 { // the other three slots are filled up
		t.Errorf("slot %v, ahead %+v", place.Slot, place.Ahead)
	}
	var state wire.State
	eventually(t, "the state has both", func() bool { // it is shared for a moment
		state = decode[wire.State](s.get("/r/slots/state"))
		return state.Slots != nil && state.Arrivals == 2
	})
	if l := state.Slots; l == nil || l.LengthMS != 1_200_000 || l.Lots["general"][0] != 1 || l.Lots["members"][*place.Slot] != 1 || len(l.Lots["members"]) != 4 {
		t.Errorf("slots %+v", state.Slots)
	}
	pass(time.Hour)
	eventually(t, "it is drawn", func() bool {
		state = decode[wire.State](s.get("/r/slots/state"))
		return state.Slots == nil && state.Lanes["members"].Drawn == 1
	})
	if l := state.Lanes["members"]; l.Passed == nil || *l.Passed > l.Called || *l.Passed > 1 {
		t.Errorf("lane %+v", l)
	}
	if place = decode[wire.Place](s.get("/r/slots/tickets/" + w.ticket)); place.Slot == nil || place.Position == nil {
		t.Errorf("drawn: %+v", place)
	}
}

// TestExtendTicket reads how much more time a called ticket may have, and asks for it.
func TestExtendTicket(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"200ms"}],"claim":"1h","extend":"30m"}`)
	v := newVisitor("sale")
	s.post("/r/sale/join", v.joinBody()).want(http.StatusCreated)
	path := "/r/sale/tickets/" + v.ticket
	ticket := func(a answer) (st wire.Place) {
		t.Helper()
		if err := json.Unmarshal([]byte(a.want(http.StatusOK).body), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	eventually(t, "the ticket is called", func() bool { return ticket(s.get(path)).Status == "called" })
	before := ticket(s.get(path))
	if before.ExtendMS == nil || *before.ExtendMS != 30*60_000 {
		t.Fatalf("a called ticket may have %v more", before.ExtendMS)
	}
	for range 2 {
		after := ticket(s.post(path+"/extend", v.claimBody()))
		if more := *after.LeftMS - *before.LeftMS; after.ExtendMS != nil || more < 29*60_000 || more > 30*60_000 {
			t.Errorf("%d ms more, and %v to come", more, after.ExtendMS)
		}
	}
	s.post(path+"/extend", newVisitor("sale").claimBody()).problem(http.StatusForbidden, "wrong-secret")
	s.post(path+"/extend", "{}").problem(http.StatusBadRequest, "invalid")
}

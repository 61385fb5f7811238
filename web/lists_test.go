package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/wire"
)

// TestRevokeTickets revokes a list of tickets through the management API, and undoes it; the visitor's page says where to
// appeal.
func TestRevokeTickets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"24h"}],"appeal":"help+line@example.com"}`)
	visitors := make([]visitor, 4)
	var tickets []string
	for i := range visitors {
		visitors[i] = newVisitor("sale")
		if tickets = append(tickets, `"`+visitors[i].ticket+`"`); i < 3 {
			s.post("/r/sale/join", visitors[i].joinBody()).want(http.StatusCreated)
		}
	}
	revoke, restore := "/v1/rooms/sale/revocations", "/v1/rooms/sale/restorations"
	body := func(list []string, more string) string {
		return `{"tickets":[` + strings.Join(list, ",") + `]` + more + `}`
	}
	for _, wrong := range []string{
		`{}`, `{"tickets":[]}`, `{"tickets":["x"]}`, `{"tickets":[` + tickets[0] + `],"method":"club"}`, `{"method":"club"}`, `{"method":"club","all":true}`,
		`{"all":true}`, `{"nullifiers":["00"]}`, `{"tickets":[` + tickets[0] + `],"from":1}`, body(tickets[:1], `,"colour":"red"`),
	} {
		s.post(revoke, wrong).problem(http.StatusBadRequest, "invalid")
		s.post(restore, wrong).problem(http.StatusBadRequest, "invalid")
	}
	s.post(revoke, body(tickets[:1], `,"reason":"left"`)).problem(http.StatusBadRequest, "invalid")
	s.post("/v1/rooms/none/revocations", body(tickets[:1], "")).problem(http.StatusNotFound, "not-found")
	if a := s.post(revoke, body(tickets, "")).problem(http.StatusBadRequest, "invalid"); !strings.Contains(fmt.Sprint(a), "tickets[3]") {
		t.Errorf("an unknown ticket: %v", a)
	}
	checked := decode[wire.Revocations](s.post(revoke, body(tickets, `,"skip_unknown":true,"check":true`)).want(http.StatusOK))
	if checked.Tally.Waiting != 3 || checked.Tally.Unknown != 1 || checked.Done != 0 || checked.First != nil {
		t.Errorf("checked: %+v", checked)
	}
	if got := decode[wire.Room](s.get("/v1/rooms/sale")); got.Size != 4 {
		t.Errorf("%d entries before anything was done", got.Size)
	}
	done := decode[wire.Revocations](s.post(revoke, body(tickets[:2], `,"reason":"revoked-duplicate"`)).want(http.StatusOK))
	if done.Done != 2 || done.First == nil || *done.First != 4 {
		t.Errorf("revoked: %+v", done)
	}
	page := s.get("/r/sale?fragment=1&ticket="+visitors[0].ticket, "Accept: text/html", "Accept-Language: de").want(http.StatusOK).body
	for _, want := range []string{`data-state="revoked"`, `href="mailto:help+line@example.com"`, "wenden Sie sich an", "Eine Person hatte mehrere"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a revoked place lacks %q: %s", want, page)
		}
	}
	if one := decode[wire.Place](loose(s.get("/r/sale/tickets/" + visitors[0].ticket))); one.Reason != "revoked-duplicate" || one.Appeal != "help+line@example.com" {
		t.Errorf("an app reads %+v", one)
	}
	if one := decode[wire.Place](loose(s.get("/r/sale/tickets/" + visitors[2].ticket))); one.Appeal != "" {
		t.Errorf("an app reads of a waiting place: %+v", one)
	}
	undone := decode[wire.Restorations](s.post(restore, body(tickets[:3], fmt.Sprintf(`,"since":%d`, *done.First))).want(http.StatusOK))
	if undone.Done != 2 || undone.Tally.Waiting != 1 || undone.Later != 0 {
		t.Errorf("restored: %+v", undone)
	}
	if checked := decode[wire.Restorations](s.post(restore, body(tickets[:3], `,"check":true`)).want(http.StatusOK)); checked.Tally.Waiting != 3 {
		t.Errorf("checked after the restore: %+v", checked)
	}
	log := s.get("/v1/activity?object=sale").want(http.StatusOK).body
	for _, want := range []string{`"room.revoke-list"`, `"room.restore-list"`, `"tickets":2`, `"reason":"revoked-duplicate"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the activity log lacks %s", want)
		}
	}
}

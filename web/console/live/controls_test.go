package live_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	pages "github.com/proofline/proofline/web/console/live"
)

// TestControls controls a sale with forms, like a browser without scripts: the console asks first, and then
// acts.
func TestControls(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	joined := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{1})
	if _, err := r.Join(t.Context(), joined); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		form []string
		asks string
		is   func() bool
	}{
		{"pause", nil, "Pause calls?", func() bool { return r.Snapshot().Paused && !r.Snapshot().ClaimsFrozen }},
		{"freeze-claims", nil, "Freeze claims?", func() bool { return r.Snapshot().ClaimsFrozen }},
		{"resume", nil, "Resume?", func() bool { return !r.Snapshot().Paused }},
		{"outflow", []string{"per_minute", "120", "max_active", "7"}, "Change the outflow?", func() bool { return r.Snapshot().Outflow == fairness.Outflow{PerMinute: 120, MaxActive: 7} }},
		{"message", []string{"message[0].language", "English", "message[0].text", "Sorry.\r\nWe are late.", "ends", "10m"}, "Show this message?", func() bool {
			m := r.Snapshot().Message(r.Now())
			return m != nil && m.Texts["en"] == "Sorry.\nWe are late." && m.Until != nil
		}},
		{"message-back", nil, "Remove the message?", func() bool { return r.Snapshot().Message(r.Now()) == nil }},
		{"revoke", []string{"ticket", joined.String(), "reason", "revoked-bot"}, "Revoke this place?", func() bool {
			st, _ := r.Standing(joined)
			return st.Reason == fairness.RevokedBot
		}},
		{"restore", []string{"ticket", joined.String()}, "Give this place back?", func() bool {
			st, _ := r.Standing(joined)
			return st.Status == fairness.StatusWaiting && st.Restored
		}},
		{"end", []string{"slug", "sale"}, "End the room permanently?", func() bool { return r.Snapshot().Ended }},
	} {
		path := "/console/rooms/sale/" + test.name
		s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Sale", `action="`+path+`"`)
		s.Get(consoletest.Viewer, path).Want(http.StatusForbidden)
		s.Post(consoletest.Viewer, path, append(test.form, "confirmed", "1")...).Want(http.StatusForbidden)
		s.Post(consoletest.Stranger, path, append(test.form, "confirmed", "1")...).Want(http.StatusNotFound)
		size := r.Snapshot().Size
		asked := s.Post(consoletest.Operator, path, test.form...).Want(http.StatusOK).Has(test.asks, `name="confirmed" value="1"`)
		for i := 0; i < len(test.form); i += 2 {
			asked.Has(`name="` + test.form[i] + `"`)
		}
		if r.Snapshot().Size != size {
			t.Errorf("%s is done before it is confirmed", test.name)
		}
		to := s.Post(consoletest.Operator, path, append(test.form, "confirmed", "1")...).Want(http.StatusSeeOther).Header.Get("Location")
		if !strings.HasPrefix(to, "/console/rooms/sale?done=") || pages.Notices[strings.TrimPrefix(to, "/console/rooms/sale?done=")] == "" {
			t.Errorf("%s leads to %s", test.name, to)
		}
		if !test.is() {
			t.Errorf("%s is not done", test.name)
		}
	}
	s.Get(consoletest.Viewer, "/console/activity?object=sale").Want(http.StatusOK).Has("ended the room", "revoked a place", "gave a revoked place back", "reason: revoked-bot", "per minute: 60 to 120", "operator@example.com", "owner@example.com")
	s.Get(consoletest.Stranger, "/console/activity").Want(http.StatusOK).Lacks("sale", "operator@example.com")
}

// TestControlProblems shows problems next to their fields, and keeps what was sent.
func TestControlProblems(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	unknown := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{9}).String()
	for _, test := range []struct {
		name string
		form []string
		want string
	}{
		{"outflow", []string{"per_minute", "abc"}, "Enter a whole number, such as 300."},
		{"outflow", []string{"per_minute", "0"}, "must be a whole number from 1 to"},
		{"outflow", []string{"per_minute", "-5"}, "Enter a whole number"},
		{"outflow", nil, "changes nothing"},
		{"outflow", []string{"per_minute", "60", "max_active", "0"}, "The pace and the limit are unchanged"},
		{"message", []string{"message[0].language", "en", "message[0].text", strings.Repeat("x", 1001)}, "at most 1000 characters, not 1001"},
		{"message", []string{"message[0].language", "en", "message[0].text", ""}, "needs a text"},
		{"message", []string{"message[0].language", "nonsense!", "message[0].text", "<b>x</b>"}, "Choose a language"},
		{"message", []string{"message[0].language", "German", "message[0].text", "a", "message[1].language", "de", "message[1].text", "b"}, "This language is listed twice."},
		{"message", []string{"message[0].language", "en", "message[0].text", "a", "ends", "at"}, "Enter when the message ends."},
		{"message", []string{"message[0].language", "en", "message[0].text", "a", "ends", "at", "until", "2020-01-01T00:00"}, "must be later than now"},
		{"message", nil, "Choose a language"},
		{"message-back", nil, "Visitors see no message."},
		{"revoke", []string{"ticket", "<b>x</b>"}, "Enter a ticket"},
		{"revoke", []string{"ticket", unknown, "reason", "revoked-bot"}, "This room has no such ticket."},
		{"restore", []string{"ticket", "<b>x</b>"}, "Enter a ticket"},
		{"restore", []string{"ticket", unknown}, "This room has no such ticket."},
		{"end", []string{"slug", "other"}, "to confirm that you mean this room"},
	} {
		a := s.Post(consoletest.Operator, "/console/rooms/sale/"+test.name, append(test.form, "confirmed", "1")...).Want(http.StatusBadRequest).Has(test.want)
		a.Lacks("<b>x</b>")
		s.Post(consoletest.Operator, "/console/rooms/sale/"+test.name, test.form...).Want(http.StatusBadRequest).Has(test.want).Lacks("data-question")
		if test.name == "revoke" || test.name == "restore" {
			a.Has(`aria-invalid="true"`)
		}
	}
	if s := r.Snapshot(); s.Size != 1 || s.Ended {
		t.Errorf("something was done: %+v", s)
	}
	s.Get(consoletest.Viewer, "/console/rooms/sale/ticket?id="+unknown).Want(http.StatusNotFound).Has("There is no such ticket")
	s.Get(consoletest.Viewer, "/console/rooms/sale/ticket?id=x").Want(http.StatusBadRequest).Has("must be a ticket")
	s.Get(consoletest.Viewer, "/console/rooms/sale/ticket").Want(http.StatusOK)
	joined := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{1})
	if _, err := r.Join(t.Context(), joined); err != nil {
		t.Fatal(err)
	}
	s.Get(consoletest.Viewer, "/console/rooms/sale/ticket?id="+joined.String()).Want(http.StatusOK).Lacks("Revoke the place")
	s.Get(consoletest.Operator, "/console/rooms/sale/ticket?id="+joined.String()).Want(http.StatusOK).Has("Revoke the place")
	s.Get(consoletest.Stranger, "/console/rooms/sale/ticket?id="+joined.String()).Want(http.StatusNotFound)
}

// TestRestoreProblems says why a place cannot be given back: never, or not now.
func TestRestoreProblems(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{
		Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(100 * time.Millisecond)}}, Seats: 3, Party: 3,
		Outflow: room.Outflow{PerMinute: 60_000},
	})
	if err := r.SetPull(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	join := func(secret byte, seats uint32) fairness.Ticket {
		ticket := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{secret})
		if _, err := r.JoinLane(t.Context(), ticket, "", seats); err != nil {
			t.Fatal(err)
		}
		for r.Snapshot().Counts.Assigned < r.Snapshot().Counts.Arrivals {
			time.Sleep(10 * time.Millisecond)
		}
		return ticket
	}
	first, second := join(1, 2), join(2, 2)
	revoke := func(ticket fairness.Ticket) {
		if err := r.Revoke(t.Context(), ticket, fairness.RevokedBot); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/console/rooms/sale/restore"
	refused := func(ticket fairness.Ticket, want string) {
		t.Helper()
		size := r.Snapshot().Size
		s.Post(consoletest.Operator, path, "ticket", ticket.String(), "confirmed", "1").Want(http.StatusBadRequest).Has(want, `value="`+ticket.String()+`"`)
		if got := r.Snapshot().Size; got != size {
			t.Errorf("%s: %d entries became %d", want, size, got)
		}
	}
	refused(first, "This visitor has the place")
	lookup := "/console/rooms/sale/ticket?id=" + first.String()
	s.Get(consoletest.Operator, lookup).Want(http.StatusOK).Lacks("Give the place back")
	if _, err := r.Pull(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	revoke(first)
	s.Get(consoletest.Operator, lookup).Want(http.StatusOK).Has("Give the place back", `action="`+path+`"`)
	s.Get(consoletest.Viewer, lookup).Want(http.StatusOK).Lacks("Give the place back")
	if err := r.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(first, "calls are paused. Resume the line first.")
	if err := r.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pull(t.Context(), 1); err != nil { // two of three seats
		t.Fatal(err)
	}
	refused(first, "fewer seats are left than the visitor joined for")
	revoke(second)
	s.Post(consoletest.Operator, path, "ticket", first.String()).Want(http.StatusOK).Has("Give this place back?", "place 1, called at once")
	s.Post(consoletest.Operator, path, "ticket", first.String(), "confirmed", "1").Want(http.StatusSeeOther)
	if st, _ := r.Standing(first); st.Status != fairness.StatusCalled {
		t.Errorf("restored: %+v", st)
	}
	revoke(first)
	refused(first, "given back before")
	s.Get(consoletest.Operator, lookup).Want(http.StatusOK).Has("That is possible only once").Lacks("Give the place back")
	third := join(3, 1)
	if err := r.Leave(t.Context(), third, [fairness.SecretSize]byte{3}); err != nil {
		t.Fatal(err)
	}
	refused(third, "This place was not revoked.")
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(second, "The room has ended.")
	s.Get(consoletest.Operator, "/console/rooms/sale/ticket?id="+second.String()).Want(http.StatusOK).Lacks("Give the place back")
}

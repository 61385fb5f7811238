package live_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
)

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// again returns the fields of the form that does the next part of a list.
func again(a consoletest.Answer) (fields []string) {
	for _, match := range hidden.FindAllStringSubmatch(a.Body, -1) {
		fields = append(fields, match[1], match[2])
	}
	return fields
}

// TestLists uploads a list: bad lines are named, the page says what the list would do, does it in parts, and undoes it with
// the same list.
func TestLists(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	var tickets []fairness.Ticket
	file := "Why,Ticket\n"
	for i := range 3 {
		tickets = append(tickets, fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{byte(i)}))
		if _, err := r.Join(t.Context(), tickets[i]); err != nil {
			t.Fatal(err)
		}
		file += fmt.Sprintf("\"bot, %d\",%s\n", i, tickets[i])
	}
	unknown := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{9})
	revoke, restore := "/console/rooms/sale/revoke-list", "/console/rooms/sale/restore-list"
	upload := func(path, text string, fields ...string) consoletest.Answer {
		t.Helper()
		fields = append([]string{"by", "tickets", "reason", "revoked-bot"}, fields...)
		return s.Upload(consoletest.Operator, path, []consoletest.File{{Field: "file", Content: text}}, fields...)
	}
	s.Get(consoletest.Operator, "/console/rooms/sale").Want(http.StatusOK).Has(`href="` + revoke + `"`)
	s.Get(consoletest.Operator, revoke).Want(http.StatusOK).Has("Check the list", "one of several places").Lacks("withdrawn")
	s.Get(consoletest.Operator, restore+"?since=7").Want(http.StatusOK).Has(`value="7"`)
	upload(revoke, "x\n"+tickets[0].String()+"\n<b>y</b>\n").Want(http.StatusBadRequest).Has("Line 1: &#34;x&#34; is no ticket", "Line 3:", "A ticket looks like cda3f665-387e-8031-a3d9-8534adbd7fa3.").Lacks("<b>y")
	upload(revoke, " \n").Want(http.StatusBadRequest).Has("Enter tickets, one a line, or choose a file.")
	upload(revoke, file+unknown.String()+","+unknown.String()).Want(http.StatusBadRequest).Has(unknown.String() + " has not joined this room")
	upload(revoke, file, "reason", "left").Want(http.StatusOK) // the first field counts
	s.Post(consoletest.Operator, revoke, "by", "tickets", "reason", "left", "list", tickets[0].String()).Want(http.StatusBadRequest).Has("Choose a reason.")
	s.Post(consoletest.Operator, revoke, "by", "all", "reason", "revoked").Want(http.StatusBadRequest).Has("Choose one.")
	s.Post(consoletest.Operator, revoke, "by", "tickets", "reason", "revoked-bot", "confirmed", "1", "packed", "AAAA").Want(http.StatusBadRequest).Has("The list is damaged.")

	checked := upload(revoke, file+"x,"+unknown.String(), "skip_unknown", "1").Want(http.StatusOK).Has("Revoke 3 places?", "a bot", "The unknown tickets have not joined")
	if size := r.Snapshot().Size; size != 4 {
		t.Fatalf("%d entries before the list is confirmed", size)
	}
	s.Do(consoletest.Viewer, http.MethodPost, revoke, consoletest.Form(again(checked)...)).Want(http.StatusForbidden)
	s.Post(consoletest.Stranger, revoke, "confirmed", "1", "by", "tickets").Want(http.StatusNotFound)
	s.Upload(consoletest.Operator, revoke, nil, again(checked)...).Want(http.StatusOK).Has("Revoked: 3 places", restore+"?since=4", "entry 4 of the transcript")
	for _, ticket := range tickets {
		if st, _ := r.Standing(ticket); st.Reason != fairness.RevokedBot {
			t.Errorf("%v: %+v", ticket, st)
		}
	}
	upload(revoke, file).Want(http.StatusOK).Has("Revoke 0 places?", "There is nothing to do.").Lacks(`name="packed"`)
	back := upload(restore, file, "since", "4").Want(http.StatusOK).Has("Give 3 places back?")
	s.Upload(consoletest.Operator, restore, nil, again(back)...).Want(http.StatusOK).Has("Given back: 3 places")
	if n := r.Snapshot().Counts.Revoked; n != 0 {
		t.Errorf("%d are still revoked", n)
	}
	s.Get(consoletest.Viewer, "/console/activity?object=sale").Want(http.StatusOK).Has("revoked a list of places", "gave a list of revoked places back")
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Get(consoletest.Operator, revoke).Want(http.StatusOK).Has("The room has ended.").Lacks("Check the list")
	s.Upload(consoletest.Operator, revoke, nil, again(checked)...).Want(http.StatusBadRequest).Has("The room has ended: its places")
}

// TestRestoreWaits: the page tries again to give places back whose visitors cannot be called yet, until all have theirs.
func TestRestoreWaits(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(time.Second)}}})
	isCalled := func(tickets ...fairness.Ticket) {
		t.Helper()
		for _, ticket := range tickets {
			for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				if st, ok := r.Standing(ticket); ok && st.Status == fairness.StatusCalled {
					break
				}
				if time.Now().After(limit) {
					t.Fatal("a visitor is not called")
				}
			}
		}
	}
	join := func(n byte) fairness.Ticket {
		t.Helper()
		ticket := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{n})
		if _, err := r.Join(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	one, other := join(1), join(2)
	isCalled(one, other)
	list := []string{"by", "tickets", "reason", "revoked-bot", "list", one.String() + "\n" + other.String()}
	const revoke, restore = "/console/rooms/sale/revoke-list", "/console/rooms/sale/restore-list"
	checked := s.Upload(consoletest.Operator, revoke, nil, list...).Want(http.StatusOK)
	s.Upload(consoletest.Operator, revoke, nil, again(checked)...).Want(http.StatusOK).Has("Revoked: 2 places")
	isCalled(join(3)) // the line has passed them
	if err := r.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := s.Upload(consoletest.Operator, restore, nil, list...).Want(http.StatusOK).Has("Give 2 places back?", "The line has passed 2")
	for _, delay := range []string{"5", "10", "20"} {
		page = s.Upload(consoletest.Operator, restore, nil, again(page)...).Want(http.StatusOK).Has("2 places cannot be given back yet",
			"Given back so far: 0 places.", "in "+delay+" seconds", `data-island="later" data-delay="`+delay+`"`, "Try now")
	}
	if err := r.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); !strings.Contains(page.Body, "Given back: 2 places"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal(page.Body)
		}
		page = s.Upload(consoletest.Operator, restore, nil, again(page)...).Want(http.StatusOK)
	}
	if !strings.Contains(page.Body, "The line had passed 2 of these places") {
		t.Error(page.Body)
	}
	isCalled(one, other)
}

// TestLongList revokes a list of more than one request may have: each form does a part, and the last one says the sum.
func TestLongList(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	joined := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{1})
	if _, err := r.Join(t.Context(), joined); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for range 25_000 {
		fmt.Fprintln(&list, fairness.NewTicket(r.Origin, [fairness.SecretSize]byte([]byte(rand.Text() + rand.Text())[:fairness.SecretSize])))
	}
	fmt.Fprintln(&list, joined)
	const path = "/console/rooms/sale/revoke-list"
	a := s.Upload(consoletest.Operator, path, []consoletest.File{{Field: "file", Content: list.String()}},
		"by", "tickets", "reason", "revoked-bot", "skip_unknown", "1").Want(http.StatusOK).Has("Revoke 1 place?", "25,000")
	for _, want := range []string{"10,000 of 25,001 lines are done", "20,000 of 25,001 lines are done", "Revoked: 1 place"} {
		a = s.Upload(consoletest.Operator, path, nil, again(a)...).Want(http.StatusOK).Has(want)
	}
	if st, _ := r.Standing(joined); st.Reason != fairness.RevokedBot {
		t.Errorf("the last line: %+v", st)
	}
}

// TestWithdrawn revokes those whose credentials were withdrawn, and all of a method.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	club := issuertest.Signed("club", 0)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}},
		Methods: []credential.Method{club.Method}, Lanes: []room.LaneRule{{Name: "members", Weight: 1, Needs: []string{"club"}}}})
	var shown []credential.Credential
	for account := range 3 {
		ticket := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{byte(account)})
		c := club.Show(credential.Subject{Room: r.Snapshot().Door.Entry, Lane: "members", Ticket: ticket}, account)
		if _, err := r.JoinLane(t.Context(), ticket, "members", 1, c); err != nil {
			t.Fatal(err)
		}
		shown = append(shown, c)
	}
	const path = "/console/rooms/sale/revoke-list"
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Visitors whose confirmation was withdrawn", "<option>club</option>")
	form := []string{"by", "nullifiers", "method", "club", "reason", "revoked-fraud", "list", fmt.Sprintf("%x\n%064x\n", shown[1].Nullifier, 5)}
	checked := s.Upload(consoletest.Operator, path, nil, form...).Want(http.StatusOK).Has("Revoke 1 place?", "No ticket of this room has shown the unknown nullifiers.")
	s.Upload(consoletest.Operator, path, nil, again(checked)...).Want(http.StatusOK).Has("Revoked: 1 place")
	s.Upload(consoletest.Operator, path, nil, "by", "nullifiers", "method", "club", "reason", "revoked-fraud", "list", "ABC").Want(http.StatusBadRequest).Has("is no nullifier")
	checked = s.Upload(consoletest.Operator, path, nil, "by", "method", "method", "club", "reason", "revoked").Want(http.StatusOK).Has("Revoke 2 places?")
	s.Upload(consoletest.Operator, path, nil, again(checked)...).Want(http.StatusOK).Has("Revoked: 2 places")
	if n := r.Snapshot().Counts.Revoked; n != 3 {
		t.Errorf("%d are revoked, want 3", n)
	}
}

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room"
)

// TestRecordsMissing: visitors of a room with missing records are asked to wait. Visitors of a room that was
// ended for that reason read its operator's statement, signed with the room's key.
func TestRecordsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, err := s.rooms.Create(t.Context(), room.Config{Slug: "sale"})
	if err != nil {
		t.Fatal(err)
	}
	with := func(want error) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if _, err := s.rooms.Get(t.Context(), "sale"); errors.Is(err, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the room is not %v", want)
			}
		}
	}
	if err := s.rooms.Logs.Hold(t.Context(), r.ID, pglog.Mark{Size: r.Snapshot().Size + 5}, "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	with(room.ErrRegressed)
	const browser = "Accept: text/html"
	s.do(http.MethodGet, "/r/sale", "", browser).errorPage(http.StatusServiceUnavailable, "missing")
	missing := s.do(http.MethodGet, "/r/sale/state", "").want(http.StatusServiceUnavailable)
	if missing.header.Get("Retry-After") == "" || !strings.Contains(missing.body, "#records-missing") || strings.Contains(missing.body, "statement") {
		t.Errorf("%v %s", missing.header, missing.body)
	}
	if list := s.do(http.MethodGet, "/v1/rooms", "").want(http.StatusOK); !strings.Contains(list.body, `"phase":"stopped"`) {
		t.Errorf("the list of rooms is %s", list.body)
	}

	const words = "The <b>database</b> was lost.\n\nAll tickets are refunded."
	recovery, err := s.rooms.Recover(t.Context(), "sale")
	if err == nil {
		_, err = recovery.End(t.Context(), words)
	}
	if err != nil {
		t.Fatal(err)
	}
	with(room.ErrAbandoned)
	head := fmt.Sprintf("proofline.dev/ended-with-loss\n%s\n%d %v\n%d unknown\n", r.Origin, recovery.Has.Size, recovery.Has.Root, recovery.Has.Size+5)
	lost := s.do(http.MethodGet, "/r/sale/state", "").want(http.StatusGone)
	var said struct{ Statement string }
	if err := json.Unmarshal([]byte(lost.body), &said); err != nil {
		t.Fatal(err)
	}
	key, err := note.NewVerifier(r.VKey)
	if err != nil {
		t.Fatal(err)
	}
	if signed, err := note.Open([]byte(said.Statement), note.VerifierList(key)); err != nil || signed.Text != head+words+"\n" {
		t.Errorf("%v: %s", err, said.Statement)
	}
	for language, heading := range map[string]string{"en": "What the organizer says", "de": "Was der Veranstalter sagt"} {
		page := s.do(http.MethodGet, "/r/sale", "", browser, "Accept-Language: "+language)
		page.errorPage(http.StatusGone, "lost")
		for _, want := range []string{heading, `<p class="message" dir="auto">` + html.EscapeString(words), html.EscapeString(said.Statement)} {
			if !strings.Contains(strings.ReplaceAll(page.body, "&#43;", "+"), strings.ReplaceAll(want, "&#43;", "+")) {
				t.Errorf("the page lacks %q:\n%s", want, page.body)
			}
		}
	}
}

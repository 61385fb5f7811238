package live_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
)

const messagePath = "/console/rooms/sale/message"

// TestMessageControl shows a message in two languages until a given time, changes its languages without
// scripts, and removes it.
func TestMessageControl(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale", Settings: room.Settings{Brand: branding.Brand{Languages: []string{"de", "en"}}}})
	s.Get(consoletest.Operator, messagePath).Want(http.StatusOK).Has("Visitors see no message now.", `value="German"`, "Until you remove it", `<option value="Dutch">`)
	until := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	form := []string{
		"message[0].language", "German", "message[0].text", "Wir sind sp\u00e4t.", "message[1].language", "nl", "message[1].text", "We zijn laat.\r\n<b>Sorry</b>.",
		"ends", "at", "until", until.Format("2006-01-02T15:04:05"),
	}
	s.Post(consoletest.Operator, messagePath, form...).Want(http.StatusOK).Has("German, main language", "<dt>Dutch</dt>", "&lt;b&gt;Sorry", "Shown until", until.Format(time.RFC3339)).Lacks("<b>Sorry")
	s.Post(consoletest.Operator, messagePath, append(form, "confirmed", "1")...).RedirectsTo("/console/rooms/sale?done=message-shown")
	want := room.Message{Default: "de", Texts: map[string]string{"de": "Wir sind sp\u00e4t.", "nl": "We zijn laat.\n<b>Sorry</b>."}, Until: &until}
	if diff := cmp.Diff(&want, r.Snapshot().Message(r.Now())); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	live := s.Get(consoletest.Operator, messagePath).Want(http.StatusOK).Has("Visitors see now, until", until.Format(time.RFC3339), "<dt>Dutch</dt>", `value="at" selected`, "Remove it", `id="f-message[1].text"`)
	live.Lacks("message[2]")
	s.Post(consoletest.Operator, messagePath, form...).Want(http.StatusBadRequest).Has("Visitors already see this message.")
	// Rows are changed before the console asks.
	s.Post(consoletest.Operator, messagePath, append(form, "do", "add-language")...).Want(http.StatusOK).Has(`id="f-message[2].text"`, "We zijn laat.").Lacks("data-question")
	s.Post(consoletest.Operator, messagePath, append(form, "do", "remove-language:1")...).Want(http.StatusOK).Has("Wir sind").Lacks(`id="f-message[1].text"`, "data-question")
	s.Post(consoletest.Operator, messagePath, append(form, "do", "remove-language:0")...).Want(http.StatusBadRequest) // the default stays
	// A problem is shown next to its row, and the input is kept.
	s.Post(consoletest.Operator, messagePath, "message[0].language", "de", "message[0].text", "Bald", "message[1].language", "fr", "message[1].text", "", "ends", "1h").
		Want(http.StatusBadRequest).Has(`id="e-message[1].text"`, "needs a text", `value="1h" selected`)
	s.Post(consoletest.Operator, messagePath, "message[0].language", "de", "message[0].text", "Bald", "ends", "1h").Want(http.StatusOK).Has("1 h from now, then it disappears", "<dt>Dutch</dt>")
	s.Post(consoletest.Operator, messagePath+"-back", "confirmed", "1").RedirectsTo("/console/rooms/sale?done=message-back")
	if m := r.Snapshot().Message(r.Now()); m != nil {
		t.Errorf("visitors see %+v", m)
	}
	s.Get(consoletest.Viewer, "/console/activity?object=sale").Want(http.StatusOK).Has("message: German: Wir sind sp\u00e4t.; Dutch: We zijn laat.", "message removed")
}

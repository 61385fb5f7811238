package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/room"
)

const messagePath = "/console/rooms/sale/message"

// TestMessageControl shows a message in two languages until a moment, changes
// its languages without scripts, and takes it back.
func TestMessageControl(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Title: "Sale", Settings: room.Settings{Brand: room.Brand{Languages: []string{"de", "en"}}}})
	s.get(operator, messagePath).want(http.StatusOK).has("Visitors see no message now.", `value="German"`, "Until you take it back", `<option value="Dutch">`)
	until := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	form := []string{
		"message[0].language", "German", "message[0].text", "Wir sind sp\u00e4t.", "message[1].language", "nl", "message[1].text", "We zijn laat.\r\n<b>Sorry</b>.",
		"ends", "at", "until", until.Format("2006-01-02T15:04:05"),
	}
	s.post(operator, messagePath, form...).want(http.StatusOK).has("German, main language", "<dt>Dutch</dt>", "&lt;b&gt;Sorry", "Shown until", until.Format(time.RFC3339)).lacks("<b>Sorry")
	s.post(operator, messagePath, append(form, "confirmed", "1")...).leadsTo("/console/rooms/sale?done=message-shown")
	want := room.Message{Default: "de", Texts: map[string]string{"de": "Wir sind sp\u00e4t.", "nl": "We zijn laat.\n<b>Sorry</b>."}, Until: &until}
	if diff := cmp.Diff(&want, r.Snapshot().Message(r.Now())); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	live := s.get(operator, messagePath).want(http.StatusOK).has("Visitors see now, until", until.Format(time.RFC3339), "<dt>Dutch</dt>", `value="at" selected`, "Take it back", `id="f-message[1].text"`)
	live.lacks("message[2]")
	s.post(operator, messagePath, form...).want(http.StatusBadRequest).has("Visitors see this message already.")
	// Rows are changed before anything is asked.
	s.post(operator, messagePath, append(form, "do", "add-language")...).want(http.StatusOK).has(`id="f-message[2].text"`, "We zijn laat.").lacks("data-question")
	s.post(operator, messagePath, append(form, "do", "remove-language:1")...).want(http.StatusOK).has("Wir sind").lacks(`id="f-message[1].text"`, "data-question")
	s.post(operator, messagePath, append(form, "do", "remove-language:0")...).want(http.StatusBadRequest) // the default stays
	// A problem stands at its row, and what was typed stays.
	s.post(operator, messagePath, "message[0].language", "de", "message[0].text", "Bald", "message[1].language", "fr", "message[1].text", "", "ends", "1h").
		want(http.StatusBadRequest).has(`id="e-message[1].text"`, "needs a text", `value="1h" selected`)
	s.post(operator, messagePath, "message[0].language", "de", "message[0].text", "Bald", "ends", "1h").want(http.StatusOK).has("1 h from now, then it vanishes by itself", "<dt>Dutch</dt>")
	s.post(operator, messagePath+"-back", "confirmed", "1").leadsTo("/console/rooms/sale?done=message-back")
	if m := r.Snapshot().Message(r.Now()); m != nil {
		t.Errorf("visitors see %+v", m)
	}
	s.get(viewer, "/console/acts?object=sale").want(http.StatusOK).has("message: German: Wir sind sp\u00e4t.; Dutch: We zijn laat.", "message taken away")
}

// TestMessageLanguages reads names and tags, and writes names.
func TestMessageLanguages(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"english": "en", "German": "de", "pt-br": "pt-BR", "Brazilian": "Brazilian", "Simplified Chinese": "zh-Hans", "EN": "en", "Deutsch": "de", "fran\u00e7ais": "fr", "": ""} {
		if got := languageTag(typed); got != want {
			t.Errorf("%q is %q, want %q", typed, got, want)
		}
	}
	seen := map[string]bool{}
	for _, tag := range messageLanguages {
		name := languageName(tag)
		if seen[name] || name == tag || languageTag(name) != tag {
			t.Errorf("%s is called %s, which is %s", tag, name, languageTag(name))
		}
		seen[name] = true
	}
}

// TestMessageForm reads no more rows than a message may have, and one more for
// the problem.
func TestMessageForm(t *testing.T) {
	t.Parallel()
	sent := url.Values{}
	for i := range 100 {
		sent.Set(rowField(i, "language"), "en")
		sent.Set(rowField(i, "text"), strings.Repeat("x", i))
	}
	if f := readMessageForm(sent); len(f.Rows) != room.MaxMessageLanguages+1 {
		t.Errorf("%d rows", len(f.Rows))
	}
}

package people

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/webhook"
)

// TestVerbWords checks that every verb of the activity log has words.
func TestVerbWords(t *testing.T) {
	t.Parallel()
	verb := regexp.MustCompile(`(?:[rR]ecord|recordEverywhere|factorChanged|\.Do|\.update|\.control)\([^"\n]*"([a-z]+(?:[.-][a-z-]+)+)"`)
	found := 0
	for _, pattern := range []string{"../../../console/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range verb.FindAllSubmatch(text, -1) {
				found++
				if verbWords[string(match[1])] == "" {
					t.Errorf("%s: no words for %s", file, match[1])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d verbs are found", found)
	}
}

func TestAboutRoom(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb, object string
		want         bool
	}{
		{"room.create", "sale", true},
		{"room.create", "", false},
		{"rehearsal.start", "sale", true},
		{"rehearsal.start", "01a1ffe7-daaa-7e3b-9bcc-5679d9614d4c", false},
		{"roommate.create", "sale", false},
		{"draft.create", "01a1ffe7-daaa-7e3b-9bcc-5679d9614d4c", false},
	} {
		if got := isAboutRoom(activity.Entry{Verb: test.verb, Object: test.object}); got != test.want {
			t.Errorf("%s of %q: %t, want %t", test.verb, test.object, got, test.want)
		}
	}
}

// TestDetailWords checks the words for details.
func TestDetailWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		value any
		want  string
	}{
		{"per_minute", []any{60.0, 120.0}, "per minute: 60 to 120"},
		{"windows", []any{map[string]any{"from": "2030-05-01T12:00:00Z", "length": "30s"}, map[string]any{"from": "2030-05-01T13:00:00Z", "length": "1m0s"}}, "windows: 30 s each from 1 May 2030, 12:00 UTC, 1 min each from 1 May 2030, 13:00 UTC"},
		{"closes", "2030-05-01T18:00:00Z", "closes: 1 May 2030, 18:00 UTC"},
		{"windows", []any{"odd"}, "windows: "},
		{"size", 42.0, "after entry 41 of the transcript"},
		{"pull", true, "pull"},
		{"pull", false, ""},
		{"message", nil, "message removed"},
		{"message", map[string]any{"default": "en", "texts": map[string]any{"de": "Wir sind spät.", "en": "Sorry."}, "until": "2030-05-01T12:00:00Z"}, "message: English: Sorry.; German: Wir sind spät.; until 1 May 2030, 12:00 UTC"},
		{"targets", []any{"https://a.example"}, `targets: ["https://a.example"]`},
	} {
		if got := detailWords(test.name, test.value); got != test.want {
			t.Errorf("%s of %v: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

// TestAlertAndEventWords checks that every alert and event is described.
func TestAlertAndEventWords(t *testing.T) {
	t.Parallel()
	for _, k := range webhook.AlertKinds() {
		if alertWords[k] == "" {
			t.Errorf("no words for %s", k)
		}
	}
	for _, k := range webhook.EventKinds() {
		if eventWords[k] == "" {
			t.Errorf("no words for %s", k)
		}
	}
}

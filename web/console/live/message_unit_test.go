package live

import (
	"net/url"
	"strings"
	"testing"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// TestMessageLanguages parses names and tags, and formats names.
func TestMessageLanguages(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"english": "en", "German": "de", "pt-br": "pt-BR", "Brazilian": "Brazilian", "Simplified Chinese": "zh-Hans", "EN": "en", "Deutsch": "de", "fran\u00e7ais": "fr", "": ""} {
		if got := languageTag(typed); got != want {
			t.Errorf("%q is %q, want %q", typed, got, want)
		}
	}
	seen := map[string]bool{}
	for _, tag := range messageLanguages {
		name := format.Language(tag)
		if seen[name] || name == tag || languageTag(name) != tag {
			t.Errorf("%s is called %s, which is %s", tag, name, languageTag(name))
		}
		seen[name] = true
	}
}

// TestMessageForm reads no more rows than a message may have, and one more to report the problem.
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

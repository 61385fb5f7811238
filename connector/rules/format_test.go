package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
)

// TestShownRules reads the rules that documents show, and those parts of rules
// that they show within {"version": 1, "rooms": {...}}.
func TestShownRules(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]int{"FORMAT.md": 1, "../README.md": 2} {
		found := 0
		for _, block := range doctest.Blocks(t, document, "json") {
			switch {
			case strings.HasPrefix(block, `"sale": {`):
				block = `{"version": 1, "rooms": {` + block + `}}`
			case !strings.Contains(block, `"version": 1,`):
				continue
			}
			found++
			site, err := Parse([]byte(block))
			if err != nil {
				t.Errorf("%s: %v\n%s", document, err, block)
				continue
			}
			if room := site.Rooms["sale"]; room.URL != "https://queue.example.com/r/sale" || room.Failure != "fail-open-after 5m" {
				t.Errorf("%s: room %+v", document, room)
			}
		}
		if found != want {
			t.Errorf("%s has %d documents, want %d", document, found, want)
		}
	}
}

// TestFormatMembers checks that each of FORMAT.md's tables names all members that it describes.
func TestFormatMembers(t *testing.T) {
	t.Parallel()
	spans := doctest.Spans(doctest.Read(t, "FORMAT.md"))
	for _, name := range []string{string(Always), string(Scheduled), string(SafetyNet), string(Off), string(Closed), string(RetryPage), "page", string(BindNone), string(BindNetwork)} {
		if !slices.Contains(spans, name) {
			t.Errorf("FORMAT.md does not have %s", name)
		}
	}
}

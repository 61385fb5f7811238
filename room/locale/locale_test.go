package locale_test

import (
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/proofline/proofline/room/locale"
)

// TestNames compares the names with those of the Unicode CLDR.
func TestNames(t *testing.T) {
	t.Parallel()
	names := display.English.Languages()
	for _, tag := range locale.Tags() {
		if got, want := locale.Name(tag), names.Name(language.MustParse(tag)); got != want {
			t.Errorf("%s is %q, want %q", tag, got, want)
		}
	}
	if got := locale.Name("xx"); got != "" {
		t.Errorf("xx is %q", got)
	}
}

func TestTagsAreACopy(t *testing.T) {
	t.Parallel()
	locale.Tags()[0] = "xx"
	if got := locale.Tags()[0]; got != "en" {
		t.Errorf("the fallback is %s", got)
	}
}

package format

import (
	"strings"
	"testing"
	"time"
)

// TestReadLength reads lengths as people write them, and again as they are shown.
func TestReadLength(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"100 ms": 100 * time.Millisecond, "1 min": time.Minute, "1 min 30 s": 90 * time.Second, "1m30s": 90 * time.Second, "2 Hours": 2 * time.Hour,
		"1.5 h": 90 * time.Minute, " 31 d ": 31 * 24 * time.Hour, "3 secs": 3 * time.Second, "0 s": 0,
	} {
		if got, ok := ReadLength(text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "90", "s", "1 parsec", "-1 s", "1 s x", "1..5 h", "9999999999 h", "1 \u212Ain"} {
		if got, ok := ReadLength(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzReadLength(f *testing.F) {
	f.Add("1 min 30 s")
	f.Add("1.5h 3ms")
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := ReadLength(text)
		if !ok {
			return
		}
		if again, ok := ReadLength(Duration(d)); !ok || again != d {
			t.Errorf("%q is %v, shown %q, read %v", text, d, Duration(d), again)
		}
	})
}

// TestSlugOf proposes what the script proposes (web/ui/test/console/lengths.test.ts).
func TestSlugOf(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Winter sale 2026": "winter-sale-2026", "  F\u00fcr alle: Stra\u00dfe & Caf\u00e9!  ": "fur-alle-strasse-cafe",
		"\u6771\u4eac": "", "---": "", strings.Repeat("a", 62) + " b": strings.Repeat("a", 62),
	} {
		if got := Slug(title); got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
}

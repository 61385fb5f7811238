package connector

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestHoldLanguages shows the page to visitors of all languages.
func TestHoldLanguages(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	s.failed()
	seen := map[string]bool{}
	for accept, want := range map[string]string{
		"": "en", "*": "en", "xx": "en", "en": "en", "de-AT,de;q=0.9,en;q=0.8": "de", "es": "es", "FR-ca": "fr", "it;q=0.5": "it", "pt-BR": "pt", "ja": "ja", "ar-EG": "ar",
		"xx,ja;q=0.2,de;q=0.3": "de", "de;q=0": "en", "de;q=2,fr;q=0.1": "fr", "de;q=x": "de", "de , fr": "de", ";;,;q=1,-": "en", "german": "en",
	} {
		r := s.get("/tickets", "Accept-Language: "+accept)
		body, dir := bodyOf(t, r), map[bool]string{true: "rtl", false: "ltr"}[want == "ar"]
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Content-Language") != want || !strings.Contains(body, `<html lang="`+want+`" dir="`+dir+`">`) || strings.ContainsAny(strings.Replace(body, "}</style>", "", 1), "}") {
			t.Errorf("%q: status %d in %q, want %q\n%s", accept, r.StatusCode, r.Header.Get("Content-Language"), want, body)
		}
		seen[want] = true
	}
	if len(seen) != len(holdPages) {
		t.Errorf("%d languages of %d were tried", len(seen), len(holdPages))
	}
}

// TestHoldPages checks what stands in the texts: no two languages say the
// same, and nothing in them is markup.
func TestHoldPages(t *testing.T) {
	t.Parallel()
	var said []string
	for _, p := range holdPages {
		for _, m := range regexp.MustCompile(`<(?:h1|p)>(.*)</`).FindAllStringSubmatch(p.html, -1) {
			if strings.ContainsAny(m[1], `<>&"{}`) || len(m[1]) < 8 || slices.Contains(said, m[0]) && strings.HasPrefix(m[0], "<p>") {
				t.Errorf("%s says %q", p.lang, m[1])
			}
			said = append(said, m[0])
		}
	}
	if len(said) != 3*len(holdPages) {
		t.Errorf("%d texts for %d languages", len(said), len(holdPages))
	}
}

func FuzzHoldFor(f *testing.F) {
	f.Add("de-AT,de;q=0.9,en;q=0.8")
	f.Add(";q=NaN,ja;q=-1,*")
	f.Fuzz(func(t *testing.T, accept string) {
		if p := holdFor([]string{accept}); p.lang == "" || !strings.Contains(p.html, `content="{wait}"`) {
			t.Errorf("%q gives page %q", accept, p.lang)
		}
	})
}

package connector

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/room/locale"
)

// styles matches the styles of a page, which contain braces.
var styles = regexp.MustCompile(`<style>[^<]*</style>`)

// TestRetryPageLanguages tests the retry page in all languages.
func TestRetryPageLanguages(t *testing.T) {
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
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Content-Language") != want ||
			!strings.Contains(body, `<html lang="`+want+`" dir="`+dir+`">`) ||
			strings.ContainsAny(styles.ReplaceAllString(body, ""), "{}") {
			t.Errorf("%q: status %d in %q, want %q\n%s", accept, r.StatusCode, r.Header.Get("Content-Language"), want, body)
		}
		seen[want] = true
	}
	if len(seen) != len(pages["unavailable"]) {
		t.Errorf("%d languages of %d were tried", len(seen), len(pages["unavailable"]))
	}
}

// TestPages tests that every page has all languages, no two languages have the same text,
// and no text contains markup.
func TestPages(t *testing.T) {
	t.Parallel()
	paragraphs := map[string]int{"unavailable": 2, "closed": 1, "blocked": 0, "malformed": 0, "host": 0, "bind": 1}
	for why, list := range pages {
		var said, langs []string
		for _, p := range list {
			langs = append(langs, p.lang)
			if n, ok := paragraphs[why]; !ok || strings.Count(p.html, "<h1>") != 1 || strings.Count(p.html, "<p>") != n ||
				strings.Contains(p.html, "refresh") != (n == 2) {
				t.Errorf("%s in %s: %s", why, p.lang, p.html)
			}
			for _, m := range regexp.MustCompile(`<(?:h1|p)>(.*)</`).FindAllStringSubmatch(p.html, -1) {
				if strings.ContainsAny(m[1], `<>&"{}`) || len(m[1]) < 8 || slices.Contains(said, m[0]) &&
					(why != "unavailable" && why != "bind" || strings.HasPrefix(m[0], "<p>")) {
					t.Errorf("%s in %s says %q", why, p.lang, m[1])
				}
				said = append(said, m[0])
			}
		}
		if want := locale.Tags(); !slices.Equal(langs, want) {
			t.Errorf("%s is there in %q, want %q", why, langs, want)
		}
	}
	if len(pages) != len(paragraphs) {
		t.Errorf("%d pages, want %d", len(pages), len(paragraphs))
	}
}

// TestRefusals tests that visitors get a page and scripts get JSON, both without anything
// from the request.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newShop(t, `,"mode":"closed"`, func(o *Options) { o.Site.Hosts = []string{"shop.example.com"} })
	room := `,"room":"` + s.queue.url() + `"`
	for _, c := range []struct {
		target, host string
		status       int
		title, body  string
	}{
		{"/tickets?proofline_pass=evil", "shop.example.com", 403, "Zurzeit geschlossen", `{"error":"closed"` + room + `}`},
		{"/secret?x=evil", "shop.example.com", 403, "Diese Seite kann nicht ge\u00f6ffnet werden.", `{"error":"blocked"}`},
		{"/tickets%00evil", "shop.example.com", 400, "Diese Adresse kann nicht gelesen werden.", `{"error":"malformed"}`},
		{"/tickets", "evil.example.net", 421, "Diese Adresse geh\u00f6rt nicht zu dieser Website.", `{"error":"host"}`},
	} {
		for _, r := range []*http.Response{
			s.get(c.target, "Host: "+c.host, "Accept-Language: de"),
			s.send("POST", c.target, "Host: "+c.host, "Accept-Language: de", "Sec-Fetch-Mode: navigate"),
		} {
			body := bodyOf(t, r)
			if r.StatusCode != c.status || r.Header.Get("Content-Language") != "de" ||
				!strings.Contains(body, "<h1>"+c.title+"</h1>") || strings.Contains(body, "evil") ||
				strings.Contains(body, s.queue.url()) {
				t.Errorf("%s at %s: status %d, %v\n%s", c.target, c.host, r.StatusCode, r.Header, body)
			}
			if !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") ||
				r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Retry-After") != "" {
				t.Errorf("%s at %s: %v", c.target, c.host, r.Header)
			}
		}
		r := s.send("GET", c.target, "Host: "+c.host, "Sec-Fetch-Mode: cors")
		if body := bodyOf(t, r); r.StatusCode != c.status || body != c.body+"\n" || r.Header.Get(QueueHeader) != "" {
			t.Errorf("%s at %s by a script: status %d, %v\n%s", c.target, c.host, r.StatusCode, r.Header, body)
		}
	}
	if n := s.Stats(); n.Blocked != 12 || n.Queued != 0 || n.Refused != 0 || len(s.got) > 0 {
		t.Errorf("counts %+v, and the site saw %d", n, len(s.got))
	}
}

func FuzzPageFor(f *testing.F) {
	f.Add("de-AT,de;q=0.9,en;q=0.8")
	f.Add(";q=NaN,ja;q=-1,*")
	f.Fuzz(func(t *testing.T, accept string) {
		if p := pageFor("unavailable", []string{accept}); p.lang == "" || !strings.Contains(p.html, `content="{wait}"`) {
			t.Errorf("%q gives page %q", accept, p.lang)
		}
	})
}

package brand_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/style"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
)

// TestLanguages checks that pages offer the room's languages, in its order.
func TestLanguages(t *testing.T) {
	t.Parallel()
	all := branding.Brand{Languages: branding.Languages}
	if diff := cmp.Diff(page.Languages(), brand.Languages(&all)); diff != "" {
		t.Error(diff)
	}
	if got := brand.Languages(&branding.Brand{}); got != nil {
		t.Error(got)
	}
}

// TestLooks checks that every setting reaches the style sheet and is covered by HasLooks.
func TestLooks(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]branding.Brand{
		"--accent:#ff0000":      {Scheme: branding.Scheme{Color: "#ff0000"}},
		"--page:#ffeeff":        {Scheme: branding.Scheme{Background: "#ffeeff"}},
		"{:root{--page:#121417": {Dark: branding.Scheme{Color: "#ff0000"}},
		"{:root{--page:#001122": {Dark: branding.Scheme{Background: "#001122"}},
		"ui-monospace":          {Font: "mono"},
		"--round:0":             {Corners: "square"},
		"body h2{gap: 0}":       {CSS: "h2{gap:0}"},
	} {
		css, err := brand.Looks(&b).CSS()
		if err != nil || !brand.HasLooks(&b) || !strings.Contains(string(css), want) {
			t.Errorf("%+v: %v, want %s: %s", b, err, want, css)
		}
	}
	if b := (branding.Brand{Languages: []string{"de"}}); brand.HasLooks(&b) {
		t.Error("HasLooks reports true for languages")
	}
	b := branding.Brand{CSS: "h2{position:fixed}"}
	if css, err := brand.Looks(&b).CSS(); err != nil || strings.Contains(string(css), "fixed") {
		t.Errorf("CSS that is not allowed: %v %s", err, css)
	}
	for _, font := range branding.Fonts[1:] {
		if css, _ := (page.Brand{Font: font}).CSS(); !strings.Contains(string(css), "font-family") {
			t.Errorf("no font %s", font)
		}
	}
	if !slices.Contains(branding.Corners, "square") {
		t.Error("no square corners")
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	b := branding.Brand{Texts: map[string]branding.Texts{
		"de": {Headline: "a", Intro: "b", Help: "c", HelpURL: "https://example.com/1", Footer: "d", PrivacyURL: "https://example.com/2", ImprintURL: "https://example.com/3"},
		"en": {Headline: "A"},
	}, Languages: []string{"de", "en"}}
	in := func(l page.Lang, words string) page.Text { return page.Text{Words: words, Lang: l} }
	want := page.Texts{
		Headline: in("en", "A"), Intro: in("de", "b"), Help: in("de", "c"), Footer: in("de", "d"),
		HelpURL: "https://example.com/1", PrivacyURL: "https://example.com/2", ImprintURL: "https://example.com/3",
	}
	if diff := cmp.Diff(want, brand.Texts(&b, "en")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(page.Texts{}, brand.Texts(&branding.Brand{}, "en")); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkLooks parses custom CSS of the maximum length.
func BenchmarkLooks(b *testing.B) {
	rule := "main > section h2:hover, .lead {margin: 0 0.5rem; background: linear-gradient(#ffffff, #eeeeee); color: #222222}\n"
	longest := branding.Brand{CSS: strings.Repeat(rule, style.MaxSource/len(rule))}
	for b.Loop() {
		if css, err := brand.Looks(&longest).CSS(); err != nil || len(css) < 1000 {
			b.Fatal(err)
		}
	}
}

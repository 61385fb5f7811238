package branding

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func logoOf(url string) Brand { return Brand{Scheme: Scheme{Logo: url}} }

func TestBrand(t *testing.T) {
	t.Parallel()
	png, jpeg, webp := pngOf(3, 2), jpegOf(3, 2), webpOf(3, 2)
	texts := func(of Texts) Brand { return Brand{Texts: map[string]Texts{"de": of}} }
	for _, c := range []struct {
		brand  Brand
		fields string
	}{
		{Brand{}, ""},
		{Brand{Scheme: Scheme{dataURL("image/png", png), "#1A2b3c", "#ffffff"}}, ""},
		{logoOf(dataURL("image/jpeg", jpeg)), ""},
		{logoOf(dataURL("image/webp", webp)), ""},
		{logoOf(dataURL("image/png", strings.Repeat("x", 4*maxLogo))), "brand.logo"},
		{logoOf(dataURL("image/png", jpeg)), "brand.logo"},
		{logoOf(dataURL("image/png", "<svg xmlns='http://www.w3.org/2000/svg'/>")), "brand.logo"},
		{logoOf(dataURL("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>")), "brand.logo"},
		{logoOf(dataURL("text/html", png)), "brand.logo"},
		{logoOf(dataURL("image/png;x=y", png)), "brand.logo"},
		{logoOf(dataURL("image/png", "")), "brand.logo"},
		{logoOf("data:image/png;base64,*"), "brand.logo"},
		{logoOf(dataURL("image/png", png) + "\n"), "brand.logo"},
		{logoOf("https://example.com/logo.png"), "brand.logo"},
		{Brand{Scheme: Scheme{"x", "red", "#12345"}}, "brand.logo brand.color brand.background"},
		{Brand{Dark: Scheme{"x", "red", "#12345"}}, "brand.dark.logo brand.dark.color brand.dark.background"},
		{Brand{Scheme: Scheme{Color: "#123456;}body{display:none"}}, "brand.color"},
		{Brand{Scheme: Scheme{Color: "#123456\n"}}, "brand.color"},
		{Brand{Scheme: Scheme{Background: "url(https://example.org)"}}, "brand.background"},
		{Brand{Font: "serif", Corners: "square", Languages: []string{"de", "en"}, CSS: "h2{gap:0}"}, ""},
		{Brand{Font: "Comic Sans", Corners: "pointed"}, "brand.font brand.corners"},
		{Brand{Languages: []string{"de", "xx"}}, "brand.languages"},
		{Brand{Languages: []string{"de", "en", "de"}}, "brand.languages"},
		{Brand{CSS: "h1{display:none}"}, "brand.css"},
		{Brand{Texts: map[string]Texts{"xx": {}, "de-AT": {}}}, "brand.texts.de-AT brand.texts.xx"},
		{texts(Texts{Headline: strings.Repeat("\u00e4", maxHeadline), Intro: strings.Repeat("x", maxIntro), Help: strings.Repeat("x", maxWords), Footer: "<b>"}), ""},
		{texts(Texts{Headline: strings.Repeat("x", maxHeadline+1)}), "brand.texts.de.headline"},
		{texts(Texts{Intro: strings.Repeat("x", maxIntro+1)}), "brand.texts.de.intro"},
		{texts(Texts{Help: strings.Repeat("x", maxWords+1)}), "brand.texts.de.help"},
		{texts(Texts{Footer: "\x00"}), "brand.texts.de.footer"},
		{texts(Texts{HelpURL: "http://example.com", PrivacyURL: "x", ImprintURL: "/x"}), "brand.texts.de.help_url brand.texts.de.privacy_url brand.texts.de.imprint_url"},
	} {
		var fields []string
		for _, p := range c.brand.Problems() {
			fields = append(fields, p.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%.80q: problems with %q, want %q", fmt.Sprint(c.brand), got, c.fields)
		}
	}
	if mediaType, image, ok := logoOf(dataURL("image/webp", webp)).Image(); !ok || mediaType != "image/webp" || string(image) != webp {
		t.Errorf("image %s %q %t", mediaType, image, ok)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]bool{
		"https://example.com":                             true,
		"https://example.com:8443/privacy?a=b#c":          true,
		"mailto:help@example.com":                         true,
		"http://example.com":                              false,
		"https://user@example.com":                        false,
		"https://":                                        false,
		"https:example.com":                               false,
		`https://example.com\@example.org`:                false,
		"https://example.com/a b":                         false,
		"javascript:alert(1)":                             false,
		"JAVASCRIPT:alert(1)":                             false,
		" javascript:alert(1)":                            false,
		"data:text/html,x":                                false,
		"mailto:":                                         false,
		"mailto:help@example.com?bcc=x@example.org":       false,
		"mailto:a@example.com,b@example.com":              false,
		"mailto:help@example.com\n":                       false,
		"//example.com":                                   false,
		"tel:123":                                         false,
		"https://example.com/" + strings.Repeat("x", 2e3): false,
	} {
		if got := isLink(link); got != want {
			t.Errorf("%q is a link: %t", link, got)
		}
	}
}

// TestStored checks that stored logos are clean.
func TestStored(t *testing.T) {
	t.Parallel()
	plain := pngOf(2, 2)
	dirty := dataURL("image/png", withChunk(plain, pngChunk("tEXt", secret)))
	got := Brand{Scheme: Scheme{Logo: dirty}, Dark: Scheme{Logo: dirty}, CSS: "/* x */ h2{GAP:0}"}.Stored()
	want := Brand{Scheme: Scheme{Logo: dataURL("image/png", plain)}, Dark: Scheme{Logo: dataURL("image/png", plain)}, CSS: "h2 {\n  gap: 0;\n}\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestText looks up texts in a visitor's language, and in the room's.
func TestText(t *testing.T) {
	t.Parallel()
	b := Brand{Texts: map[string]Texts{"de": {Headline: "Hallo", Footer: "Ende"}, "en": {Headline: "Hello", Intro: "Come in"}}}
	headline := func(t Texts) string { return t.Headline }
	intro := func(t Texts) string { return t.Intro }
	footer := func(t Texts) string { return t.Footer }
	for _, c := range []struct {
		languages []string
		lang      string
		of        func(Texts) string
		text, in  string
	}{
		{nil, "de", headline, "Hallo", "de"},
		{nil, "de", intro, "Come in", "en"},
		{nil, "fr", headline, "Hello", "en"},
		{nil, "fr", footer, "", ""},
		{[]string{"de", "fr"}, "fr", headline, "Hallo", "de"},
		{[]string{"de", "fr"}, "fr", footer, "Ende", "de"},
		{[]string{"de", "fr"}, "fr", intro, "", ""},
	} {
		b.Languages = c.languages
		if text, in := b.Text(c.lang, c.of); text != c.text || in != c.in {
			t.Errorf("%v in %s: %q in %q, want %q in %q", c.languages, c.lang, text, in, c.text, c.in)
		}
	}
}

func TestBrandIsZero(t *testing.T) {
	t.Parallel()
	type settings struct {
		Brand Brand `json:"brand,omitzero"`
	}
	const nothing = "{}"
	for _, b := range []Brand{
		{Scheme: Scheme{Color: "x"}}, {Dark: Scheme{Color: "x"}}, {Texts: map[string]Texts{"de": {}}}, {Languages: []string{"de"}},
		{Font: "x"}, {Corners: "x"}, {CSS: "x"},
	} {
		if text, err := json.Marshal(settings{b}); err != nil || b.IsZero() || string(text) == nothing {
			t.Errorf("%+v is nothing: %s, %v", b, text, err)
		}
	}
	if text, err := json.Marshal(settings{}); err != nil || !(Brand{}).IsZero() || string(text) != nothing {
		t.Errorf("nothing is %s, %v", text, err)
	}
}

package room

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
		for _, p := range (Settings{Brand: c.brand}).problems() {
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

// TestBrandJSON reads what is written, all of it, and names every member that
// it does not know.
func TestBrandJSON(t *testing.T) {
	t.Parallel()
	want := Brand{
		Scheme:    Scheme{dataURL("image/png", pngOf(1, 1)), "#112233", "#ffffff"},
		Dark:      Scheme{dataURL("image/png", pngOf(2, 1)), "#aabbcc", "#000000"},
		Texts:     map[string]Texts{"de": {"a", "b", "c", "https://example.com/1", "d", "https://example.com/2", "mailto:a@example.com"}, "en": {Intro: "x"}},
		Languages: []string{"de", "en"}, Font: "mono", Corners: "square", CSS: "h2 {\n  gap: 0;\n}\n",
	}
	text, err := json.Marshal(SettingsChange{Brand: &want})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ParseAmendment(text)
	if err != nil || cmp.Diff(&want, a.Brand) != "" {
		t.Errorf("%v %s", err, cmp.Diff(&want, a.Brand))
	}
	if stored := want.stored(); cmp.Diff(want, stored) != "" {
		t.Errorf("stored: %s", cmp.Diff(want, stored))
	}
	for text, fields := range map[string]string{
		`{"brand":{"logo":7,"dark":[],"texts":{"de":{"headline":1,"x":""},"klingon":{}},"languages":"de","font":1,"css":{},"z":1}}`: "brand.z brand.logo brand.dark brand.texts.klingon brand.texts.de.x brand.texts.de.headline brand.languages brand.font brand.css",
		`{"brand":{"css":"h1{display:none}\nh2{x:y}","languages":["xx"],"texts":{"de":{"help_url":"x"}}}}`:                          "brand.texts.de.help_url brand.languages brand.css",
	} {
		_, err := ParseAmendment([]byte(text))
		if got := problemFields(t, err); got != fields {
			t.Errorf("%s: problems with %s, want %s", text, got, fields)
		}
	}
	_, err = ParseAmendment([]byte(`{"brand":{"css":"h1{display:none}\nh2{x:y}"}}`))
	if text := fmt.Sprint(err); !strings.Contains(text, "line 1, column 4: ") || !strings.Contains(text, "line 2, column 4: ") {
		t.Error(text)
	}
}

// TestOldBrand reads settings as they were stored before there was more to say.
func TestOldBrand(t *testing.T) {
	t.Parallel()
	var s Settings
	err := json.Unmarshal([]byte(`{"targets":["https://example.com"],"brand":{"logo":"data:x","color":"#112233","background":"#ffffff"}}`), &s)
	want := Settings{Targets: []string{"https://example.com"}, Brand: Brand{Scheme: Scheme{"data:x", "#112233", "#ffffff"}}}
	if err != nil || cmp.Diff(want, s) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, s))
	}
}

// TestStored wants what is kept to be clean.
func TestStored(t *testing.T) {
	t.Parallel()
	plain := pngOf(2, 2)
	dirty := dataURL("image/png", withChunk(plain, pngChunk("tEXt", secret)))
	got := Brand{Scheme: Scheme{Logo: dirty}, Dark: Scheme{Logo: dirty}, CSS: "/* x */ h2{GAP:0}"}.stored()
	want := Brand{Scheme: Scheme{Logo: dataURL("image/png", plain)}, Dark: Scheme{Logo: dataURL("image/png", plain)}, CSS: "h2 {\n  gap: 0;\n}\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestText looks for texts in a visitor's language, and in the room's.
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
	const nothing = `{"max_waiting":0}`
	for _, b := range []Brand{
		{Scheme: Scheme{Color: "x"}}, {Dark: Scheme{Color: "x"}}, {Texts: map[string]Texts{"de": {}}}, {Languages: []string{"de"}},
		{Font: "x"}, {Corners: "x"}, {CSS: "x"},
	} {
		if text, err := json.Marshal(Settings{Brand: b}); err != nil || b.IsZero() || string(text) == nothing {
			t.Errorf("%+v is nothing: %s, %v", b, text, err)
		}
	}
	if text, err := json.Marshal(Settings{}); err != nil || !(Brand{}).IsZero() || string(text) != nothing {
		t.Errorf("nothing is %s, %v", text, err)
	}
}

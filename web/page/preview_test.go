package page_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/web/page"
)

func sample(l page.Lang) page.Sample {
	return page.Sample{Room: branded, Lang: l, Now: noon, Claim: 5 * time.Minute, Target: "https://shop.example.com"}
}

// TestPreviews checks the previews of every state in every language: they look as with scripts, and
// their controls do nothing.
func TestPreviews(t *testing.T) {
	p := newPages(t, manifest)
	for _, l := range page.Languages() {
		seen := map[page.State]bool{}
		for _, e := range page.Previews(sample(l)) {
			seen[e.View.State] = true
			name := string(l) + "/" + e.Name
			var b bytes.Buffer
			if err := p.Preview(&b, e.View, page.Inline{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			doc := parseHTML(t, name, b.String())
			checkFrame(t, name, l, doc)
			checkPolicy(t, name, doc)
			if body := doc.named("body"); len(body) != 1 || !body[0].has("inert") || len(doc.named("script")) > 0 {
				t.Errorf("%s can be operated", name)
			}
			for _, e := range doc.all(func(e *element) bool { return e.has("data-static") || e.has("data-scripted") }) {
				if e.isShown() != e.has("data-scripted") && e.attributes["data-static"] == "" {
					t.Errorf("%s: <%s> %v is not as scripts leave it", name, e.name, e.attributes)
				}
			}
			if e.About == "" || !slices.ContainsFunc(doc.named("time"), func(e *element) bool { return true }) && e.View.Ticket != nil {
				t.Errorf("%s is not described, or without times", name)
			}
		}
		if len(seen) != 13 {
			t.Errorf("%d states in %s", len(seen), l)
		}
	}
}

// TestPreviewFigures checks that the sample numbers are consistent.
func TestPreviewFigures(t *testing.T) {
	p := newPages(t, manifest)
	for name, want := range map[string][]string{
		"upcoming":             {"12:34", "Doors open early."},
		"drawn":                {"Your place is 4,211", "1,020 people are ahead of you.", "Places up to 3,190 have been called."},
		"called":               {"4:30", "Go in now"},
		"called-late":          {"0:41", "Less than a minute left."},
		"called-claims-frozen": {"4:30", "Going in is stopped for a moment"},
		"rehearsal":            {"This is a rehearsal."},
		"nonsense":             {"12:34"}, // falls back to the first example
	} {
		var b bytes.Buffer
		if err := p.Preview(&b, page.PreviewOf(sample("en"), name).View, page.Inline{}); err != nil {
			t.Fatal(err)
		}
		text := parseHTML(t, name, b.String()).text()
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q: %s", name, want, text)
			}
		}
	}
}

// TestInline checks that the style and the logo of a preview are embedded, and nothing else.
func TestInline(t *testing.T) {
	p := newPages(t, manifest)
	render := func(in page.Inline) string {
		var b bytes.Buffer
		if err := p.Preview(&b, page.PreviewOf(sample("en"), "drawn").View, in); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const logo = "data:image/png;base64,iVBORw0KGgo+/A=="
	html := render(page.Inline{Nonce: "abc", CSS: []byte(`html{font-family:"Noto Serif"}body main > h2{gap: 0}`), Logo: logo})
	for _, want := range []string{`<style nonce="abc">html{font-family:"Noto Serif"}body main > h2{gap: 0}</style>`, `<img src="data:image/png;base64,iVBORw0KGgo&#43;/A==" alt="">`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in %s", want, html)
		}
	}
	if strings.Contains(html, "brand.css") || strings.Contains(html, "/logo") {
		t.Errorf("the stored text is in the preview: %s", html)
	}
	html = render(page.Inline{CSS: []byte("</style><script>alert(1)</script>"), Logo: `data:image/svg+xml;base64,PHN2Zz4=`})
	for _, not := range []string{"alert(1)", "svg+xml", "<img"} {
		if strings.Contains(html, not) {
			t.Errorf("%s in %s", not, html)
		}
	}
}

package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
	"github.com/proofline/proofline/web/console/shell"
)

// file is a file of a form.
type file struct{ field, content string }

// upload sends a form with files, of names and values in turn.
func (s *site) upload(who, path string, files []file, pairs ...string) answer {
	s.Helper()
	body, kind := multipartOf(s, files, pairs...)
	return s.do(who, POST, path, body, "Content-Type: "+kind)
}

// multipartOf returns a form with files, of names and values in turn, and its
// media type.
func multipartOf(t testing.TB, files []file, pairs ...string) (body, mediaType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = w.WriteField(pairs[i], pairs[i+1])
	}
	for _, f := range files {
		part, err := w.CreateFormFile(f.field, "image")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte(f.content))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// dotOf is a PNG image.
func dotOf(t *testing.T, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func logoURL(image string) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(image))
}

var baseForm = regexp.MustCompile(`name="base" value="([0-9a-f]{32})"`)

// base is the tag of the brand that a form changes.
func (a answer) base() string {
	a.Helper()
	found := baseForm.FindStringSubmatch(a.body)
	if found == nil {
		a.Fatalf("no tag in %s", a.body)
	}
	return found[1]
}

func brandOf(r *room.Room) room.Brand {
	s, _ := r.Settings()
	return s.Brand
}

// TestBrand saves everything that a brand has, shows it again, and changes it
// without losing the logo.
func TestBrand(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "looks", Title: "Summer tour"})
	const path = "/console/rooms/looks/brand"
	logo := dotOf(t, 1)
	base := s.get(operator, path).want(http.StatusOK).has("Summer tour", `value="en" checked`).lacks("no value", "nil").base()
	everything := []string{
		"base", base, "color", "#7a1fa2", "background", "#ffffff", "dark_color", "#ce93d8", "dark_background", "#120018", "font", "serif", "corners", "square",
		"language", "de", "languages", "de", "languages", "fr", "text.de.headline", "Hallo", "text.de.intro", "Eins\r\nZwei", "text.fr.help_url", "mailto:aide@example.com",
		"css", "h2 {\r\n  gap: 0;\r\n}", "state", "called", "lang", "fr",
	}
	s.upload(operator, path, []file{{"logo_file", logo}, {"dark_logo_file", ""}}, everything...).leadsTo("/console/rooms/looks/brand?done=brand-saved")
	want := room.Brand{
		Scheme: room.Scheme{Logo: logoURL(logo), Color: "#7a1fa2", Background: "#ffffff"}, Dark: room.Scheme{Color: "#ce93d8", Background: "#120018"},
		Font: "serif", Corners: "square", Languages: []string{"de", "fr"}, CSS: "h2 {\n  gap: 0;\n}\n",
		Texts: map[string]room.Texts{"de": {Headline: "Hallo", Intro: "Eins\nZwei"}, "fr": {HelpURL: "mailto:aide@example.com"}},
	}
	if diff := cmp.Diff(want, brandOf(r)); diff != "" {
		t.Error(diff)
	}
	a := s.get(operator, path+"?done=brand-saved").want(http.StatusOK)
	a.has("The brand is saved.", "PNG, 1 KiB", "Eins\nZwei", "mailto:aide@example.com", `value="#ce93d8"`, "as chosen").lacks("ZgotmplZ")
	kept := []string{"base", a.base(), "logo", logoURL(logo), "font", "system", "corners", "round", "language", "en"}
	for _, code := range room.Languages {
		kept = append(kept, "languages", code)
	}
	s.upload(operator, path, nil, kept...).leadsTo("/console/rooms/looks/brand?done=brand-saved")
	if diff := cmp.Diff(room.Brand{Scheme: room.Scheme{Logo: logoURL(logo)}}, brandOf(r)); diff != "" {
		t.Error(diff)
	}
	a = s.get(operator, path)
	s.post(operator, path, "base", a.base(), "logo", logoURL(logo), "logo_remove", "1").leadsTo("/console/rooms/looks/brand?done=brand-saved")
	if left := brandOf(r); !left.IsZero() {
		t.Errorf("left is %+v", left)
	}
	if size := r.Snapshot().Size; size != 1 {
		t.Errorf("the transcript has %d entries, want the policy alone", size)
	}
}

// TestBrandLanguages reads which languages are ticked.
func TestBrandLanguages(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"":                          "null",
		"language=de":               `["de","en","es","fr","it","pt","ja","ar"]`,
		"language=en":               "null",
		"language=fr&languages=de":  `["fr","de"]`,
		"languages=de&languages=fr": `["de","fr"]`,
		"language=en&languages=xx":  `["en","xx"]`,
	} {
		fields, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		q := httptest.NewRequest(POST, "/", nil)
		q.PostForm = fields
		x := &request{shellRequest: &shell.Request{Context: echo.New().NewContext(q, nil)}}
		got, err := json.Marshal(x.languages())
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, want %s", form, got, want)
		}
	}
}

// TestBrandChanged keeps two people from undoing one another's work unseen.
func TestBrandChanged(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "looks"})
	const path = "/console/rooms/looks/brand"
	base := s.get(operator, path).base()
	s.post(owner, path, "base", base, "color", "#111111").want(http.StatusSeeOther)
	refused := s.post(operator, path, "base", base, "color", "#222222").want(http.StatusConflict).has("Somebody else has changed the brand", `value="#222222"`)
	if got := brandOf(r).Color; got != "#111111" {
		t.Errorf("the colour is %s", got)
	}
	s.post(operator, path, "base", refused.base(), "color", "#222222").want(http.StatusSeeOther)
	if got := brandOf(r).Color; got != "#222222" {
		t.Errorf("the colour is %s", got)
	}
}

// TestBrandRefused says at each field what is wrong, keeps what was typed and
// stores nothing.
func TestBrandRefused(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "looks"})
	const path = "/console/rooms/looks/brand"
	base := s.get(operator, path).base()
	for name, c := range map[string]struct {
		files []file
		pairs []string
		want  []string
	}{
		"SVG":       {[]file{{"logo_file", "<svg xmlns='http://www.w3.org/2000/svg'/>"}}, nil, []string{"The new image is not a PNG, JPEG or WebP image"}},
		"wide":      {[]file{{"dark_logo_file", dotOf(t, 2001)}}, nil, []string{"The new image has 2001 by 1 pixels"}},
		"large":     {[]file{{"logo_file", strings.Repeat("x", 65<<10)}}, []string{"logo", logoURL(dotOf(t, 1))}, []string{"The new image has 65 KiB", logoURL(dotOf(t, 1))}},
		"colour":    {nil, []string{"color", "red"}, []string{"must be a colour such as #1a2b3c", `value="red"`}},
		"link":      {nil, []string{"text.de.privacy_url", "javascript:alert(1)"}, []string{"must be a URL of https", "has problems"}},
		"long":      {nil, []string{"text.de.headline", strings.Repeat("x", 121)}, []string{"at most 120 characters"}},
		"CSS":       {nil, []string{"css", "h2 {\r\n  position: fixed;\r\n}"}, []string{"line 2, column 3: position is no property that may be set", "position: fixed"}},
		"language":  {nil, []string{"language", "xx"}, []string{"known are en, de"}},
		"font":      {nil, []string{"font", "Comic Sans"}, []string{"must be one of system"}},
		"data URL":  {nil, []string{"logo", "data:image/svg+xml;base64,PHN2Zz4="}, []string{"must be a data URL"}},
		"no images": {nil, []string{"logo", "https://example.org/x.png"}, []string{"must be a data URL"}},
	} {
		a := s.upload(operator, path, c.files, append(c.pairs, "base", base)...).want(http.StatusBadRequest)
		for _, want := range c.want {
			if !strings.Contains(html.UnescapeString(a.body), want) {
				t.Errorf("%s does not say %q: %s", name, want, a.body)
			}
		}
	}
	if b := brandOf(r); !b.IsZero() {
		t.Errorf("stored %+v", b)
	}
	s.upload(operator, path, []file{{"logo_file", strings.Repeat("x", maxUpload)}}).want(http.StatusRequestEntityTooLarge)
	s.do(operator, POST, path, "--x\r\nContent-", "Content-Type: multipart/form-data; boundary=x").want(http.StatusBadRequest)
}

// TestBrandCheck says the same to scripts, before anything is saved.
func TestBrandCheck(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "looks"})
	a := s.upload(operator, "/console/rooms/looks/brand/check", nil, "color", "#ffee00", "css", "h2{x:y}\r\nh1{z:1}", "text.en.imprint_url", "x").want(http.StatusOK)
	var got struct {
		Problems invalid.List
		CSS      []style.Problem
		Contrast []struct {
			Scheme, Pair, Given, Shown string
			Ratio, Then                float64
			Repaired, Good             bool
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, p := range got.Problems {
		fields = append(fields, p.Field)
	}
	if diff := cmp.Diff([]string{"brand.texts.en.imprint_url", "brand.css"}, fields); diff != "" {
		t.Error(diff)
	}
	if len(got.CSS) != 2 || got.CSS[0].Line != 1 || got.CSS[1].Line != 2 {
		t.Errorf("CSS: %+v", got.CSS)
	}
	if len(got.Contrast) != 12 || !got.Contrast[2].Repaired || got.Contrast[2].Given != "#ffee00" || got.Contrast[2].Then < 4.5 || got.Contrast[5].Good {
		t.Errorf("contrast: %+v", got.Contrast)
	}
	s.upload(operator, "/console/rooms/looks/brand/check", nil, "color", "x").want(http.StatusOK).has(`"contrast":[]`, `"css":[]`, `"field":"brand.color"`)
	if b := brandOf(r); !b.IsZero() {
		t.Errorf("stored %+v", b)
	}
}

// attack is what an organizer might enter.
const attack = `"><script>alert(1)</script><img src=x onerror=alert(1)></textarea></style>`

// TestBrandEscapes gives every text the form of an attack, and looks at the
// form and at every state of the preview.
func TestBrandEscapes(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, room.Config{Slug: "looks", Title: attack})
	const path = "/console/rooms/looks"
	pairs := []string{"base", attack, "color", attack, "background", attack, "dark_color", attack, "dark_background", attack, "font", attack, "corners", attack, "css", attack, "logo", attack, "dark_logo", attack, "languages", attack, "state", attack, "lang", attack, "scheme", attack}
	var texts []string
	for _, code := range room.Languages {
		for _, name := range []string{"headline", "intro", "help", "footer"} {
			texts = append(texts, "text."+code+"."+name, attack)
		}
		for _, name := range []string{"help_url", "privacy_url", "imprint_url"} {
			pairs = append(pairs, "text."+code+"."+name, "javascript:alert(1)//"+attack)
		}
	}
	clean := func(what string, a answer) {
		t.Helper()
		for _, not := range []string{"<script>alert", "<img src=x", `href="javascript:`} {
			if strings.Contains(a.body, not) {
				t.Errorf("%s has %s: %s", what, not, a.body)
			}
		}
	}
	clean("the form", s.upload(owner, path+"/brand", nil, append(pairs, texts...)...).want(http.StatusBadRequest))
	clean("the frame", s.upload(owner, path+"/preview/frame", nil, append(pairs, texts...)...).want(http.StatusOK))
	base := s.get(owner, path+"/brand").base()
	s.upload(owner, path+"/brand", nil, append(texts, "base", base)...).want(http.StatusSeeOther)
	clean("the stored form", s.get(owner, path+"/brand").want(http.StatusOK))
	clean("the preview", s.get(owner, path+"/preview?state="+url.QueryEscape(attack)).want(http.StatusOK))
	for _, state := range newPreviewView(subject{}, &room.Brand{}, "", "", "").States {
		a := s.get(owner, path+"/preview/frame?state="+state.Name).want(http.StatusOK)
		clean(state.Name, a)
		if !strings.Contains(a.body, html.EscapeString(attack[:10])) {
			t.Errorf("%s has no text of the organizer: %s", state.Name, a.body)
		}
	}
}

var nonceForm = regexp.MustCompile(`style-src 'self' 'nonce-([A-Za-z0-9_-]{22})'`)

// TestPreview shows a page in a state, a language and a scheme, stored or not,
// that can run nothing, send nothing, and be shown by our pages alone.
func TestPreview(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "looks", Title: "Summer tour", Settings: room.Settings{Targets: []string{"https://shop.example.com/x"}, Brand: room.Brand{
		Scheme: room.Scheme{Color: "#7a1fa2"}, Dark: room.Scheme{Background: "#120018"}, CSS: "h2{gap:0}",
		Languages: []string{"de", "en"}, Texts: map[string]room.Texts{"de": {Headline: "Hallo"}},
	}}})
	const frame = "/console/rooms/looks/preview/frame"
	s.get(viewer, "/console/rooms/looks/preview?state=called&lang=en&scheme=dark").want(http.StatusOK).has(
		`src="/console/rooms/looks/preview/frame?state=called&amp;lang=en&amp;scheme=dark"`, "May go in", "Summer tour")
	a := s.get(viewer, frame).want(http.StatusOK)
	a.has(`<html lang="de"`, "Hallo", "--accent:#7a1fa2", "body h2{gap: 0}", `data-state="upcoming"`, "color-scheme:light").lacks("<script", "ZgotmplZ")
	policy := a.header.Get("Content-Security-Policy")
	nonce := nonceForm.FindStringSubmatch(policy)
	if nonce == nil || !strings.Contains(a.body, `<style nonce="`+nonce[1]+`">`) {
		t.Fatalf("policy %s of %s", policy, a.body)
	}
	for _, want := range []string{"default-src 'none';", "form-action 'none'", "frame-ancestors 'self'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) || strings.Contains(policy, "script-src") {
			t.Errorf("policy %s, want %s", policy, want)
		}
	}
	if again := s.get(viewer, frame).header.Get("Content-Security-Policy"); again == policy {
		t.Error("a nonce is used twice")
	}
	s.get(viewer, frame+"?state=called-claims-frozen&lang=en&scheme=dark").has(`<html lang="en"`, "Going in is stopped for a moment", "color-scheme:dark;--page:#120018", "Hallo")
	s.get(viewer, frame+"?state=called&lang=fr").has(`<html lang="de"`, "shop.example.com")
	logo := dotOf(t, 2)
	s.upload(operator, frame, []file{{"logo_file", logo}}, "state", "drawn", "lang", "fr", "scheme", "light", "color", "#00695c", "css", "h1{font-weight:800}", "text.fr.footer", "Merci").want(http.StatusOK).has(
		`<html lang="fr"`, "--accent:#00695c", "font-weight: 800", "Merci", `<img src="data:image/png;base64,`, `data-state="drawn"`)
	s.upload(operator, frame, []file{{"dark_logo_file", logo}}, "scheme", "dark").want(http.StatusOK).has(`<img src="data:image/png;base64,`)
	s.upload(operator, frame, nil, "color", "#00", "font", "serif", "css", "h1{").want(http.StatusOK).has("ui-serif").lacks("--accent:#00")
	if got := brandOf(r).Color; got != "#7a1fa2" {
		t.Errorf("a preview changed the colour to %s", got)
	}
}

// TestDraftBrand gives looks to a draft, one that cannot be published yet too,
// and shows what visitors will see.
func TestDraftBrand(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	actor := identities()[operator].Actor
	d, err := s.control.SaveDraft(s.Context(), actor, uuid.Nil, 0, "", json.RawMessage(`{"slug":"Not a slug","title":"Autumn tour","claim":"7m","targets":["https://shop.example.com"],"opens":"one day"}`))
	if err != nil {
		t.Fatal(err)
	}
	path := "/console/drafts/" + d.ID.String()
	base := s.get(operator, path+"/brand").want(http.StatusOK).has("Autumn tour", `action="`+path+`/brand"`, `data-check="`+path+`/brand/check"`, "before and after").base()
	logo := dotOf(t, 1)
	s.upload(operator, path+"/brand", []file{{"logo_file", logo}}, "base", base, "color", "#7a1fa2", "text.en.headline", "Hello").leadsTo(path + "/brand?done=draft-saved")
	s.post(operator, path+"/brand", "base", base, "color", "#000000").want(http.StatusConflict).has("Somebody else has changed the brand")
	s.post(operator, path+"/brand", "base", base, "color", "red").want(http.StatusBadRequest).has("must be a colour")
	stored, err := s.control.Draft(s.Context(), actor, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := room.Brand{Scheme: room.Scheme{Logo: logoURL(logo), Color: "#7a1fa2"}, Texts: map[string]room.Texts{"en": {Headline: "Hello"}}}
	if diff := cmp.Diff(want, stored.Config().Brand); diff != "" || !strings.Contains(string(stored.Draft.Config), `"one day"`) {
		t.Errorf("%s in %s", diff, stored.Draft.Config)
	}
	s.upload(operator, path+"/brand/check", nil, "color", "red").want(http.StatusOK).has(`"field":"brand.color"`)
	s.get(viewer, path+"/preview").want(http.StatusOK).has(`src="`+path+`/preview/frame?`, "Autumn tour").lacks("Rehearsal")
	s.get(viewer, path+"/preview/frame?state=called").want(http.StatusOK).has("Autumn tour", "Hello", "--accent:#7a1fa2", "6:18", "shop.example.com")
	s.upload(operator, path+"/preview/frame", nil, "color", "#004d40").want(http.StatusOK).has("--accent:#004d40")
	for _, page := range []string{"/brand", "/preview", "/preview/frame"} {
		s.get(stranger, path+page).want(http.StatusNotFound)
	}
	for _, page := range []string{"/brand", "/brand/check", "/preview/frame"} {
		s.post(stranger, path+page, "base", base).want(http.StatusNotFound)
		s.post(viewer, path+page, "base", base).want(http.StatusForbidden)
	}
}

package rooms_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/style"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/page"
)

func logoURL(image string) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(image))
}

func brandOf(r *room.Room) branding.Brand {
	s, _ := r.Settings()
	return s.Brand
}

// TestBrand saves everything that a brand has, shows it again, and changes it without losing the logo.
func TestBrand(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "looks", Title: "Summer tour"})
	const path = "/console/rooms/looks/brand"
	logo := consoletest.PNG(t, 1)
	base := s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Summer tour", `value="en" checked`).Lacks("no value", "nil").Base()
	everything := []string{
		"base", base, "color", "#7a1fa2", "background", "#ffffff", "dark_color", "#ce93d8", "dark_background", "#120018", "font", "serif", "corners", "square",
		"language", "de", "languages", "de", "languages", "fr", "text.de.headline", "Hallo", "text.de.intro", "Eins\r\nZwei", "text.fr.help_url", "mailto:aide@example.com",
		"css", "h2 {\r\n  gap: 0;\r\n}", "state", "called", "lang", "fr",
	}
	s.Upload(consoletest.Operator, path, []consoletest.File{{Field: "logo_file", Content: logo}, {Field: "dark_logo_file", Content: ""}}, everything...).RedirectsTo("/console/rooms/looks/brand?done=brand-saved")
	want := branding.Brand{
		Scheme: branding.Scheme{Logo: logoURL(logo), Color: "#7a1fa2", Background: "#ffffff"}, Dark: branding.Scheme{Color: "#ce93d8", Background: "#120018"},
		Font: "serif", Corners: "square", Languages: []string{"de", "fr"}, CSS: "h2 {\n  gap: 0;\n}\n",
		Texts: map[string]branding.Texts{"de": {Headline: "Hallo", Intro: "Eins\nZwei"}, "fr": {HelpURL: "mailto:aide@example.com"}},
	}
	if diff := cmp.Diff(want, brandOf(r)); diff != "" {
		t.Error(diff)
	}
	a := s.Get(consoletest.Operator, path+"?done=brand-saved").Want(http.StatusOK)
	a.Has("The brand is saved.", "PNG, 1 KiB", "Eins\nZwei", "mailto:aide@example.com", `value="#ce93d8"`, "as chosen").Lacks("ZgotmplZ")
	kept := []string{"base", a.Base(), "logo", logoURL(logo), "font", "system", "corners", "round", "language", "en"}
	for _, code := range branding.Languages {
		kept = append(kept, "languages", code)
	}
	s.Upload(consoletest.Operator, path, nil, kept...).RedirectsTo("/console/rooms/looks/brand?done=brand-saved")
	if diff := cmp.Diff(branding.Brand{Scheme: branding.Scheme{Logo: logoURL(logo)}}, brandOf(r)); diff != "" {
		t.Error(diff)
	}
	a = s.Get(consoletest.Operator, path)
	s.Post(consoletest.Operator, path, "base", a.Base(), "logo", logoURL(logo), "logo_remove", "1").RedirectsTo("/console/rooms/looks/brand?done=brand-saved")
	if left := brandOf(r); !left.IsZero() {
		t.Errorf("left is %+v", left)
	}
	if size := r.Snapshot().Size; size != 1 {
		t.Errorf("the transcript has %d entries, want the policy alone", size)
	}
}

// TestBrandChanged checks that two people cannot overwrite each other's work unnoticed.
func TestBrandChanged(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "looks"})
	const path = "/console/rooms/looks/brand"
	base := s.Get(consoletest.Operator, path).Base()
	s.Post(consoletest.Owner, path, "base", base, "color", "#111111").Want(http.StatusSeeOther)
	refused := s.Post(consoletest.Operator, path, "base", base, "color", "#222222").Want(http.StatusConflict).Has("Someone else has changed the brand", `value="#222222"`)
	if got := brandOf(r).Color; got != "#111111" {
		t.Errorf("the colour is %s", got)
	}
	s.Post(consoletest.Operator, path, "base", refused.Base(), "color", "#222222").Want(http.StatusSeeOther)
	if got := brandOf(r).Color; got != "#222222" {
		t.Errorf("the colour is %s", got)
	}
}

// TestBrandRefused shows each problem next to its field, keeps the input, and stores nothing.
func TestBrandRefused(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "looks"})
	const path = "/console/rooms/looks/brand"
	base := s.Get(consoletest.Operator, path).Base()
	for name, c := range map[string]struct {
		files []consoletest.File
		pairs []string
		want  []string
	}{
		"SVG":       {[]consoletest.File{{Field: "logo_file", Content: "<svg xmlns='http://www.w3.org/2000/svg'/>"}}, nil, []string{"The new image is not a PNG, JPEG or WebP image"}},
		"wide":      {[]consoletest.File{{Field: "dark_logo_file", Content: consoletest.PNG(t, 2001)}}, nil, []string{"The new image has 2001 by 1 pixels"}},
		"large":     {[]consoletest.File{{Field: "logo_file", Content: strings.Repeat("x", 65<<10)}}, []string{"logo", logoURL(consoletest.PNG(t, 1))}, []string{"The new image has 65 KiB", logoURL(consoletest.PNG(t, 1))}},
		"colour":    {nil, []string{"color", "red"}, []string{"must be a colour such as #1a2b3c", `value="red"`}},
		"link":      {nil, []string{"text.de.privacy_url", "javascript:alert(1)"}, []string{"must be a URL of https", "has problems"}},
		"long":      {nil, []string{"text.de.headline", strings.Repeat("x", 121)}, []string{"at most 120 characters"}},
		"CSS":       {nil, []string{"css", "h2 {\r\n  position: fixed;\r\n}"}, []string{"line 2, column 3: position is not a property that may be set", "position: fixed"}},
		"language":  {nil, []string{"language", "xx"}, []string{"known are en, de"}},
		"font":      {nil, []string{"font", "Comic Sans"}, []string{"must be one of system"}},
		"data URL":  {nil, []string{"logo", "data:image/svg+xml;base64,PHN2Zz4="}, []string{"must be a data URL"}},
		"no images": {nil, []string{"logo", "https://example.org/x.png"}, []string{"must be a data URL"}},
	} {
		a := s.Upload(consoletest.Operator, path, c.files, append(c.pairs, "base", base)...).Want(http.StatusBadRequest)
		for _, want := range c.want {
			if !strings.Contains(html.UnescapeString(a.Body), want) {
				t.Errorf("%s does not say %q: %s", name, want, a.Body)
			}
		}
	}
	if b := brandOf(r); !b.IsZero() {
		t.Errorf("stored %+v", b)
	}
	s.Upload(consoletest.Operator, path, []consoletest.File{{Field: "logo_file", Content: strings.Repeat("x", shell.MaxLogoUpload)}}).Want(http.StatusRequestEntityTooLarge)
	s.Do(consoletest.Operator, http.MethodPost, path, "--x\r\nContent-", "Content-Type: multipart/form-data; boundary=x").Want(http.StatusBadRequest)
}

// TestBrandCheck reports the same to scripts, before anything is saved.
func TestBrandCheck(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "looks"})
	a := s.Upload(consoletest.Operator, "/console/rooms/looks/brand/check", nil, "color", "#ffee00", "css", "h2{x:y}\r\nh1{z:1}", "text.en.imprint_url", "x").Want(http.StatusOK)
	var got struct {
		Problems invalid.List
		CSS      []style.Problem
		Contrast []struct {
			Scheme, Pair, Given, Shown string
			Ratio, Then                float64
			Repaired, Good             bool
		}
	}
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil {
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
	s.Upload(consoletest.Operator, "/console/rooms/looks/brand/check", nil, "color", "x").Want(http.StatusOK).Has(`"contrast":[]`, `"css":[]`, `"field":"brand.color"`)
	if b := brandOf(r); !b.IsZero() {
		t.Errorf("stored %+v", b)
	}
}

// attack is a hostile text that an organizer might enter.
const attack = `"><script>alert(1)</script><img src=x onerror=alert(1)></textarea></style>`

// TestBrandEscapes gives every text the form of an attack, and checks the form and every state of the
// preview.
func TestBrandEscapes(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Create(consoletest.Owner, room.Config{Slug: "looks", Title: attack})
	const path = "/console/rooms/looks"
	pairs := []string{"base", attack, "color", attack, "background", attack, "dark_color", attack, "dark_background", attack, "font", attack, "corners", attack, "css", attack, "logo", attack, "dark_logo", attack, "languages", attack, "state", attack, "lang", attack, "scheme", attack}
	var texts []string
	for _, code := range branding.Languages {
		for _, name := range []string{"headline", "intro", "help", "footer"} {
			texts = append(texts, "text."+code+"."+name, attack)
		}
		for _, name := range []string{"help_url", "privacy_url", "imprint_url"} {
			pairs = append(pairs, "text."+code+"."+name, "javascript:alert(1)//"+attack)
		}
	}
	clean := func(what string, a consoletest.Answer) {
		t.Helper()
		for _, not := range []string{"<script>alert", "<img src=x", `href="javascript:`} {
			if strings.Contains(a.Body, not) {
				t.Errorf("%s has %s: %s", what, not, a.Body)
			}
		}
	}
	clean("the form", s.Upload(consoletest.Owner, path+"/brand", nil, append(pairs, texts...)...).Want(http.StatusBadRequest))
	clean("the frame", s.Upload(consoletest.Owner, path+"/preview/frame", nil, append(pairs, texts...)...).Want(http.StatusOK))
	base := s.Get(consoletest.Owner, path+"/brand").Base()
	s.Upload(consoletest.Owner, path+"/brand", nil, append(texts, "base", base)...).Want(http.StatusSeeOther)
	clean("the stored form", s.Get(consoletest.Owner, path+"/brand").Want(http.StatusOK))
	clean("the preview", s.Get(consoletest.Owner, path+"/preview?state="+url.QueryEscape(attack)).Want(http.StatusOK))
	for _, state := range page.Previews(page.Sample{}) {
		a := s.Get(consoletest.Owner, path+"/preview/frame?state="+state.Name).Want(http.StatusOK)
		clean(state.Name, a)
		if !strings.Contains(a.Body, html.EscapeString(attack[:10])) {
			t.Errorf("%s has no text of the organizer: %s", state.Name, a.Body)
		}
	}
}

var nonceForm = regexp.MustCompile(`style-src 'self' 'nonce-([A-Za-z0-9_-]{22})'`)

// TestPreview shows a page in a state, a language and a scheme, stored or not. The page can run nothing, send
// nothing, and be framed only by our pages.
func TestPreview(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "looks", Title: "Summer tour", Settings: room.Settings{Targets: []string{"https://shop.example.com/x"}, Brand: branding.Brand{
		Scheme: branding.Scheme{Color: "#7a1fa2"}, Dark: branding.Scheme{Background: "#120018"}, CSS: "h2{gap:0}",
		Languages: []string{"de", "en"}, Texts: map[string]branding.Texts{"de": {Headline: "Hallo"}},
	}}})
	const frame = "/console/rooms/looks/preview/frame"
	s.Get(consoletest.Viewer, "/console/rooms/looks/preview?state=called&lang=en&scheme=dark").Want(http.StatusOK).Has(
		`src="/console/rooms/looks/preview/frame?state=called&amp;lang=en&amp;scheme=dark"`, "May go in", "Summer tour")
	a := s.Get(consoletest.Viewer, frame).Want(http.StatusOK)
	a.Has(`<html lang="de"`, "Hallo", "--accent:#7a1fa2", "body h2{gap: 0}", `data-state="upcoming"`, "color-scheme:light").Lacks("<script", "ZgotmplZ")
	policy := a.Header.Get("Content-Security-Policy")
	nonce := nonceForm.FindStringSubmatch(policy)
	if nonce == nil || !strings.Contains(a.Body, `<style nonce="`+nonce[1]+`">`) {
		t.Fatalf("policy %s of %s", policy, a.Body)
	}
	for _, want := range []string{"default-src 'none';", "form-action 'none'", "frame-ancestors 'self'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) || strings.Contains(policy, "script-src") {
			t.Errorf("policy %s, want %s", policy, want)
		}
	}
	if again := s.Get(consoletest.Viewer, frame).Header.Get("Content-Security-Policy"); again == policy {
		t.Error("a nonce is used twice")
	}
	s.Get(consoletest.Viewer, frame+"?state=called-claims-frozen&lang=en&scheme=dark").Has(`<html lang="en"`, "Going in is stopped for a moment", "color-scheme:dark;--page:#120018", "Hallo")
	s.Get(consoletest.Viewer, frame+"?state=called&lang=fr").Has(`<html lang="de"`, "shop.example.com")
	logo := consoletest.PNG(t, 2)
	s.Upload(consoletest.Operator, frame, []consoletest.File{{Field: "logo_file", Content: logo}}, "state", "drawn", "lang", "fr", "scheme", "light", "color", "#00695c", "css", "h1{font-weight:800}", "text.fr.footer", "Merci").Want(http.StatusOK).Has(
		`<html lang="fr"`, "--accent:#00695c", "font-weight: 800", "Merci", `<img src="data:image/png;base64,`, `data-state="drawn"`)
	s.Upload(consoletest.Operator, frame, []consoletest.File{{Field: "dark_logo_file", Content: logo}}, "scheme", "dark").Want(http.StatusOK).Has(`<img src="data:image/png;base64,`)
	s.Upload(consoletest.Operator, frame, nil, "color", "#00", "font", "serif", "css", "h1{").Want(http.StatusOK).Has("ui-serif").Lacks("--accent:#00")
	if got := brandOf(r).Color; got != "#7a1fa2" {
		t.Errorf("a preview changed the colour to %s", got)
	}
}

// TestDraftBrand sets the brand of a draft, even of one that cannot be published yet, and shows what visitors
// will see.
func TestDraftBrand(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	actor := consoletest.Actor(consoletest.Operator)
	d, err := s.Control.Drafts.Save(s.Context(), actor, uuid.Nil, 0, "", json.RawMessage(`{"slug":"Not a slug","title":"Autumn tour","claim":"7m","targets":["https://shop.example.com"],"opens":"one day"}`))
	if err != nil {
		t.Fatal(err)
	}
	path := "/console/drafts/" + d.ID.String()
	base := s.Get(consoletest.Operator, path+"/brand").Want(http.StatusOK).Has("Autumn tour", `action="`+path+`/brand"`, `data-check="`+path+`/brand/check"`, "before and after").Base()
	logo := consoletest.PNG(t, 1)
	s.Upload(consoletest.Operator, path+"/brand", []consoletest.File{{Field: "logo_file", Content: logo}}, "base", base, "color", "#7a1fa2", "text.en.headline", "Hello").RedirectsTo(path + "/brand?done=draft-saved")
	s.Post(consoletest.Operator, path+"/brand", "base", base, "color", "#000000").Want(http.StatusConflict).Has("Someone else has changed the brand")
	s.Post(consoletest.Operator, path+"/brand", "base", base, "color", "red").Want(http.StatusBadRequest).Has("must be a colour")
	stored, err := s.Control.Drafts.Get(s.Context(), actor, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := branding.Brand{Scheme: branding.Scheme{Logo: logoURL(logo), Color: "#7a1fa2"}, Texts: map[string]branding.Texts{"en": {Headline: "Hello"}}}
	if diff := cmp.Diff(want, stored.Config().Brand); diff != "" || !strings.Contains(string(stored.Draft.Config), `"one day"`) {
		t.Errorf("%s in %s", diff, stored.Draft.Config)
	}
	s.Upload(consoletest.Operator, path+"/brand/check", nil, "color", "red").Want(http.StatusOK).Has(`"field":"brand.color"`)
	s.Get(consoletest.Viewer, path+"/preview").Want(http.StatusOK).Has(`src="`+path+`/preview/frame?`, "Autumn tour").Lacks("Rehearsal")
	s.Get(consoletest.Viewer, path+"/preview/frame?state=called").Want(http.StatusOK).Has("Autumn tour", "Hello", "--accent:#7a1fa2", "6:18", "shop.example.com")
	s.Upload(consoletest.Operator, path+"/preview/frame", nil, "color", "#004d40").Want(http.StatusOK).Has("--accent:#004d40")
	for _, page := range []string{"/brand", "/preview", "/preview/frame"} {
		s.Get(consoletest.Stranger, path+page).Want(http.StatusNotFound)
	}
	for _, page := range []string{"/brand", "/brand/check", "/preview/frame"} {
		s.Post(consoletest.Stranger, path+page, "base", base).Want(http.StatusNotFound)
		s.Post(consoletest.Viewer, path+page, "base", base).Want(http.StatusForbidden)
	}
}

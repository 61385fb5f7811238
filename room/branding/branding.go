// Package branding defines and validates the appearance of a room: logo, colours, texts and custom
// CSS.
package branding

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/locale"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/room/style"
)

// Languages are the languages of the pages, the fallback first.
var Languages = locale.Tags()

// Brand is the look of a room's pages; empty members keep the default.
type Brand struct {
	Scheme
	// Dark overrides the light scheme in dark mode. Members that it leaves out are derived from the light
	// scheme.
	Dark Scheme `json:"dark,omitzero"`
	// Texts are the organizer's texts by language. A text that is missing in a visitor's language is shown in
	// the first of Languages, or not at all.
	Texts map[string]Texts `json:"texts,omitempty"`
	// Languages are those that visitors may choose from; they get the first unless they prefer another.
	// Empty: all, English first.
	Languages []string `json:"languages,omitempty"`
	Font      string   `json:"font,omitempty"`    // one of [Fonts]
	Corners   string   `json:"corners,omitempty"` // one of [Corners]
	CSS       string   `json:"css,omitempty"`     // custom CSS, in the subset of [style.Parse]
}

// Scheme is the logo and colours of light or dark mode.
type Scheme struct {
	Logo       string `json:"logo,omitempty"`       // data URL of an image: PNG, JPEG or WebP
	Color      string `json:"color,omitempty"`      // #rrggbb, of buttons and links
	Background string `json:"background,omitempty"` // #rrggbb
}

// Texts are the organizer's texts in one language.
type Texts struct {
	Headline   string `json:"headline,omitempty"`    // text below the title, on every page
	Intro      string `json:"intro,omitempty"`       // text for visitors without a place
	Help       string `json:"help,omitempty"`        // where visitors can ask questions
	HelpURL    string `json:"help_url,omitempty"`    // https or mailto
	Footer     string `json:"footer,omitempty"`      // text at the bottom of the page
	PrivacyURL string `json:"privacy_url,omitempty"` // https or mailto
	ImprintURL string `json:"imprint_url,omitempty"` // https or mailto
}

// Allowed values of a brand's members; the first is the default.
var (
	Fonts   = []string{"system", "serif", "rounded", "mono"}
	Corners = []string{"round", "square"}
)

// Limits of texts, in characters.
const (
	maxHeadline = 120
	maxIntro    = 1_000
	maxWords    = 500 // characters of help and footer
	maxLink     = 2_000
)

// IsZero reports whether the brand is empty.
func (b Brand) IsZero() bool {
	return b.Scheme == Scheme{} && b.Dark == Scheme{} && len(b.Texts) == 0 && len(b.Languages) == 0 &&
		b.Font == "" && b.Corners == "" && b.CSS == ""
}

// Image returns the logo without its metadata, if there is one.
func (s Scheme) Image() (mediaType string, image []byte, ok bool) {
	mediaType, image, err := readLogo(s.Logo)
	return mediaType, image, err == nil
}

// Text returns an organizer's text in the given language or else in the room's first, and the language it is in;
// empty: there is none.
func (b Brand) Text(lang string, of func(Texts) string) (text, in string) {
	first := Languages[0]
	if len(b.Languages) > 0 {
		first = b.Languages[0]
	}
	for _, l := range []string{lang, first} {
		if text := of(b.Texts[l]); text != "" {
			return text, l
		}
	}
	return "", ""
}

// Stored returns the brand as it is stored: logos without their metadata, and CSS as it was parsed.
func (b Brand) Stored() Brand {
	for _, s := range []*Scheme{&b.Scheme, &b.Dark} {
		if mediaType, image, ok := s.Image(); ok {
			s.Logo = DataURL(mediaType, image)
		}
	}
	if sheet, problems := style.Parse(b.CSS); len(problems) == 0 {
		b.CSS = sheet.Source()
	}
	return b
}

const wantColor = "must be a colour such as #1a2b3c"

var colorForm = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// Problems lists what is invalid in the brand, by field, such as "brand.color".
func (b Brand) Problems() invalid.List {
	list := b.Scheme.problems("brand.")
	list = append(list, b.Dark.problems("brand.dark.")...)
	for _, lang := range slices.Sorted(maps.Keys(b.Texts)) {
		field := "brand.texts." + lang
		if !slices.Contains(Languages, lang) {
			list.Add(field, "is not known; known are "+strings.Join(Languages, ", "))
			continue
		}
		list = append(list, b.Texts[lang].problems(field+".")...)
	}
	list = append(list, b.languageProblems()...)
	list = append(list, choiceProblems("brand.font", b.Font, Fonts)...)
	list = append(list, choiceProblems("brand.corners", b.Corners, Corners)...)
	if _, problems := style.Parse(b.CSS); len(problems) > 0 {
		details := make([]string, len(problems))
		for i, p := range problems {
			details[i] = p.String()
		}
		list.Add("brand.css", strings.Join(details, "; "))
	}
	return list
}

func (s Scheme) problems(prefix string) invalid.List {
	var list invalid.List
	if s.Logo != "" {
		if _, _, err := readLogo(s.Logo); err != nil {
			list.Add(prefix+"logo", err.Error())
		}
	}
	if s.Color != "" && !colorForm.MatchString(s.Color) {
		list.Add(prefix+"color", wantColor)
	}
	if s.Background != "" && !colorForm.MatchString(s.Background) {
		list.Add(prefix+"background", wantColor)
	}
	return list
}

func (t Texts) problems(prefix string) invalid.List {
	var list invalid.List
	for _, text := range []struct {
		name, text string
		most       int
	}{{"headline", t.Headline, maxHeadline}, {"intro", t.Intro, maxIntro}, {"help", t.Help, maxWords},
		{"footer", t.Footer, maxWords}} {
		if k := (setting.Text{Max: text.most}); !k.Accepts(text.text) {
			list = append(list, invalid.Problem{Field: prefix + text.name, Detail: k.Want()})
		}
	}
	for _, link := range []struct{ name, url string }{{"help_url", t.HelpURL}, {"privacy_url", t.PrivacyURL},
		{"imprint_url", t.ImprintURL}} {
		if link.url != "" && !isLink(link.url) {
			list.Add(prefix+link.name,
				"must be a URL of https without user, or mailto: and an address, at most 2000 characters")
		}
	}
	return list
}

// addressForm matches the address of a mailto link: exactly one, without a subject or body.
var addressForm = regexp.MustCompile(`^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+$`)

// isLink reports whether a page may link to a URL.
func isLink(text string) bool {
	if address, ok := strings.CutPrefix(text, "mailto:"); ok {
		return len(text) <= maxLink && addressForm.MatchString(address)
	}
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxLink && u.Scheme == "https" && u.User == nil &&
		!strings.ContainsAny(text, "\\ ") && setting.IsHost(u.Host)
}

func (b Brand) languageProblems() invalid.List {
	for i, lang := range b.Languages {
		if !slices.Contains(Languages, lang) {
			return invalid.List{{Field: "brand.languages",
				Detail: fmt.Sprintf("has %q; known are %s", lang, strings.Join(Languages, ", "))}}
		}
		if slices.Contains(b.Languages[:i], lang) {
			return invalid.List{{Field: "brand.languages", Detail: "has " + lang + " twice"}}
		}
	}
	return nil
}

func choiceProblems(field, chosen string, from []string) invalid.List {
	if chosen == "" || slices.Contains(from, chosen) {
		return nil
	}
	return invalid.List{{Field: field, Detail: "must be one of " + strings.Join(from, ", ")}}
}
